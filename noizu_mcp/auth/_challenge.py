"""`WWW-Authenticate`: formatting and parsing (RFC 9110 section 11.6.1, RFC 6750 section 3)."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

#: Maximum characters of a header. Real challenges have a few hundred.
MAX_CHALLENGE: Final = 16 * 1024

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_SPACE: Final = r"[ \t]*"
_NAME: Final = re.compile(_TOKEN)
_SKIP: Final = re.compile(r"[ \t,]*")
_SCHEME: Final = re.compile(rf"({_TOKEN})(?=[ \t,]|$){_SPACE}")
_TOKEN68: Final = r"[A-Za-z0-9\-._~+/]+=*"
_ONLY_TOKEN68: Final = re.compile(rf"({_TOKEN68}){_SPACE}(?=,|$)")
# A quoted string may hold anything but control characters. A value without quotes should be a
# token; URLs without quotes are read, too, since many servers forget the quotes.
_QUOTABLE: Final = r"[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]"
_QUOTED: Final = rf'"((?:{_QUOTABLE}|\\[\t \x21-\x7e\x80-\xff])*)"'
_PARAM: Final = re.compile(rf'({_TOKEN}){_SPACE}={_SPACE}(?:{_QUOTED}|([^\s,"]+)){_SPACE}(?=,|$)')
_SENDABLE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_ESCAPED: Final = re.compile(r"\\(.)")


def _as_params(params: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name.lower(): value for name, value in params.items()})


@attrs.frozen
class AuthChallenge:
    """One challenge of a `WWW-Authenticate` header.

    Attributes:
        scheme: The scheme, such as `Bearer`, as sent; it is case-insensitive.
        params: The parameters, names in lower case.
        token68: The value that schemes such as `Negotiate` send instead of parameters.
    """

    scheme: str
    params: Mapping[str, str] = attrs.field(factory=dict, converter=_as_params, hash=False)
    token68: str | None = None

    def is_scheme(self, name: str) -> bool:
        """Compare the scheme, ignoring case.

        Args:
            name: The scheme, in any case: `bearer`.

        Returns:
            True if the challenge has that scheme.
        """
        return self.scheme.lower() == name.lower()


def format_challenge(challenge: AuthChallenge) -> str:
    """Format a challenge as the value of a header. Every parameter is quoted.

    Args:
        challenge: The challenge.

    Returns:
        The value: `Bearer realm="mcp"`.

    Raises:
        ValueError: A name is not a token (RFC 9110 section 5.6.2), a value has characters that no
            header can carry, or there are parameters beside a token68.
    """
    for name in (challenge.scheme, *challenge.params):
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a token")
    if challenge.token68 is not None:
        if challenge.params or not re.fullmatch(_TOKEN68, challenge.token68):
            raise ValueError("a challenge has parameters or one token68, not both")
        return f"{challenge.scheme} {challenge.token68}"
    params = ", ".join(f"{name}={_quote(value)}" for name, value in challenge.params.items())
    return f"{challenge.scheme} {params}".rstrip()


def _quote(value: str) -> str:
    if not _SENDABLE.fullmatch(value):
        raise ValueError(f"no header can carry {value!r}")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def parse_challenges(value: str) -> list[AuthChallenge]:
    """Parse a `WWW-Authenticate` header; join several headers with commas first.

    Args:
        value: The value of the header, decoded as Latin-1.

    Returns:
        The challenges, in order; an empty list for an empty header.

    Raises:
        ValueError: It is malformed or longer than `MAX_CHALLENGE`.
    """
    if len(value) > MAX_CHALLENGE:
        raise ValueError(f"a challenge of more than {MAX_CHALLENGE} characters")
    found: list[AuthChallenge] = []
    at = _skip(value, 0)
    while at < len(value):
        scheme = _SCHEME.match(value, at)
        if scheme is None:
            raise ValueError(f"no scheme of a challenge at character {at}")
        at = scheme.end()
        if token68 := _ONLY_TOKEN68.match(value, at):
            found.append(AuthChallenge(scheme[1], {}, token68[1]))
            at = _skip(value, token68.end())
        else:
            params, at = _read_params(value, at)
            found.append(AuthChallenge(scheme[1], params))
    return found


def _skip(value: str, at: int) -> int:
    match = _SKIP.match(value, at)
    return at if match is None else match.end()


def _read_params(value: str, at: int) -> tuple[dict[str, str], int]:
    params: dict[str, str] = {}
    at = _skip(value, at)
    while match := _PARAM.match(value, at):
        name, quoted, bare = match[1].lower(), match[2], match[3]
        if name in params:
            raise ValueError(f"the parameter {name!r} comes twice")
        params[name] = bare if quoted is None else _ESCAPED.sub(r"\1", quoted)
        at = _skip(value, match.end())
    return params, at
