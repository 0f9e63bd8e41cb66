"""Checks of the options of verifiers and of `BearerAuth`, at construction.

A wrong option would be a silent security hole. For example, NaN is neither above nor below any
number, so with a `leeway` of NaN a token would never expire.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import SplitResult, urlsplit

from .._util import is_number

# `urlsplit` drops tabs and newlines, and programs treat quotes and backslashes differently.
_PLAIN: Final = re.compile(r"[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+")


@contextmanager
def needs_pyjwt(purpose: str) -> Iterator[None]:
    """Explain an import that fails without PyJWT, which only some options need.

    Args:
        purpose: The purpose of the import, for the message.

    Raises:
        ImportError: PyJWT is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{purpose} needs PyJWT: pip install 'noizu-mcp[auth]'") from error


def read_seconds(value: object, name: str, *, zero: bool = False) -> float:
    """Read an option that is a duration.

    Args:
        value: The value.
        name: The name of the option, for the message.
        zero: True if 0 is allowed.

    Raises:
        ValueError: It is not a number, infinite, or too small.
    """
    if not is_number(value) or value < 0 or not (value or zero):
        bound = "of 0 or more" if zero else "above 0"
        raise ValueError(f"{name} must be a number of seconds {bound}, not {value!r}")
    return float(value)


def read_count(value: object, name: str, *, zero: bool = False) -> int:
    """Read an option that is a count; see `read_seconds`.

    Raises:
        ValueError: It is not a whole number, or too small.
    """
    if type(value) is not int or value < (0 if zero else 1):
        bound = "of 0 or more" if zero else "above 0"
        raise ValueError(f"{name} must be a whole number {bound}, not {value!r}")
    return value


def read_claims(value: Iterable[str], name: str) -> tuple[str, ...]:
    """Read an option that is a list of claim names.

    Raises:
        ValueError: It is a single string, which Python would treat as a list of letters, or an item
            is not a name.
    """
    given: tuple[object, ...] = () if isinstance(value, str) else tuple(value)
    names = tuple(each for each in given if isinstance(each, str) and each)
    if isinstance(value, str) or len(names) < len(given):
        raise ValueError(
            f"{name} must be a list of names of claims, such as ['sub'], not {value!r}"
        )
    return names


def read_text(value: object, name: str) -> str:
    """Read an option that is a string; the message does not show it, since it may be a secret.

    Raises:
        ValueError: It is not a string, or empty.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a string, and not empty")
    return value


def check_url(url: object, name: str, *, query: bool = True) -> SplitResult:
    """Check a URL to or from which tokens, keys or secrets are sent.

    Args:
        url: The URL.
        name: Its purpose, for the message.
        query: True if it may have a query.

    Returns:
        The parts of the URL.

    Raises:
        ValueError: It is not absolute, not https (http is accepted for loopback addresses), or has
            a fragment or a user.
    """
    if not isinstance(url, str) or not _PLAIN.fullmatch(url):
        raise ValueError(f"{name} {url!r} is not a URL")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{name} {url!r} is not a URL: {error}") from None
    if problem := _problem(url, parts, host, query=query):
        raise ValueError(f"{name} {url!r} {problem}")
    return parts


def _problem(url: str, parts: SplitResult, host: str | None, *, query: bool) -> str | None:
    if not host or not parts.scheme:
        return "must be absolute: https://host/path"
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        return "must be https; http is for loopback addresses only"
    if "@" in parts.netloc:
        return "must not name a user"
    # `urlsplit` returns the same for an empty fragment or query as for a missing one.
    if "#" in url:
        return "must have no fragment"
    if "?" in url and not query:
        return "must have no query"
    return None


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine.

    Args:
        host: A name or an address.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
