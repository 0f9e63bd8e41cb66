"""Answers to what a server asks, the same for live requests and for input requests."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import trio

from .._errors import McpError, ProtocolError
from ..engine import is_crash, seldom, unwrap_single
from ..jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from ..schema import dump_value
from ..server.calls._user_code import run_user_code
from ..types import ELICIT, ROOTS, SAMPLE, Accept, Cancel, Decline, Root, SamplingResult
from ._handlers import ClientHandler

#: Rounds of one request: past it a server is asking in circles.
MAX_ROUNDS: Final = 50


class Answerer:
    """Turns questions into answers with the help of a handler.

    Args:
        handler: What the client can do.
        capabilities: What it said that it can do.

    Attributes:
        roots: The roots of the client; None: the handler has them.
    """

    def __init__(self, handler: ClientHandler, capabilities: Mapping[str, Any]) -> None:
        self.roots: Sequence[Root | str] | None = None
        self._handler = handler
        self._capabilities = capabilities

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one question.

        Returns:
            The result as it goes over the wire.

        Raises:
            McpError: The client cannot do it (-32601), was asked in a way that it did not offer
                (-32602), its handler refused, or failed (-32603; the log says why).
        """
        try:
            return await run_user_code(self._answer(method, params))
        except BaseException as error:
            if not is_crash(error):
                raise
            error = unwrap_single(error)
            if isinstance(error, McpError):
                raise error from None
            seldom.crash(method, "the handler of %s failed", method, error=error)
            raise McpError(INTERNAL_ERROR, "Handler failed") from None

    async def _answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == ELICIT:
            return await self._elicit(params)
        if method == SAMPLE:
            return await self._sample(params)
        if method == ROOTS:
            roots = self.roots
            listed = await self._handler.list_roots() if roots is None else roots
            return {"roots": [_root(root) for root in listed]}
        raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _elicit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        mode = params.get("mode", "form")
        modes = self._capabilities.get("elicitation", {})
        # A client that offers no mode by name offers forms (client/elicitation).
        if mode not in (modes or ("form",)):
            raise McpError(INVALID_PARAMS, f"Elicitation mode not supported: {mode}")
        outcome = await self._handler.handle_elicitation(params)
        if not isinstance(outcome, Accept | Decline | Cancel):
            raise TypeError(
                f"handle_elicitation must return Accept, Decline or Cancel: {outcome!r}"
            )
        if isinstance(outcome, Accept) and mode == "form":
            return {"action": "accept", "content": dump_value(outcome.content)}
        return {"action": outcome.action}

    async def _sample(self, params: Mapping[str, Any]) -> dict[str, Any]:
        with_tools = "tools" in params or "toolChoice" in params
        if with_tools and "tools" not in self._capabilities.get("sampling", {}):
            raise McpError(INVALID_PARAMS, "Sampling with tools is not supported")
        result = await self._handler.handle_sampling(params)
        if not isinstance(result, SamplingResult):
            raise TypeError(f"handle_sampling must return a SamplingResult: {result!r}")
        return result.to_wire()

    async def answer_all(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the input requests of one round, all at once (2026-07-28 `basic/patterns/mrtr`).

        Raises:
            McpError: One of them cannot be answered; there is no way to say so to the server.
            ProtocolError: One of them is no request.
        """
        answers: dict[str, Any] = {}

        async def one(key: str, request: Any) -> None:
            if not isinstance(request, Mapping) or not isinstance(request.get("method"), str):
                raise ProtocolError("an input request has no method")
            params = request.get("params")
            answers[key] = await self.answer(request["method"], params or {})

        async with trio.open_nursery() as nursery:
            for key, request in requests.items():
                nursery.start_soon(one, key, request)
        return answers


def _root(root: Root | str) -> dict[str, Any]:
    return (Root(root) if isinstance(root, str) else root).to_wire()
