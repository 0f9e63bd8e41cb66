"""`UriTemplate`: URIs with variables in them (RFC 6570, level 4), filled in and turned round."""

from collections.abc import Mapping
from typing import Any, Final

from ._expand import expand
from ._match import Fixed, find_runs, is_unsafe, read_nodes
from ._normal import normalize
from ._parse import Expression, parse

#: Longest URI that is matched, in characters; RFC 9110, section 4.1, asks for at least 8000.
MAX_URI: Final = 8 * 1024


class UriTemplate:
    """A URI template: `db://{table}/schema`, `file:///{+path}`, `search://{index}{?q,limit}`.

    Attributes:
        text: The template as it was written.
        variables: The names of its variables, in order, each once.
        lists: The variables with `*`, which match lists.
        optional: The variables behind `# . / ; ? &`, which a URI may leave out.
        traversal: True if values that could lead out of a directory match.
        faults: Reasons why URIs cannot be matched; the template can still be expanded.

    Args:
        text: The template.
        traversal: True to let such values through; the handler must then check them.

    Raises:
        ValueError: It is not a URI template; the message names the place.
    """

    __slots__ = (
        "_nodes",
        "_parts",
        "_start",
        "faults",
        "lists",
        "optional",
        "text",
        "traversal",
        "variables",
    )

    def __init__(self, text: str, *, traversal: bool = False) -> None:
        self.text = text
        self.traversal = traversal
        self._parts = parse(text)
        found = [
            (p.operator, v) for p in self._parts if isinstance(p, Expression) for v in p.variables
        ]
        self.variables = tuple(dict.fromkeys(variable.name for _, variable in found))
        self.lists = frozenset(variable.name for _, variable in found if variable.explode)
        self.optional = frozenset(v.name for operator, v in found if operator not in ("", "+"))
        self._nodes, self.faults = read_nodes(self._parts)
        first = self._nodes[0] if self._nodes else Fixed(text="")
        # Every URI of the template begins with this text: all others need no table.
        self._start = first.text if isinstance(first, Fixed) and not first.skip else ""

    def __repr__(self) -> str:
        return f"UriTemplate({self.text!r})"

    def expand(self, values: Mapping[str, object]) -> str:
        """Fill in the variables (RFC 6570, section 3).

        Args:
            values: Texts, numbers, booleans, lists and mappings of these, or None, by the names of
                the variables. None, an empty list and a name that is not there are left out.

        Returns:
            The URI.

        Raises:
            TypeError: A value is of another type.
            ValueError: A list or a mapping for a variable with a prefix, or a lone surrogate.
        """
        return expand(self._parts, values)

    def match(self, uri: str) -> dict[str, Any] | None:
        """Find the values that expand to a URI.

        `{var}` matches one or more characters, never a `/`; `{+var}` and `{/var*}` may. Parameters
        of `{?a,b}` come in any order, and parameters that the template does not name match nothing.
        Values are percent-decoded, once. A value with `..` between slashes of either kind, a
        control character or, in one segment or behind a `/`, an absolute path matches nothing,
        unless the template allows traversal.

        Args:
            uri: The whole URI, as a client sent it; it is compared in its normal form.

        Returns:
            The values by name: texts, and lists for variables with `*`; optional ones that are
            absent are left out. None if it is no URI of this template, or longer than 8 KiB.

        Raises:
            ValueError: The template has faults.
        """
        if self.faults:
            raise ValueError(f"{self.text!r} cannot be matched: {'; '.join(self.faults)}")
        # First: the table takes memory for each character and node.
        if len(uri) > MAX_URI:
            return None
        uri = normalize(uri)
        if not uri.startswith(self._start):
            return None
        found = find_runs(self._nodes, uri)
        if found is None:
            return None
        try:
            read = [(run, run.read(text)) for run, text in found]
        except ValueError:
            return None
        # After decoding: `%2e%2e%2f` leads out of a folder, too.
        if not self.traversal and any(is_unsafe(run, values.values()) for run, values in read):
            return None
        return {name: value for _, values in read for name, value in values.items()}
