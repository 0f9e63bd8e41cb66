"""The HTTP headers that mirror a request of 2026-07-28: writing them, and comparing them.

Proxies route and limit by them without reading bodies, so a server must refuse a request whose
headers differ from its body: otherwise a caller could pass a proxy with one name and call another.
Source: 2026-07-28 `basic/transports/streamable-http`, "Standard Headers", "Custom Headers".
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from .._util import json_text
from .._value import JSONMapping
from ..jsonrpc import Request
from ..types import META_PROTOCOL_VERSION
from ._events import HttpHeaders

#: The parameter that `Mcp-Name` mirrors, by method; all other methods have no such header.
NAMED: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
# Compared exactly: `=?BASE64?` is an ordinary text.
_START: Final = "=?base64?"
_END: Final = "?="
# `float` also reads `nan`, `inf`, `1_0` and spaces, none of which mirrors a JSON number.
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?")
# Not None or a false value: 0, false and an empty text are arguments, and are mirrored.
_ABSENT: Final = object()


def read_header(headers: HttpHeaders, name: bytes) -> str | None:
    """Read a header, as text without white space around it; None if it was not sent.

    Args:
        headers: The headers of the request.
        name: Its name in lower case.
    """
    value = headers.get(name)
    # latin-1 has a character for each byte: no header fails to decode, and none is changed. Only
    # these two surround a value (RFC 9110 section 5.6.3); `strip()` alone would take a no-break
    # space as well.
    return None if value is None else value.decode("latin-1").strip(" \t")


def encode_value(value: str) -> str:
    """Write a text as the value of a header, in base64 if the text is unsafe there.

    Args:
        value: Any text.
    """
    # Spaces at the ends would be trimmed on the way; a text that looks encoded would be decoded.
    if _is_visible(value) and value.strip(" ") == value and not _is_encoded(value):
        return value
    return f"{_START}{base64.b64encode(value.encode()).decode()}{_END}"


def decode_value(text: str) -> str:
    """Read the value of a header.

    Args:
        text: The value, without white space around it.

    Raises:
        ValueError: The text claims to be base64 of UTF-8 and is not, or has characters that must be
            sent in base64.
    """
    if not _is_visible(text):
        raise ValueError("it has characters that must be sent in base64")
    if not _is_encoded(text):
        return text
    try:
        # `validate`: without it Python skips foreign characters, so two headers would mean one
        # name.
        return base64.b64decode(text[len(_START) : -len(_END)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"it is no base64 of UTF-8 text: {error}") from None


def _is_visible(text: str) -> bool:
    """Tell whether a text has no other characters than those from space to tilde."""
    return text.isascii() and text.isprintable()


def _is_encoded(text: str) -> bool:
    return text.startswith(_START) and text.endswith(_END) and len(text) >= len(_START + _END)


def standard_fault(request: Request, headers: HttpHeaders) -> str | None:
    """Describe a fault of `Mcp-Method` or `Mcp-Name` against the body; None if both are right."""
    method = read_header(headers, b"mcp-method")
    if method is None:
        return "Mcp-Method header is missing"
    # Names of headers ignore case, their values do not: `TOOLS/CALL` is another method.
    if method != request.method:
        return "Mcp-Method header differs from the method of the body"
    named = NAMED.get(request.method)
    if named is None:
        return None
    text = read_header(headers, b"mcp-name")
    if text is None:
        return "Mcp-Name header is missing"
    try:
        # Decoded first: the encoded form of a name is not unique.
        name = decode_value(text)
    except ValueError as error:
        return f"Mcp-Name header is invalid: {error}"
    return (
        None
        if name == (request.params or {}).get(named)
        else (f"Mcp-Name header differs from {named} of the body")
    )


def param_fault(
    declared: Mapping[str, tuple[str, ...]], arguments: JSONMapping, headers: HttpHeaders
) -> str | None:
    """Describe a fault of an `Mcp-Param-*` header against its argument; None if all are right.

    Args:
        declared: The path of the property that each header mirrors; other headers are ignored.
        arguments: The arguments, as sent.
        headers: The headers of the request.
    """
    for name, path in declared.items():
        # Names of headers ignore case; the transport has lowered them.
        text = read_header(headers, f"mcp-param-{name.lower()}".encode())
        fault = _fault(_value_at(arguments, path), text)
        if fault is not None:
            return f"Mcp-Param-{name} header {fault}"
    return None


def mirroring_headers(
    request: Request, declared: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> dict[str, str]:
    """Write the headers that mirror a request.

    Args:
        request: The request, with its revision in `_meta`.
        declared: The path of the property that each `Mcp-Param-*` header mirrors, by tool.
    """
    params = request.params or {}
    headers = {"Mcp-Method": request.method}
    meta = params.get("_meta")
    version = meta.get(META_PROTOCOL_VERSION) if isinstance(meta, dict) else None
    if isinstance(version, str):
        headers["MCP-Protocol-Version"] = version
    name = params.get(NAMED.get(request.method, ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
        if request.method == "tools/call":
            for header, path in declared.get(name, {}).items():
                value = _value_at(params.get("arguments"), path)
                if value is not _ABSENT:
                    headers[f"Mcp-Param-{header}"] = _text_of(value)
    return headers


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        # Before the numbers: True is an int.
        return "true" if value else "false"
    return encode_value(value if isinstance(value, str) else json_text(value))


def _fault(value: object, text: str | None) -> str | None:
    if value is _ABSENT:
        # A proxy would route by a value that the tool never sees.
        return None if text is None else "is sent without its argument"
    if text is None:
        return "is missing"
    try:
        same = _is_same(value, decode_value(text))
    except ValueError as error:
        return f"is invalid: {error}"
    return None if same else "differs from its argument"


def _value_at(arguments: object, path: tuple[str, ...]) -> Any:
    """Find an argument; null counts as absent: nothing mirrors it."""
    for name in path:
        if not isinstance(arguments, Mapping):
            return _ABSENT
        arguments = arguments.get(name)
    return _ABSENT if arguments is None else arguments


def _is_same(value: object, text: str) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        # Numerically: 42.0 is 42 (`streamable-http`, "Custom Headers").
        return _NUMBER.fullmatch(text) is not None and float(text) == value
    return bool(value == text)
