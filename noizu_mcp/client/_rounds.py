"""Requests that come back with questions: answer them and ask again (`basic/patterns/mrtr`)."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from .._errors import ProtocolError
from ..engine import single_failure
from ._answers import MAX_ROUNDS, Answerer

Send = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]


async def with_rounds(
    send: Send,
    params: Mapping[str, Any],
    answerer: Answerer,
    *,
    kinds: Collection[str] = ("complete",),
) -> dict[str, Any]:
    """Send a request as often as its server has questions.

    Args:
        send: Sends the request with the params it is given, under a new id each time.
        params: The params of the caller; they go along in every round.
        answerer: Answers the questions.
        kinds: Which results end it, by `resultType`.

    Returns:
        The result.

    Raises:
        ProtocolError: The server asks in circles, or answers with something unknown.
    """
    answers: dict[str, Any] = {}
    for _ in range(MAX_ROUNDS + 1):
        result = await send({**params, **answers})
        kind = result.get("resultType", "complete")
        if kind in kinds:
            return result
        if kind != "input_required":
            raise ProtocolError(f"the server answered with an unknown kind of result: {kind!r}")
        with single_failure():
            answers = await _answers(result, answerer)
    raise ProtocolError(f"the server asked for input more than {MAX_ROUNDS} times")


async def _answers(result: Mapping[str, Any], answerer: Answerer) -> dict[str, Any]:
    """Only the newest round counts: its answers, and its state byte for byte."""
    requests, state = result.get("inputRequests"), result.get("requestState")
    if not isinstance(requests, Mapping | None) or not isinstance(state, str | None):
        raise ProtocolError("an input_required result is malformed")
    if requests is None and state is None:
        raise ProtocolError("an input_required result asks for nothing")
    answers: dict[str, Any] = {}
    if requests is not None:
        answers["inputResponses"] = await answerer.answer_all(requests)
    if state is not None:
        answers["requestState"] = state
    return answers
