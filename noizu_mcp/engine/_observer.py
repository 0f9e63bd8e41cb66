"""The contract of an observer of requests: telemetry implements it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from ..jsonrpc import Rendered, Request

#: The ending of a request that its answer does not show.
Ending = Literal["crashed", "timed_out"]


class RequestObserver(Protocol):
    """Observes one request of the peer. No method may raise."""

    def mark(self, ending: Ending) -> None:
        """Note the ending that the answer will not show."""

    def observe_result(self, result: Mapping[str, Any] | Rendered) -> None:
        """Observe the result, before `observe_answer`."""

    def observe_answer(self, size: int, code: int | None) -> None:
        """Observe the answer.

        Args:
            size: Bytes of the answer.
            code: The error code; None for a result.
        """

    def observe_cancellation(self) -> None:
        """Observe that nobody waits for the answer any more."""

    def surround_question(self, request: Request) -> AbstractContextManager[None]:
        """Observe a request of ours that belongs to it, while the block runs."""
