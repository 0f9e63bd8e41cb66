"""Answers to requests of a server: live requests, and the input requests of 2026-07-28.

Theory of operation. Up to 2025-11-25 the server sends a request; `Answerer.answer` returns its
result. On 2026-07-28 the question is inside a result (`basic/patterns/mrtr`): a request is answered
by `input_required` with input requests and a state. `answer_rounds` answers all of them
concurrently and sends the request again, with the params of the caller, the answers, and the
unchanged state. Only the newest round counts. The rounds end with a result of another type, with an
error, or after `MAX_ROUNDS`: a server must not keep the call running forever.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, cast

import attrs
import trio

from .._errors import McpError, ProtocolError
from .._limits import Limits
from .._value import JSON, JSONObject
from ..engine import PendingRequests, is_crash, single_failure, throttled_log, unwrap_single
from ..jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from ..schema import dump_value
from ..types import ELICIT, ROOTS, SAMPLE, Accept, Cancel, Decline, Root, SamplingResult

#: Maximum rounds of one request, in case a server never stops asking.
MAX_ROUNDS: Final = 50
_ACTIONS: Final = ("accept", "decline", "cancel")

#: Sends a request with params; see `answer_rounds`.
SendRound = Callable[[JSONObject], Awaitable[JSONObject]]


class HandlerCalls(Protocol):
    """The handler of a client, as its session uses it; `BoundHandler` implements this."""

    def connected(self, client: Any) -> AbstractContextManager[None]:
        """Set the client of the handler while the block runs."""

    def overrides(self, name: str) -> bool:
        """Tell whether the handler overrides a method."""

    async def call(self, name: str, *args: object, limiter: trio.CapacityLimiter) -> object:
        """Call a method; see `BoundHandler`."""


@attrs.frozen
class ClientSide:
    """The client's side of a connection.

    Attributes:
        info: The `Implementation` of the client, in wire form.
        capabilities: The capabilities of the client, in wire form.
        handler: Answers requests of the server and handles its notifications.
        limits: The limits of the connection.
        roots: The roots of the client, in wire form; None if the handler lists them.
    """

    info: JSONObject
    capabilities: JSONObject
    handler: HandlerCalls
    limits: Limits
    roots: Sequence[JSONObject] | None


class Answerer:
    """Answers requests of the server with a handler.

    Args:
        side: The client's side of the connection.
        pending: The requests of the connection without an answer.

    Attributes:
        roots: The roots of the client, in wire form; None if the handler lists them.
    """

    def __init__(self, side: ClientSide, pending: PendingRequests) -> None:
        self.roots = side.roots
        self._handler = side.handler
        self._capabilities = side.capabilities
        # A separate limiter: people are slow, and would occupy all threads of the program.
        self._threads = trio.CapacityLimiter(side.limits.threads)
        self._pending = pending

    async def answer(self, method: str, params: JSONObject) -> JSONObject:
        """Answer one request of the server.

        Returns:
            The result, in wire form.

        Raises:
            McpError: The client has no such method (-32601), the question uses a mode or field that
                it did not advertise (-32602), the handler refused, or it failed (-32603; the
                traceback is logged, not sent).
        """
        try:
            return await self._answer(method, params)
        except BaseException as error:
            if not is_crash(error):
                raise
            error = unwrap_single(error)
            if isinstance(error, McpError):
                raise error from None
            # The server gets no details of the failure: a traceback may contain secrets.
            throttled_log.crash(method, "the handler of %s failed", method, error=error)
            raise McpError(INTERNAL_ERROR, "Handler failed") from None

    async def _answer(self, method: str, params: JSONObject) -> JSONObject:
        if method == ELICIT:
            return await self._elicit(params)
        if method == SAMPLE:
            return await self._sample(params)
        if method != ROOTS:
            raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}")
        if self.roots is not None:
            return {"roots": list(self.roots)}
        listed = await self._call("list_roots", method)
        if isinstance(listed, Mapping) and "roots" in listed:
            return {**dump_value(listed), "roots": read_roots(listed["roots"], "list_roots")}
        return {"roots": read_roots(listed, "list_roots")}

    async def _call(self, name: str, method: str, *args: object) -> object:
        if not self._handler.overrides(name):
            raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}")
        return await self._handler.call(name, *args, limiter=self._threads)

    async def _elicit(self, params: JSONObject) -> JSONObject:
        mode = params.get("mode", "form")
        modes = self._capabilities.get("elicitation", {})
        # An empty capability means forms, as in 2025-06-18 (2025-11-25 `client/elicitation`).
        if mode not in (modes or ("form",)):
            raise McpError(INVALID_PARAMS, f"Elicitation mode not supported: {mode}")
        outcome = await self._call("handle_elicitation", ELICIT, params)
        if isinstance(outcome, Accept | Decline | Cancel):
            content = outcome.content if isinstance(outcome, Accept) else None
            answer: JSONObject = {"action": outcome.action, "content": content}
        elif isinstance(outcome, Mapping) and outcome.get("action") in _ACTIONS:
            answer = {**outcome}
        else:
            raise TypeError(
                "handle_elicitation must return Accept, Decline or Cancel, or a mapping with one "
                f"of {', '.join(_ACTIONS)} as its action: {outcome!r}"
            )
        content = answer.pop("content", None)
        if answer["action"] == "accept" and mode == "form":
            # `content` is required for a form, even one without fields.
            answer["content"] = {} if content is None else dump_value(content)
            if not isinstance(answer["content"], dict):
                raise TypeError(f"the content of an accepted form must be a mapping: {content!r}")
        return cast(JSONObject, dump_value(answer))

    async def _sample(self, params: JSONObject) -> JSONObject:
        # A client must refuse tools that it did not advertise (2025-11-25 `client/sampling`).
        with_tools = "tools" in params or "toolChoice" in params
        if with_tools and "tools" not in self._capabilities.get("sampling", {}):
            raise McpError(INVALID_PARAMS, "Sampling with tools is not supported")
        result = await self._call("handle_sampling", SAMPLE, params)
        if isinstance(result, SamplingResult):
            return result.to_wire()
        if not isinstance(result, Mapping):
            raise TypeError(
                "handle_sampling must return a SamplingResult, or a mapping with role, content "
                f"and model: {result!r}"
            )
        wire: JSONObject = dump_value(result)
        SamplingResult.from_wire(wire, "handle_sampling")  # raises if a member is missing
        return wire

    async def answer_all(self, requests: Mapping[str, JSON]) -> JSONObject:
        """Answer the input requests of one round concurrently (2026-07-28 `basic/patterns/mrtr`).

        Raises:
            McpError: One of them cannot be answered; the protocol cannot report this to the server.
            ProtocolError: One of them is not a request.
            ConnectionClosed: The connection ended first, so that no answer can be sent.
        """
        answers: JSONObject = {}

        async def one(key: str, request: JSON) -> None:
            if not isinstance(request, Mapping) or not isinstance(request.get("method"), str):
                raise ProtocolError("an input request has no method")
            params = request.get("params")
            answers[key] = await self.answer(request["method"], params or {})

        with self._pending.end_with_connection():
            if len(requests) == 1:  # most rounds; a nursery would take longer than many handlers
                for key, request in requests.items():
                    await one(key, request)
                return answers
            # Concurrently: a person who answers one question must not delay a model that answers
            # another.
            async with trio.open_nursery() as nursery:
                for key, request in requests.items():
                    nursery.start_soon(one, key, request)
        return answers


async def answer_rounds(
    send: SendRound,
    params: JSONObject,
    answerer: Answerer,
    kinds: Collection[str] = ("complete",),
    first: JSONObject | None = None,
) -> JSONObject:
    """Send a request that the server may answer with input requests first, and answer those.

    Args:
        send: Sends the request with the given params, with a new id each time.
        params: The params of the caller.
        answerer: Answers the questions.
        kinds: Values of `resultType` that end the rounds.
        first: The result of the first round, if it was sent already.

    Returns:
        The last result.

    Raises:
        ProtocolError: The server asks too often, or its result is malformed.
        ConnectionClosed: The connection ended while its questions were being answered.
    """
    result, rounds = first or await send(params), 0
    while True:
        # Results before 2026-07-28 have no type: they are complete.
        kind = result.get("resultType", "complete")
        if kind in kinds:
            return result
        if kind != "input_required":
            raise ProtocolError(f"the server answered with an unknown kind of result: {kind!r}")
        if rounds == MAX_ROUNDS:
            raise ProtocolError(f"the server asked for input more than {MAX_ROUNDS} times")
        rounds += 1
        with single_failure():
            # The answers of earlier rounds are not sent again: the state contains them.
            sent = {**params, **await _answer_round(result, answerer)}
        result = await send(sent)


async def _answer_round(result: JSONObject, answerer: Answerer) -> JSONObject:
    requests, state = result.get("inputRequests"), result.get("requestState")
    if not isinstance(requests, Mapping | None) or not isinstance(state, str | None):
        raise ProtocolError("an input_required result is malformed")
    if requests is None and state is None:
        raise ProtocolError("an input_required result asks for nothing")
    answers: JSONObject = {}
    if requests is not None:
        answers["inputResponses"] = await answerer.answer_all(requests)
    if state is not None:
        answers["requestState"] = state
    return answers


def read_roots(roots: object, where: str) -> list[JSONObject]:
    """Convert roots to wire form.

    Args:
        roots: `Root` objects, `file://` URIs, and mappings in wire form.
        where: The name of the list, for error messages.

    Raises:
        TypeError: `roots` is not a list, or an element is not a root.
        ValueError: A root has no `file://` URI, which `client/roots` requires.
    """
    if not isinstance(roots, Iterable) or isinstance(roots, str | bytes | Mapping):
        raise TypeError(f"{where} must be a list of roots, got {roots!r}")
    return [_root(root, f"{where}[{number}]") for number, root in enumerate(roots)]


def _root(root: object, where: str) -> JSONObject:
    if isinstance(root, str):
        root = Root(root)
    elif isinstance(root, Mapping):
        try:
            root = Root.from_wire(dump_value(root), where)
        except ProtocolError as error:
            raise TypeError(str(error)) from None
    if not isinstance(root, Root):
        raise TypeError(f"{where} must be a Root, a file:// URI or a mapping with a uri: {root!r}")
    if not str(root.uri).startswith("file://"):
        raise ValueError(f"{where} must have a file:// URI, as Path(…).as_uri() is: {root.uri!r}")
    return root.to_wire()
