"""URI templates, prepared for matching: expressions → nodes, and what could not be told apart."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from ._expand import encode_reserved
from ._match import Fixed, Nodes, Read, Run, decode
from ._parse import OPERATORS, Expression, Operator, Variable

# A simple value ends where the next component of a URI begins (RFC 3986, section 3).
_COMPONENT_ENDS: Final = "/?#"
_NAMED: Final = (";", "?", "&")


def read_nodes(parts: Sequence[str | Expression]) -> tuple[Nodes, tuple[str, ...]]:
    """Prepare a template for matching.

    Args:
        parts: The template, read.

    Returns:
        Its nodes; then why values could not be told from its URIs, if so.
    """
    compiler = _Compiler(parts)
    for index, part in enumerate(parts):
        if isinstance(part, str):
            compiler.nodes.append(Fixed(encode_reserved(part)))
        elif part.operator in _NAMED:
            compiler.named(index, part)
        else:
            compiler.unnamed(index, part)
    names = Counter(v.name for p in parts if isinstance(p, Expression) for v in p.variables)
    twice = [
        f"the variable {name!r} stands in it {count} times; give each a name of its own"
        for name, count in names.items()
        if count > 1
    ]
    return tuple(compiler.nodes), (*twice, *compiler.faults)


class _Compiler:
    def __init__(self, parts: Sequence[str | Expression]) -> None:
        self.parts = parts
        self.nodes: list[Fixed | Run] = []
        self.faults: list[str] = []

    def named(self, index: int, part: Expression) -> None:
        """Add parameters; they come in any order, and any of them may be absent."""
        before = self.parts[index - 1] if index else ""
        if (
            part.operator == "&"
            and isinstance(before, Expression)
            and before.operator in ("?", "&")
        ):
            return  # `{?a}{&b}` is one row of parameters
        variables = list(part.variables)
        for after in self.parts[index + 1 :] if part.operator != ";" else ():
            if isinstance(after, str) or after.operator != "&":
                break
            variables += after.variables
        row = OPERATORS[part.operator]
        stops = _COMPONENT_ENDS if part.operator == ";" else "#"
        self.nodes.append(Fixed(row.lead, len(self.nodes) + 2, self._leads(index)[1:]))
        names = tuple(variable.name for variable in variables)
        self._add(names, stops, _read_parameters(row.sep, variables), row.lead)

    def unnamed(self, index: int, part: Expression) -> None:
        """Add values that follow each other; behind a lead, the last ones may be absent."""
        row = OPERATORS[part.operator]
        end = len(self.nodes) + 2 * len(part.variables) if row.lead else 0
        text = row.lead
        for variable in part.variables:
            if text:
                self.nodes.append(Fixed(text, end))
            stops = self._stops(index, part, variable)
            confined = part.operator in ("", ".", "/") or self._in_directory(index)
            self._add((variable.name,), stops, _read_value(row, variable), text, confined=confined)
            text = row.sep

    def _in_directory(self, index: int) -> bool:
        """Tell if a value stands behind the slash of a directory: an absolute path leaves it."""
        before = self.parts[index - 1] if index else ""
        return isinstance(before, str) and before.endswith("/") and not before.endswith("://")

    def _leads(self, index: int) -> str:
        """Give the characters that the parameters at a place may begin with."""
        part, after = (self._operator(place) for place in (index, index + 1))
        if part not in _NAMED:
            return ""
        # With all of `{?a}` absent, `{?a}{&b}` expands to `&b=…`. In `{+var}` before it, an
        # ampersand would not be told from one of the value.
        before = self._operator(index - 1) if index else ""
        return "?&" if part == "?" and after == "&" and before != "+" else part

    def _operator(self, index: int) -> str:
        part = self.parts[index] if index < len(self.parts) else ""
        return part.operator if isinstance(part, Expression) else ""

    def _stops(self, index: int, part: Expression, variable: Variable) -> str:
        row = OPERATORS[part.operator]
        if row.reserved:
            later = {p.operator for p in self.parts[index + 1 :] if isinstance(p, Expression)}
            stops = "".join({"?", "#"} & later)
        else:
            stops = _COMPONENT_ENDS
            stops += self._leads(index + 1)
            if any("?" in before for before in self.parts[:index] if isinstance(before, str)):
                stops += "&"  # parameters that are written out: ?q={q}&lang={lang}
        if variable.explode:
            return stops.replace(row.sep, "")
        before = self.parts[index - 1] if index else ""
        label = part.operator == "." and isinstance(before, Expression)
        return stops + row.sep if label or len(part.variables) > 1 else stops

    def _add(
        self,
        names: tuple[str, ...],
        stops: str,
        read: Read,
        lead: str,
        *,
        confined: bool = False,
    ) -> None:
        run = Run(names, stops, read, confined=confined)
        self._check(run, lead)
        self.nodes.append(run)

    def _check(self, run: Run, lead: str) -> None:
        """Note when nothing says where the variable before ends and this one begins."""
        before = self.nodes[-2:] if lead else [*self.nodes[-1:], None]
        if len(before) == 2 and isinstance(before[0], Run):
            taken = before[0].stops + run.stops
            if not lead or lead not in taken:
                self.faults.append(
                    f"the variables {before[0].names[-1]!r} and {run.names[0]!r} cannot be told"
                    " apart; put a text between them"
                )


def _read_value(row: Operator, variable: Variable) -> Read:
    name, prefix, sep = variable.name, variable.prefix, row.sep
    if variable.explode:
        return lambda text: {name: [decode(item) for item in text.split(sep)]}
    return lambda text: {name: _cut(decode(text), prefix)}


def _cut(value: str, prefix: int | None) -> str:
    if prefix is not None and len(value) > prefix:
        raise ValueError("longer than the prefix that the template writes")
    return value


def _read_parameters(sep: str, variables: Sequence[Variable]) -> Read:
    known = {variable.name: variable for variable in variables}

    def read(text: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for pair in text.split(sep):
            name, _, value = pair.partition("=")
            variable = known.get(name)
            if variable is None or (name in values and not variable.explode):
                raise ValueError("a parameter that is not declared, or not twice")
            if variable.explode:
                values.setdefault(name, []).append(decode(value))
            else:
                values[name] = _cut(decode(value), variable.prefix)
        return values

    return read
