"""URI templates, matched: the characters of a URI that belong to each variable.

Theory of operation. A template becomes a row of nodes: fixed texts, some of which may be absent
together with the value behind them, and runs of characters. A table is filled from the end of the
URI to its beginning, then read forwards. So there is no backtracking: the time is linear in the
length of the URI, whatever its characters.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from .._value import Frozen
from ._expand import encode_reserved
from ._normal import normalize, normalize_escapes
from ._parse import OPERATORS, Expression, Operator, Variable

_ESCAPE: Final = rb"%([0-9A-Fa-f]{2})?"
# A step to the parent folder, for either kind of slash; or a control character.
_UNSAFE: Final = r"(?:^|[/\\])\.\.(?:[/\\]|\Z)|[\x00-\x1f\x7f-\x9f]"
_ABSOLUTE: Final = r"[/\\]|[A-Za-z]:[/\\]"
# A simple value ends where the next component of a URI begins (RFC 3986, section 3).
_COMPONENT_ENDS: Final = "/?#"
_NAMED: Final = (";", "?", "&")

#: Reads the values in the text of a span; ValueError if the text is not valid.
ReadValues = Callable[[str], dict[str, str | list[str]]]


class Fixed(Frozen):
    """A literal text.

    Attributes:
        text: The text as a URI has it.
        skip: The node to go on with if the text is absent; 0 if it must be present.
        other: Another text of equal length that may stand in its place; "" for none.
    """

    text: str
    skip: int = 0
    other: str = ""


class ValueSpan(Frozen):
    """One or more characters that hold the values of variables.

    Attributes:
        names: The variables.
        stops: Characters that never stand in it.
        pattern: Finds the longest runs without them.
        read: Takes the values out of the text.
        confined: True if an absolute path is no value of it, not even after decoding.
    """

    names: tuple[str, ...]
    stops: str
    pattern: re.Pattern[str]
    read: ReadValues
    confined: bool


Nodes = tuple[Fixed | ValueSpan, ...]


def decode(text: str) -> str:
    """Undo percent-encoding, once.

    Raises:
        ValueError: A percent sign encodes nothing, or the decoded bytes are not UTF-8.
    """
    return re.sub(_ESCAPE, _unescape, text.encode()).decode()


def _unescape(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        raise ValueError("a percent sign that encodes nothing")
    return bytes.fromhex(match[1].decode())


def is_unsafe(run: ValueSpan, values: Iterable[str | list[str]]) -> bool:
    """Tell whether a decoded value could lead a careless handler out of its directory."""
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    # An absolute path would replace the folder that a handler puts before it.
    return any(
        re.search(_UNSAFE, text) or (run.confined and re.match(_ABSOLUTE, text)) for text in texts
    )


# From a template to its nodes


def read_nodes(parts: Sequence[str | Expression]) -> tuple[Nodes, tuple[str, ...]]:
    """Prepare a template for matching.

    Args:
        parts: The template, parsed.

    Returns:
        Its nodes; then the reasons why values could not be told from its URIs, if there are any.
    """
    compiler = _Compiler(parts)
    for index, part in enumerate(parts):
        if isinstance(part, str):
            text = encode_reserved(part)
            normal = normalize_escapes(text) if index else normalize(text)
            compiler.nodes.append(Fixed(text=normal))
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
        self.nodes: list[Fixed | ValueSpan] = []
        self.faults: list[str] = []

    def named(self, index: int, part: Expression) -> None:
        """Add parameters; they come in any order, and any of them may be absent."""
        if part.operator == "&" and self._operator(index - 1) in ("?", "&"):
            return  # `{?a}{&b}` is one row of parameters
        variables = list(part.variables)
        for after in self.parts[index + 1 :] if part.operator != ";" else ():
            if isinstance(after, str) or after.operator != "&":
                break
            variables += after.variables
        row = OPERATORS[part.operator]
        stops = _COMPONENT_ENDS if part.operator == ";" else "#"
        skip, other = len(self.nodes) + 2, self._leads(index)[1:]
        self.nodes.append(Fixed(text=row.lead, skip=skip, other=other))
        names = tuple(variable.name for variable in variables)
        self._add(names, stops, _read_parameters(row.sep, variables), row.lead)

    def unnamed(self, index: int, part: Expression) -> None:
        """Add values that follow each other; behind a lead, the last ones may be absent."""
        row = OPERATORS[part.operator]
        end = len(self.nodes) + 2 * len(part.variables) if row.lead else 0
        # A value behind the slash of a directory: an absolute path would leave the directory.
        before = self._before(index)
        in_directory = (
            isinstance(before, str) and before.endswith("/") and not before.endswith("://")
        )
        confined = part.operator in ("", ".", "/") or in_directory
        text = row.lead
        for variable in part.variables:
            if text:
                self.nodes.append(Fixed(text=text, skip=end))
            stops = self._stops(index, part, variable)
            self._add((variable.name,), stops, _read_value(row, variable), text, confined=confined)
            text = row.sep

    def _before(self, index: int) -> str | Expression:
        return self.parts[index - 1] if index else ""

    def _operator(self, index: int) -> str:
        part = self.parts[index] if 0 <= index < len(self.parts) else ""
        return part.operator if isinstance(part, Expression) else ""

    def _leads(self, index: int) -> str:
        """Return the characters that the parameters at a place may begin with."""
        part = self._operator(index)
        if part not in _NAMED:
            return ""
        # With all of `{?a}` absent, `{?a}{&b}` expands to `&b=…`. In `{+var}` before it, an
        # ampersand would not be told from one of the value.
        both = part == "?" and self._operator(index + 1) == "&" and self._operator(index - 1) != "+"
        return "?&" if both else part

    def _stops(self, index: int, part: Expression, variable: Variable) -> str:
        row = OPERATORS[part.operator]
        if row.reserved:
            later = {p.operator for p in self.parts[index + 1 :] if isinstance(p, Expression)}
            stops = "".join({"?", "#"} & later)
        else:
            stops = _COMPONENT_ENDS + self._leads(index + 1)
            if any("?" in before for before in self.parts[:index] if isinstance(before, str)):
                stops += "&"  # parameters that are written out: ?q={q}&lang={lang}
        if variable.explode:
            return stops.replace(row.sep, "")
        label = part.operator == "." and isinstance(self._before(index), Expression)
        return stops + row.sep if label or len(part.variables) > 1 else stops

    def _add(
        self,
        names: tuple[str, ...],
        stops: str,
        read: ReadValues,
        lead: str,
        *,
        confined: bool = False,
    ) -> None:
        # Without a text between them that neither may hold, two runs cannot be told apart.
        before = self.nodes[-2:-1] if lead else self.nodes[-1:]
        for run in before:
            if isinstance(run, ValueSpan) and (not lead or lead not in run.stops + stops):
                self.faults.append(
                    f"the variables {run.names[-1]!r} and {names[0]!r} cannot be told apart; put a"
                    " text between them"
                )
        pattern = re.compile(f"[^{re.escape(stops)}]+" if stops else r"(?s:.)+")
        self.nodes.append(
            ValueSpan(names=names, stops=stops, pattern=pattern, read=read, confined=confined)
        )


def _read_value(row: Operator, variable: Variable) -> ReadValues:
    name, prefix, sep = variable.name, variable.prefix, row.sep
    if variable.explode:
        return lambda text: {name: [decode(item) for item in text.split(sep)]}
    return lambda text: {name: _cut(decode(text), prefix)}


def _cut(value: str, prefix: int | None) -> str:
    if prefix is not None and len(value) > prefix:
        raise ValueError("longer than the prefix that the template writes")
    return value


def _read_parameters(sep: str, variables: Sequence[Variable]) -> ReadValues:
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


# From a URI to the text of each run


def find_runs(nodes: Nodes, uri: str) -> list[tuple[ValueSpan, str]] | None:
    """Find the characters of each run.

    Args:
        nodes: The template.
        uri: All of it must match.

    Returns:
        The runs that are present, each with its text, as long as the rest allows; None if the
        template has no such URI.
    """
    table = _MatchTable(nodes, uri)
    if not table.starts[0][0]:
        return None
    found: list[tuple[ValueSpan, str]] = []
    index = at = 0
    while index < len(nodes):
        node = nodes[index]
        if isinstance(node, ValueSpan):
            end = table.end(index, node, at)
            found.append((node, uri[at:end]))
            index, at = index + 1, end
        elif table.kept[index][at]:
            index, at = index + 1, at + len(node.text)
        else:
            index = node.skip
    return found


class _MatchTable:
    """Places at which each node may start so that it and all that follows match.

    Attributes:
        starts: For each node, and for the end, a flag for each place in the URI.
        kept: Like `starts`, but without the places where the node is skipped.
    """

    def __init__(self, nodes: Nodes, uri: str) -> None:
        self.uri = uri
        end = bytearray(len(uri) + 1)
        end[-1] = 1
        self.starts = [end] * (len(nodes) + 1)
        self.kept = [end] * (len(nodes) + 1)
        for index in range(len(nodes) - 1, -1, -1):
            node = nodes[index]
            after = self.starts[index + 1]
            flags = self.starts[index] = self.kept[index] = bytearray(len(after))
            if isinstance(node, ValueSpan):
                self._mark_run(node, after, flags)
                continue
            self._mark_fixed(node, after, flags)
            if node.skip:
                pairs = zip(flags, self.starts[node.skip], strict=True)
                self.starts[index] = bytearray(a | b for a, b in pairs)

    def _mark_fixed(self, node: Fixed, after: bytearray, flags: bytearray) -> None:
        for text in filter(None, (node.text, node.other)):
            at = self.uri.find(text)
            while at >= 0:
                flags[at] = after[at + len(text)]
                at = self.uri.find(text, at + 1)

    def _mark_run(self, node: ValueSpan, after: bytearray, flags: bytearray) -> None:
        for match in node.pattern.finditer(self.uri):
            start, end = match.span()
            last = after.rfind(1, start + 1, end + 1)
            if last >= 0:
                flags[start:last] = b"\1" * (last - start)

    def end(self, index: int, node: ValueSpan, at: int) -> int:
        """Return the last place where a run that starts at a place may end."""
        match = node.pattern.match(self.uri, at)
        limit = match.end() + 1 if match else at
        # A part that may be absent is present if it can be: `{name}{.extension}` of "a.b" is both.
        end = self.kept[index + 1].rfind(1, at + 1, limit)
        return end if end >= 0 else self.starts[index + 1].rfind(1, at + 1, limit)
