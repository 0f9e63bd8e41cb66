"""URI templates, read: text → literals and expressions (RFC 6570, section 2)."""

import re
from typing import Final, NoReturn


# Plain classes and late patterns here: templates are in few programs, this import in all.
class Operator:
    """What a row of the table in appendix A of RFC 6570 says about an operator.

    Attributes:
        lead: What stands before the first value.
        sep: What stands between values.
        named: Whether values stand behind their names.
        if_empty: What stands behind the name of an empty value.
        reserved: Whether reserved characters stay as they are.
    """

    __slots__ = ("if_empty", "lead", "named", "reserved", "sep")

    def __init__(
        self,
        lead: str,
        sep: str,
        *,
        named: bool = False,
        if_empty: str = "",
        reserved: bool = False,
    ) -> None:
        self.lead = lead
        self.sep = sep
        self.named = named
        self.if_empty = if_empty
        self.reserved = reserved


OPERATORS: Final = {
    "": Operator("", ","),
    "+": Operator("", ",", reserved=True),
    "#": Operator("#", ",", reserved=True),
    ".": Operator(".", "."),
    "/": Operator("/", "/"),
    ";": Operator(";", ";", named=True),
    "?": Operator("?", "&", named=True, if_empty="="),
    "&": Operator("&", "&", named=True, if_empty="="),
}
# Section 2.2: kept for later, so that nobody can mean them now.
_LATER: Final = "=,!@|"

_NAME: Final = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+"
_VARIABLE: Final = (
    rf"(?P<name>{_NAME}(?:\.{_NAME})*)(?::(?P<prefix>[1-9][0-9]{{0,3}})|(?P<explode>\*))?"
)
# Section 2.1: what a literal cannot hold. The apostrophe is allowed by erratum 6937.
_BAD_LITERAL: Final = r'[\x00-\x20"<>\\^`{|}\x7f-\x9f]|%(?![0-9A-Fa-f]{2})'


class Variable:
    """A variable as an expression writes it: `{name}`, `{name:3}`, `{name*}`."""

    __slots__ = ("explode", "name", "prefix")

    def __init__(self, name: str, prefix: int | None, *, explode: bool) -> None:
        self.name = name
        self.prefix = prefix
        self.explode = explode


class Expression:
    """What stands between braces.

    Attributes:
        operator: The key of its row in `OPERATORS`.
        variables: At least one.
    """

    __slots__ = ("operator", "variables")

    def __init__(self, operator: str, variables: tuple[Variable, ...]) -> None:
        self.operator = operator
        self.variables = variables


def parse(text: str) -> tuple[str | Expression, ...]:
    """Read a URI template.

    Args:
        text: The template.

    Returns:
        Its literals, as written, and its expressions, in order.

    Raises:
        ValueError: It is none; the message names the place.
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
        variables.append(Variable(match["name"], prefix, explode=bool(match["explode"])))
    return Expression(operator, tuple(variables))


def _fail(text: str, at: int, problem: str) -> NoReturn:
    raise ValueError(f"at {at + 1} in {text!r}: {problem}")
