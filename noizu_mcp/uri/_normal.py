"""The normal form of a URI, so that two spellings of one URI are compared as equal."""

import re
from typing import Final

_ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})?")
_HEAD: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)(?://(?:[^/?#]*@)?([^/?#]*))?")
#: Characters that mean the same with and without an escape (RFC 3986, section 2.3).
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: Schemes whose host is a name of DNS. In other schemes the place of the host often holds data,
#: as in `notes://Inbox/1`, and its case matters.
_WITH_DNS: Final = frozenset({"ftp:", "http:", "https:", "ws:", "wss:"})


def normalize(uri: str) -> str:
    """Write a URI in its normal form (RFC 3986, sections 6.2.2.1 and 6.2.2.2).

    The scheme has small letters, as has the host of `http`, `https`, `ws`, `wss` and `ftp`. Escapes
    of letters, digits and `-._~` are decoded; other escapes have capital letters.

    Args:
        uri: The URI; or its beginning, as of a template.

    Returns:
        The same URI in normal form; a text with a percent sign that encodes nothing is no URI, and
        is returned as it is.
    """
    try:
        uri = normalize_escapes(uri)
    except ValueError:
        return uri
    found = _HEAD.match(uri)
    if found is None:
        return uri
    scheme = found[1].lower()
    uri = scheme + uri[len(scheme) :]
    if scheme in _WITH_DNS and found[2]:
        start, end = found.span(2)
        uri = uri[:start] + normalize_escapes(found[2].lower()) + uri[end:]
    return uri


def normalize_escapes(text: str) -> str:
    """Write the escapes of a part of a URI in their normal form; see `normalize`.

    Raises:
        ValueError: A percent sign encodes nothing.
    """
    # A decoded character never begins an escape: the percent sign is not unreserved, and every
    # percent sign of the text has its two digits.
    return _ESCAPE.sub(_write, text) if "%" in text else text


def _write(escape: re.Match[str]) -> str:
    if escape[1] is None:
        raise ValueError("a percent sign that encodes nothing")
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()
