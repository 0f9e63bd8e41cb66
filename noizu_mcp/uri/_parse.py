"""URI templates, read: text → literals and expressions (RFC 6570, section 2)."""

import re
from typing import Final, NoReturn

from .._value import Frozen


class Operator(Frozen):
    """An operator: one row of the table in appendix A of RFC 6570.

    Attributes:
        lead: The text before the first value.
        sep: The text between values.
        named: True if each value stands behind its name.
        if_empty: The text behind the name of an empty value.
        reserved: True if reserved characters are not encoded.
    """

    lead: str
    sep: str
    named: bool = False
    if_empty: str = ""
    reserved: bool = False


OPERATORS: Final = {
    "": Operator(lead="", sep=","),
    "+": Operator(lead="", sep=",", reserved=True),
    "#": Operator(lead="#", sep=",", reserved=True),
    ".": Operator(lead=".", sep="."),
    "/": Operator(lead="/", sep="/"),
    ";": Operator(lead=";", sep=";", named=True),
    "?": Operator(lead="?", sep="&", named=True, if_empty="="),
    "&": Operator(lead="&", sep="&", named=True, if_empty="="),
}
# Section 2.2 reserves these for later versions of the standard.
_LATER: Final = "=,!@|"

_NAME: Final = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+"
_VARIABLE: Final = (
    rf"(?P<name>{_NAME}(?:\.{_NAME})*)(?::(?P<prefix>[1-9][0-9]{{0,3}})|(?P<explode>\*))?"
)
# Section 2.1: characters that a literal cannot hold. The apostrophe is allowed by erratum 6937.
_BAD_LITERAL: Final = r'[\x00-\x20"<>\\^`{|}\x7f-\x9f]|%(?![0-9A-Fa-f]{2})'


class Variable(Frozen):
    """A variable as an expression writes it: `{name}`, `{name:3}`, `{name*}`."""

    name: str
    prefix: int | None
    explode: bool


class Expression(Frozen):
    """The contents of a pair of braces.

    Attributes:
        operator: The key of its row in `OPERATORS`.
        variables: At least one.
    """

    operator: str
    variables: tuple[Variable, ...]


def parse(text: str) -> tuple[str | Expression, ...]:
    """Read a URI template.

    Args:
        text: The template.

    Returns:
        Its literals, as written, and its expressions, in order.

    Raises:
        ValueError: It is not a URI template; the message names the place.
    """
    parts: list[str | Expression] = []
    at = 0
    while at < len(text):
        if text[at] == "{":
            end = text.find("}", at)
            if end < 0:
                _fail(text, at, "'{' is never closed; write '}' behind the variable")
            parts.append(_expression(text, at, text[at + 1 : end]))
            at = end + 1
        else:
            end = text.find("{", at)
            end = len(text) if end < 0 else end
            _check_literal(text, at, end)
            parts.append(text[at:end])
            at = end
    return tuple(parts)


def _check_literal(text: str, start: int, end: int) -> None:
    bad = re.compile(_BAD_LITERAL).search(text, start, end)
    if bad is None:
        return
    if bad[0] == "}":
        _fail(text, bad.start(), "'}' closes nothing; write '{' before the variable")
    if bad[0] == "%":
        _fail(text, bad.start(), "'%' needs two hexadecimal digits; write %25 for a percent sign")
    _fail(text, bad.start(), f"{bad[0]!r} cannot stand in a URI; percent-encode it")


def _expression(text: str, at: int, inner: str) -> Expression:
    # The operator is one character; without one the expression is a simple expansion.
    operator = inner[:1] if inner[:1] and inner[0] in OPERATORS else ""
    if inner[:1] and inner[0] in _LATER:
        _fail(text, at, f"{inner[0]!r} is no operator; there are: + # . / ; ? &")
    variables: list[Variable] = []
    for written in inner[len(operator) :].split(","):
        match = re.fullmatch(_VARIABLE, written)
        if match is None:
            _fail(
                text,
                at,
                f"{written!r} is no variable; write a name of A-Z a-z 0-9 and _, with :3 behind it"
                " for a prefix or * for a list",
            )
        prefix = int(match["prefix"]) if match["prefix"] else None
        explode = match["explode"] is not None
        variables.append(Variable(name=match["name"], prefix=prefix, explode=explode))
    return Expression(operator=operator, variables=tuple(variables))


def _fail(text: str, at: int, problem: str) -> NoReturn:
    raise ValueError(f"at {at + 1} in {text!r}: {problem}")
