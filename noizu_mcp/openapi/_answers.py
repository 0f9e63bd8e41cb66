"""Answers of an API as results of tools."""

import json
from typing import Final

from .._media_types import is_json, is_text
from .._util import json_text
from ..types import Content, ResourceContents, ToolResult
from ._operations import ApiRequest

#: Characters of the body of an error that a model gets to see.
SHOWN: Final = 4000
#: Charsets beside UTF-8, by the names of the web (WHATWG Encoding, 4.2). Python has codecs that are
#: no charsets, under names that an API can send: `punycode` takes quadratic time, `idna` raises.
_CHARSETS: Final = frozenset(
    (
        *("latin1", "latin-1", "macintosh", "koi8-r", "koi8-u"),
        *(f"iso-8859-{number}" for number in range(1, 17) if number != 12),
        *(f"windows-125{number}" for number in range(9)),
        *("shift_jis", "euc-jp", "euc-kr", "big5", "gb2312", "gbk", "gb18030"),
        *("utf-16", "utf-16le", "utf-16be"),
    )
)


def read_answer(request: ApiRequest, status: str, media_type: str, body: bytes) -> ToolResult:
    """Convert the answer to a request into the result of its tool.

    Args:
        request: The request.
        status: Status and reason: `404 Not Found`.
        media_type: The media type of the body, with its parameters.
        body: The bytes.

    Returns:
        The result; with `is_error` unless the status is 2xx. An object of JSON is structured
        content, too.
    """
    kind = media_type.partition(";")[0].strip().lower()
    if not status.startswith("2"):
        shown = (
            _decode(body[: 4 * SHOWN], media_type)[:SHOWN] if (not kind or is_text(kind)) else ""
        )
        place = "" if not status.startswith("3") else "; redirects are not followed"
        return ToolResult.error(f"{request.label}: {status}{place}\n{shown}".strip())
    if not body:
        return ToolResult(status)
    if is_json(kind):
        return _read_json(request, body)
    if not kind or is_text(kind):
        return ToolResult(_decode(body, media_type))
    return ToolResult(_block(request, kind, body))


def _block(request: ApiRequest, kind: str, body: bytes) -> Content:
    """Make a block of bytes."""
    if kind.startswith("image/"):
        return Content.image(body, kind)
    if kind.startswith("audio/"):
        return Content.audio(body, kind)
    return Content.resource(ResourceContents(request.shown_url, kind, blob=body))


def _read_json(request: ApiRequest, body: bytes) -> ToolResult:
    try:
        value: object = json.loads(body)
        # A text as it is: a model reads it better without the marks of JSON.
        text = value if isinstance(value, str) else json_text(value)
    except (ValueError, RecursionError):
        return ToolResult.error(f"{request.label}: the answer says that it is JSON, and is not")
    # Up to 2025-11-25 structured content is an object.
    return ToolResult(text, value) if isinstance(value, dict) else ToolResult(text)


def _decode(body: bytes, media_type: str) -> str:
    """Decode a text; any charset outside of `_CHARSETS` is read as UTF-8."""
    for part in media_type.split(";")[1:]:
        name, _, value = part.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset in _CHARSETS:
            return body.decode(charset, "replace")
    return body.decode("utf-8", "replace")
