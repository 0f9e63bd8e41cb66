"""A server that runs elsewhere: its URL, and the headers that go along."""

import re
from collections.abc import Iterable
from typing import Final

from ..transports import Http
from ._errors import USAGE, CommandError

#: A name of a header is a token (RFC 9110 section 5.1); `:` or `=` ends it, whichever comes first.
_HEADER: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ ]*[:=][ ]*([\x20-\x7e\t]*)")


def is_url(target: str) -> bool:
    """Tell a URL from a module and a file."""
    return "://" in target


def read_url(url: str, headers: Iterable[str]) -> Http:
    """Read what names a server that is spoken to over HTTP.

    Args:
        url: Its URL.
        headers: `NAME=VALUE` or `NAME: VALUE` each; the last one of a name counts.

    Raises:
        CommandError: It is no URL of a server, or one is no header.
    """
    try:
        return Http(url, headers=dict(map(_header, headers)))
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error


def _header(text: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(text)
    if found is None:  # what it says may be a secret
        raise CommandError("write headers as NAME=VALUE or 'NAME: VALUE', in ASCII", USAGE)
    name, value = found.groups()
    return name.lower(), value.strip()
