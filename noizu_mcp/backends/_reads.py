"""Reads of records that are sent together.

While a batch of reads is on its way, the next ones gather in another batch, which is sent when the
answer is there. No timer is needed: a read that meets no other is sent at once. Each read is
answered by a batch that was sent after it came, so its answer is as fresh as one of its own.
"""

from collections.abc import Awaitable, Callable, Sequence

import trio

from ._interface import BackendUnavailable, Record

#: A key, the seconds until it expires, and the version that the caller knows.
Question = tuple[str, float | None, int]


class _Batch:
    """Reads that are sent together; equal ones are one question."""

    __slots__ = ("answers", "began", "came", "ended", "failure")

    def __init__(self) -> None:
        self.answers: dict[Question, Record | None] = {}
        self.came = trio.Event()
        self.began = 0.0  # when the first question came
        self.ended = trio.Event()
        self.failure: str | None = "the backend was closed"


class Reads:
    """The reads of one opened backend.

    Args:
        ask: Sends questions, of which the first came some seconds ago; returns their answers in
            order. Where the answers are too large, the last ones may be missing.
        crowd: The text of the error where too many wait.
        most: Maximum number of reads that wait.
    """

    def __init__(
        self,
        ask: Callable[[Sequence[Question], float], Awaitable[list[Record | None]]],
        crowd: str,
        most: int,
    ) -> None:
        self._ask = ask
        self._crowd = crowd
        self._most = most
        self._next = _Batch()
        self._waiting = 0

    async def get(self, question: Question) -> Record | None:
        """Return the answer to a question.

        Raises:
            BackendUnavailable: There is no answer in time, an error, or too many wait.
        """
        if self._waiting >= self._most:
            # Who tries again in a loop must not stop the others.
            await trio.lowlevel.checkpoint()
            raise BackendUnavailable(self._crowd)
        batch = self._next
        if not batch.answers:
            batch.began = trio.current_time()
            batch.came.set()
        batch.answers[question] = None
        self._waiting += 1
        try:
            await batch.ended.wait()
        finally:
            self._waiting -= 1
        if batch.failure is not None:
            raise BackendUnavailable(batch.failure)
        return batch.answers[question]

    async def run(self) -> None:
        """Send what is asked, until cancelled; then every question fails."""
        batch = self._next
        try:
            while True:
                if not batch.answers:
                    await batch.came.wait()
                self._next = _Batch()
                await self._send(batch)
                batch.ended.set()
                batch = self._next
        finally:
            batch.ended.set()
            self._next.ended.set()

    async def _send(self, batch: _Batch) -> None:
        left = list(batch.answers)
        try:
            while left:
                answers = await self._ask(left, trio.current_time() - batch.began)
                batch.answers.update(zip(left, answers, strict=False))
                left = left[len(answers) :]
            batch.failure = None
        except BackendUnavailable as error:
            batch.failure = str(error)
