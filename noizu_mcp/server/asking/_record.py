"""Answers and side effects of one handler, so that it can run again from the start."""

import hashlib
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import trio

from ..._errors import McpError
from ..._util import json_text
from ..._value import JSONObject
from ...engine import call_in_thread
from ...jsonrpc import INVALID_PARAMS, parse_json, render_sorted
from ...types import InputRequest

#: Rounds of questions in one request. A handler with more of them asks in circles, and each round
#: may run it again from the start.
MAX_ROUNDS: Final = 50
#: Repeats of one question after an invalid answer (2026-07-28 `basic/patterns/mrtr` lets a server
#: ask again). Without a bound a client that always answers badly keeps its handler in a circle.
MAX_REASKS: Final = 3

#: Reads an answer off the wire; raises ProtocolError for an invalid one.
Reader = Callable[[Any], Any]


class Record:
    """Answers and side effects of a handler, under keys that are stable when it runs again.

    Args:
        answers: The answers by key; None for none.
        steps: The results of the side effects, by key; None for none.
        refused: The number of invalid answers to a question, by key; None for none.
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
        """Begin from the start: the handler is run again."""
        self._counts.clear()

    def key(self, kind: str, content: Any) -> str:
        """Name a question by its content; number the repeats of an equal question.

        A key that counts all questions would depend on which of two concurrent tasks runs first,
        and trio shuffles them. A key made of the content does not.
        """
        name = kind.partition("/")[0]
        # 64 bits of the digest: the questions of one handler are few, and each character of a key
        # travels in every retry.
        digest = digest_of([kind, content])[:16]
        count = self._counts[digest] = self._counts.get(digest, 0) + 1
        return f"{name}-{digest}-{count}"

    def refuse(self, key: str) -> None:
        """Count an invalid answer to a question."""
        self.refused[key] = self.refused.get(key, 0) + 1

    def check_patience(self, key: str, request: InputRequest) -> None:
        """Check that a question may be asked, or asked again.

        Raises:
            McpError: It was answered wrongly too often.
        """
        if self.refused.get(key, 0) > MAX_REASKS:
            text = f"No valid answer to {text_of(request)} in {MAX_REASKS + 1} tries"
            raise McpError(INVALID_PARAMS, text)

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run a side effect, or return its recorded result."""
        key = self.key("step", name)
        if key not in self.steps:
            self.steps[key] = _as_json(name, await run())
        # A fresh copy: a handler that changes the result of a step must not change the record,
        # which is sealed later. It is also a copy in the first run, so both runs see the same
        # types.
        return parse_json(json_text(self.steps[key]).encode())


def too_many_rounds() -> McpError:
    """Make the error for a handler that exceeds `MAX_ROUNDS`."""
    return McpError(INVALID_PARAMS, f"More than {MAX_ROUNDS} rounds of questions")


def text_of(request: InputRequest) -> str:
    """Return the text of a question for an error; its method if it has none."""
    return json_text(request.params.get("message", request.method))


def digest_of(value: Any) -> str:
    """Hash a JSON value; the order of keys in an object does not matter."""
    return hashlib.sha256(render_sorted(value)).hexdigest()


def as_step(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[str, Callable[[], Awaitable[Any]]]:
    """Make the two arguments of an asker's `step` from those of `ctx.step`.

    Raises:
        TypeError: The arguments are not JSON values.
    """
    # Partials and callable objects have no name of their own.
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


def _as_json(key: str, value: Any) -> Any:
    """Convert the result of a step into the JSON values that a replay will return."""
    try:
        return parse_json(json_text(value).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"ctx.step needs a JSON value from {key}: {error}") from None
