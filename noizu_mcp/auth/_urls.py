"""URLs of a configuration: absolute, https, and nothing that could mean two things."""

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

# `urlsplit` takes away tabs and newlines; quotes and backslashes mean different things to programs.
_PLAIN: Final = re.compile(r"[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+")


def check_url(url: str, what: str, *, query: bool = True) -> SplitResult:
    """Check a URL that tokens, keys or secrets travel to or from.

    Args:
        url: The URL.
        what: What it is, for the message.
        query: Whether it may have one.

    Returns:
        Its parts.

    Raises:
        ValueError: It is not absolute, not https (http is taken for loopback addresses), or has a
            fragment or a user.
    """
    given: object = url
    if not isinstance(given, str) or not _PLAIN.fullmatch(given):
        raise ValueError(f"{what} {url!r} is no URL")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{what} {url!r} is no URL: {error}") from None
    if problem := _problem(url, parts, host, query=query):
        raise ValueError(f"{what} {url!r} {problem}")
    return parts


def _problem(url: str, parts: SplitResult, host: str | None, *, query: bool) -> str | None:
    if not host or not parts.scheme:
        return "must be absolute: https://host/path"
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        return "must be https; http is for loopback addresses only"
    if "@" in parts.netloc:
        return "must not name a user"
    # `urlsplit` does not tell an empty fragment or query from none.
    if "#" in url:
        return "must have no fragment"
    if "?" in url and not query:
        return "must have no query"
    return None


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address is this machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
