"""Salvage of the id from input that is not a valid message, so that the sender gets an error.

An error without the id leaves the sender waiting for ever. An error with the wrong id fails
another request of the sender, and so does one for an answer: its id is one of ours.
"""

import json
import re
from typing import Any, Final

from ._messages import ErrorResponse, Id, Malformed

#: Bytes from the start of a message that are searched for its id; of a message over the size limit
#: no more are kept.
HEAD: Final = 1024
#: Bytes of the longest message that is read once more, leniently: a few milliseconds' worth.
MAX_LENIENT: Final = 256 * 1024

# `re` compiles these for the first message that needs it: most programs never see one.
# Members that stand before `params`, `result` or `error` and so belong to the message itself: an
# `id` further in may be one of the arguments.
# Strings without escapes, integers of at most 18 digits: neither takes more than linear time.
_MEMBER = rb'"(jsonrpc|method|id)"\s*:\s*("[^"\\\x00-\x1f]*"|-?(?:0|[1-9]\d{0,17}))\s*,\s*'
_LEADING = rb"(?:\xef\xbb\xbf)?\s*\{\s*((?:" + _MEMBER + rb")+)"
_ANSWER_KEYS: Final = (b'"result"', b'"error"')


def malformed(code: int, message: str, id_: Id | None = None, *, answer: bool = True) -> Malformed:
    """Make a `Malformed` with its error."""
    return Malformed(ErrorResponse(id_, code, message), answer)


def unreadable(data: bytes, code: int, message: str) -> Malformed:
    """Make the `Malformed` for text that cannot be read.

    Args:
        data: The text, or the head of a text over the size limit.
        code: The JSON-RPC error code to answer.
        message: The text to answer.

    Returns:
        A refusal with the id, if this certainly is the id of the message: it stands before `params`
        in the head, or the text has at most `MAX_LENIENT` bytes and parses once NaN and invalid
        UTF-8 are accepted. So the search takes little time, however large the text is.
    """
    id_, is_answer = _leading(data) or _lenient(data)
    return malformed(code, message, id_, answer=not is_answer)


def unfit(value: Any, code: int, message: str) -> Malformed:
    """Make the `Malformed` for text that can be parsed, and breaks another rule.

    Args:
        value: The parsed value.
        code: The JSON-RPC error code to answer.
        message: The text to answer.
    """
    id_, is_answer = _identify(value)
    return malformed(code, message, id_, answer=not is_answer)


def salvage_id(data: bytes) -> Id | None:
    """Find the id of a request that cannot be read; None for anything else."""
    found = unreadable(data, 0, "")
    return found.error.id if found.answer else None


def _leading(data: bytes) -> tuple[Id | None, bool] | None:
    found = re.match(_LEADING, data[:HEAD])
    if found is None:
        return None
    # The last of two equal names counts, as in the parser.
    members = dict(re.findall(_MEMBER, found[1]))
    # An answer shows itself by the member that follows; it must be recognized, since it must not be
    # answered.
    is_answer = b"method" not in members and data.startswith(_ANSWER_KEYS, found.end())
    if b"id" in members and (is_answer or b"method" in members):
        return _leading_id(members[b"id"]), is_answer
    return None


def _leading_id(text: bytes) -> Id | None:
    try:
        return _certain(json.loads(text.decode()))
    except UnicodeDecodeError:
        return None


def _lenient(data: bytes) -> tuple[Id | None, bool]:
    if len(data) > MAX_LENIENT:
        return None, False
    try:
        # Bad bytes become U+FFFD; `_certain` refuses an id that holds one.
        return _identify(json.loads(data.decode("utf-8", "replace").removeprefix("\ufeff")))
    except (ValueError, RecursionError):
        return None, False


def _identify(value: Any) -> tuple[Id | None, bool]:
    if type(value) is not dict:
        return None, False
    is_answer = "method" not in value and ("result" in value or "error" in value)
    is_request = type(value.get("method")) is str
    return (_certain(value.get("id")) if is_request or is_answer else None), is_answer


def _certain(value: Any) -> Id | None:
    if type(value) is int:
        return value
    # U+FFFD may stand for bytes that were no text, a surrogate cannot be sent back.
    if type(value) is str and "\ufffd" not in value and _is_text(value):
        return value
    return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
