"""Reading the answers of the server behind a `Remote`."""

from collections.abc import Callable
from typing import TypeVar

from .._errors import McpError, ProtocolError
from .._value import JSONObject
from ..components import Renaming
from ..jsonrpc import INTERNAL_ERROR
from ..types import InputRequest, InputRequired

AnswerType = TypeVar("AnswerType")


def read_answer(
    name: str,
    result: JSONObject,
    read: Callable[[JSONObject], AnswerType],
    names: Renaming,
) -> AnswerType | InputRequired:
    """Read a result of the server: the last one, or questions to the caller.

    Args:
        name: The name of the server, for errors.
        result: The result.
        read: Reads a last result.
        names: Converts names of the server to the names that clients see.

    Raises:
        McpError: The result is malformed (-32603).
    """
    kind = result.get("resultType", "complete")
    if kind not in ("complete", "input_required"):
        text = f"{name} gave an unknown kind of result: {str(kind)[:60]!r}"
        raise McpError(INTERNAL_ERROR, text)
    try:
        if kind == "input_required":
            return _read_questions(result)
        return names.rename_answer(read(result))
    except (ProtocolError, TypeError, ValueError) as error:
        text = f"{name} gave a malformed result: {error}"
        raise McpError(INTERNAL_ERROR, text) from error


def _read_questions(result: JSONObject) -> InputRequired:
    """Read an `InputRequiredResult`; the caller is asked in the words of its own era.

    Raises:
        TypeError: It is malformed.
        ValueError: It asks for nothing.
    """
    requests, state = result.get("inputRequests") or {}, result.get("requestState")
    if not isinstance(requests, dict) or not isinstance(state, str | None):
        raise TypeError("an input_required result is malformed")
    return InputRequired({key: read_question(each) for key, each in requests.items()}, state)


def read_question(request: object) -> InputRequest:
    """Read an input request.

    Raises:
        TypeError: It is malformed.
    """
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        raise TypeError("an input request has no method")
    return InputRequest(request["method"], request.get("params") or {})
