"""Answers and side effects of one handler, so that it can run again from the start."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import trio

from ..._errors import McpError
from ..._util import json_text
from ..._value import JSONObject
from ...engine import call_in_thread
from ...jsonrpc import INVALID_PARAMS, digest_of, parse_json
from ...types import InputRequest

#: Maximum rounds of questions in one request. A handler with more is in a loop, and each round may
#: run it again from the start.
MAX_ROUNDS: Final = 50
#: Maximum repeats of one question after invalid answers (2026-07-28 `basic/patterns/mrtr` lets a
#: server ask again). Without it a client with invalid answers would keep its handler in a loop.
MAX_REASKS: Final = 3

#: Reads an answer in wire format; raises ProtocolError if it is invalid.
Reader = Callable[[Any], Any]


class Record:
    """Answers and side effects of a handler, under keys that are the same in each run.

    Args:
        answers: The answers, by key; None for no answers.
        steps: The results of the side effects, by key; None for no results.
        refused: The number of invalid answers to a question, by key; None for zero.
    """

    def __init__(
        self,
        answers: JSONObject | None = None,
        steps: JSONObject | None = None,
        refused: dict[str, int] | None = None,
    ) -> None:
        self.answers = {} if answers is None else answers
        self.steps = {} if steps is None else steps
        self.refused = {} if refused is None else refused
        self._counts: dict[str, int] = {}

    def rewind(self) -> None:
        """Start numbering again: the handler runs again."""
        self._counts.clear()

    def key(self, kind: str, content: object) -> str:
        """Return the key of a question: a digest of its content and the number of its repeat.

        A key that counts all questions would depend on which of two concurrent tasks runs first,
        which trio randomizes. A key made of the content does not.
        """
        name = kind.partition("/")[0]
        # 64 bits of the digest are enough: a handler asks few questions, and each character of a
        # key is sent in every retry.
        digest = digest_of([kind, content])[:16]
        count = self._counts[digest] = self._counts.get(digest, 0) + 1
        return f"{name}-{digest}-{count}"

    def refuse(self, key: str) -> None:
        """Count an invalid answer to a question."""
        self.refused[key] = self.refused.get(key, 0) + 1

    def check_patience(self, key: str, request: InputRequest) -> None:
        """Check that a question may be asked, or asked again.

        Raises:
            McpError: It had too many invalid answers.
        """
        if self.refused.get(key, 0) > MAX_REASKS:
            text = f"No valid answer to {text_of(request)} in {MAX_REASKS + 1} tries"
            raise McpError(INVALID_PARAMS, text)

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run a side effect, or return its recorded result."""
        key = self.key("step", name)
        if key not in self.steps:
            self.steps[key] = _as_json(name, await run())
        # A fresh copy: a handler that changes the result must not change the record, which is
        # sealed later. The first run gets a copy as well, so that both runs see the same types.
        return parse_json(json_text(self.steps[key]).encode())


def too_many_rounds() -> McpError:
    """Make the error for a handler that exceeds `MAX_ROUNDS`."""
    return McpError(INVALID_PARAMS, f"More than {MAX_ROUNDS} rounds of questions")


def text_of(request: InputRequest) -> str:
    """Return the text of a question for an error; its method if it has no text."""
    return json_text(request.params.get("message", request.method))


def as_step(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[str, Callable[[], Awaitable[Any]]]:
    """Make the two arguments of an asker's `step` from the arguments of `ctx.step`.

    Raises:
        TypeError: The arguments are not JSON values.
    """
    # Partials and callable objects have no `__qualname__`.
    name = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        key = f"{name}{json_text(list(args))}"
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"ctx.step needs JSON values as arguments of {name}: {error}") from None

    async def run() -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        return await trio.to_thread.run_sync(call_in_thread, partial(function, *args))

    return key, run


def _as_json(key: str, value: object) -> Any:
    """Convert the result of a step to the JSON value that a replay returns."""
    try:
        return parse_json(json_text(value).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"ctx.step needs a JSON value from {key}: {error}") from None
