"""The target of a request that is written with its host (RFC 9112 section 3.2.2)."""

import re
from typing import Final

Headers = list[tuple[bytes, bytes]]

_ABSOLUTE: Final = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE)


def origin_form(target: bytes, headers: Headers) -> tuple[bytes, Headers] | None:
    """Take the host out of a target.

    It must be the one of `Host`. A server should ignore that header then, but whoever stands in
    front, or looks at the header later, may not: two hosts are one too many.

    Args:
        target: The target, as it was received.
        headers: The headers; names are in lower case.

    Returns:
        The target from its path on, and headers with a `Host`; None if there are two hosts, or
        none.
    """
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        return target, headers
    host, rest = match.groups()
    named = [value.lower() for name, value in headers if name == b"host"]
    if not host or named not in ([], [host.lower()]):
        return None
    # HTTP/1.0 knows no `Host`.
    headers = headers if named else [(b"host", host), *headers]
    return (rest if rest.startswith(b"/") else b"/" + rest), headers
