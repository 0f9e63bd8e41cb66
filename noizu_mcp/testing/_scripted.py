"""`ScriptedHandler`: a handler for tests, whose answers are data."""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from .._errors import McpError
from .._value import JSON
from ..client import ClientHandler
from ..jsonrpc import INTERNAL_ERROR
from ..types import Accept, Cancel, Decline, Root, SamplingResult

#: The model of a sampling result that is given as text.
MODEL: Final = "scripted"

#: An answer; see `ScriptedHandler`.
ScriptedAnswer = Any
ScriptedAnswers = Sequence[ScriptedAnswer] | Mapping[str, ScriptedAnswer]


class Asked(NamedTuple):
    """A request of a server to its client.

    Attributes:
        method: `elicitation/create`, `sampling/createMessage` or `roots/list`.
        params: Its params.
        message: The message of an elicitation, or the text of the last message of a sampling
            request; empty for roots.
    """

    method: str
    params: Mapping[str, JSON]
    message: str


class _AnswerQueue:
    """The answers to the questions of one kind.

    Args:
        script: See `ScriptedHandler`.
    """

    def __init__(self, script: ScriptedAnswers) -> None:
        by_pattern = script if isinstance(script, Mapping) else {"": list(script)}
        self._left = {pattern: _Left(answer) for pattern, answer in by_pattern.items()}

    def take(self, message: str) -> ScriptedAnswer:
        """Return the answer to a message, and remove it if it is from a list.

        Raises:
            LookupError: There is no answer left.
        """
        for pattern, left in self._left.items():
            if left.answers and re.search(pattern, message):
                return left.take()
        raise LookupError(message)

    def unused(self) -> list[str]:
        """Describe the answers that were not used."""
        return [
            f"{answer!r} for {pattern!r}" if pattern else repr(answer)
            for pattern, left in self._left.items()
            for answer in left.unused()
        ]


class _Left:
    """The remaining answers of a list; or one answer, which can be reused."""

    def __init__(self, answer: ScriptedAnswer) -> None:
        self._stays = not isinstance(answer, list)
        self._taken = False
        self.answers: list[ScriptedAnswer] = [answer] if self._stays else list(answer)

    def take(self) -> ScriptedAnswer:
        self._taken = True
        return self.answers[0] if self._stays else self.answers.pop(0)

    def unused(self) -> list[ScriptedAnswer]:
        return [] if self._stays and self._taken else self.answers


class ScriptedHandler(ClientHandler):
    """Answers the requests of a server from data, and records them; for tests.

    Each argument that is given offers its capability. A list answers one request each, in order. A
    mapping has regular expressions as keys, which are searched in the message of the request: a
    single answer is used any number of times, a list is used up. An answer is

    * for an elicitation: the values of the form, as a mapping or an instance; or `Accept`,
      `Decline`, `Cancel`;
    * for sampling: a text, a `SamplingResult`, or a mapping in the form of the wire;
    * an exception, which is raised: an `McpError` goes to the server as it is;
    * a function, plain or async, called with the params; it returns one of these.

    A request without an answer fails with an `McpError` at the server, and `done` reports it.

    Args:
        elicitation: The answers to elicitations.
        sampling: The answers to sampling requests.
        roots: The roots, each time they are asked for: `Root`, `file://` URIs or mappings.

    Attributes:
        asked: The questions so far, in order; an `Asked` each.
        notifications: The method and the params of each notification so far.

    Raises:
        TypeError: `elicitation` or `sampling` is neither a list nor a mapping.
    """

    def __init__(
        self,
        elicitation: ScriptedAnswers | None = None,
        sampling: ScriptedAnswers | None = None,
        roots: Sequence[Root | str | Mapping[str, JSON]] | None = None,
    ) -> None:
        self.asked: list[Asked] = []
        self.notifications: list[tuple[str, Mapping[str, JSON]]] = []
        self._roots = roots
        self._unexpected: list[Asked] = []
        self._answers = {
            "handle_elicitation": _read("elicitation", elicitation),
            "handle_sampling": _read("sampling", sampling),
        }
        offered = {
            "handle_elicitation": elicitation,
            "handle_sampling": sampling,
            "list_roots": roots,
        }
        # None instead of a method offers nothing.
        vars(self).update((name, None) for name, script in offered.items() if script is None)

    async def handle_elicitation(self, params: Mapping[str, JSON]) -> Any:
        """Return the next answer; see `ClientHandler`."""
        asked = Asked("elicitation/create", params, str(params.get("message", "")))
        answer = await self._answer("handle_elicitation", asked)
        return answer if isinstance(answer, Accept | Decline | Cancel) else Accept(answer)

    async def handle_sampling(self, params: Mapping[str, JSON]) -> Any:
        """Return the next answer; see `ClientHandler`."""
        asked = Asked("sampling/createMessage", params, _last_text(params))
        answer = await self._answer("handle_sampling", asked)
        if isinstance(answer, str):
            return SamplingResult(role="assistant", content=answer, model=MODEL)
        return answer

    async def list_roots(self) -> Any:
        """Return the roots; see `ClientHandler`."""
        self.asked.append(Asked("roots/list", {}, ""))
        return self._roots

    async def handle_notification(self, method: str, params: Mapping[str, JSON]) -> None:
        """Record a notification; see `ClientHandler`."""
        self.notifications.append((method, params))

    def done(self) -> None:
        """Check that every answer was used, and every request had an answer.

        Raises:
            AssertionError: Answers are left, or requests had no answer; the text lists them.
        """
        scripts = self._answers.values()
        faults = [f"not asked for: {text}" for each in scripts for text in each.unused()]
        faults += [f"no answer for: {each.method}: {each.message}" for each in self._unexpected]
        if faults:
            raise AssertionError("; ".join(faults))

    async def _answer(self, name: str, asked: Asked) -> ScriptedAnswer:
        self.asked.append(asked)
        try:
            answer = self._answers[name].take(asked.message)
        except LookupError:
            self._unexpected.append(asked)
            text = f"no answer is scripted for: {asked.message}"
            raise McpError(INTERNAL_ERROR, text) from None
        if callable(answer) and not isinstance(answer, type):
            answer = answer(asked.params)
            answer = await answer if inspect.isawaitable(answer) else answer
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _read(name: str, script: ScriptedAnswers | None) -> _AnswerQueue:
    if isinstance(script, str | bytes) or not isinstance(script, Sequence | Mapping | None):
        raise TypeError(f"{name} must be a list of answers, or a mapping, not {script!r}")
    return _AnswerQueue(script or {})


def _last_text(params: Mapping[str, JSON]) -> str:
    """Return the text of the last message; a message has one block, or a list of them."""
    messages = params.get("messages") or [{}]
    content = messages[-1].get("content", ())
    blocks = [content] if isinstance(content, Mapping) else content
    return "\n".join(str(block["text"]) for block in blocks if "text" in block)
