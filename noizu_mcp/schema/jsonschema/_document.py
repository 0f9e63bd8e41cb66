"""A schema document, walked once: its nodes, references, cost and faults.

A node is a schema object. Everything that a class statement or an engine asks of a schema is read
from the one list of nodes, so that no part of a schema is looked for twice.

The cost is counted on the graph of nodes, where nesting and references are edges: work doubles at
each level of a chain in which each node refers twice to the next. A node that leads back to itself
counts once: the engines remember their verdicts, and the depth of the value bounds the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from json import dumps
from math import inf
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from ..._errors import SchemaError
from ..._nearest import nearest
from ..._pointer import Path, unescape
from ..._value import JSONObject
from ._keywords import DIALECTS, LATEST, RULES, dialect_of, keyword_faults, subschemas, walk
from ._values import find_not_json
from ._violation import Fault, show

KIB = 1024

# The largest tool schema seen in the wild is a few dozen KiB; a megabyte is an attack or a mistake.
MAX_SCHEMA_SIZE = 256 * KIB
# Deeper schemas are not written by people, and the engines recurse: the native one stops near 255.
MAX_SCHEMA_DEPTH = 64
# Nodes visited for one value. 1e5 take about 10 ms natively; doubling reaches 1e60 in a page.
MAX_SCHEMA_COST = 100_000
# Our own schemas may be deeper, but the native engine gives up near 255.
MAX_TRUSTED_DEPTH = 200

#: Compiles a regular expression; raises ValueError if it is not one.
CompilePattern = Callable[[str], object]

# The metaschemas: the native engine has them built in.
_STANDARD = ("https://json-schema.org/draft", "http://json-schema.org/draft")
# The keywords that refer to another node.
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# What an engine looks up or compiles, and may refuse beside `Document.faults`.
_LOOKED_UP = frozenset(
    {
        *("$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary"),
        *("pattern", "patternProperties", *REFERENCES),
    }
)
# Where subschemas judge the value of their parent itself, not a part of it.
_IN_PLACE = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)


class Survey(NamedTuple):
    """The shape of the graph of nodes.

    Attributes:
        cost: Nodes visited for one value in the worst case.
        recursive: Whether a value can be followed deeper than the schema is written.
    """

    cost: int
    recursive: bool


class Document:
    """A schema, and the other documents that it refers to.

    Args:
        root: The schema, an object or a bool.
        documents: Those others by URI; each is read when a reference first leads to it.

    Attributes:
        root: The schema.
        documents: The other documents by URI.
        dialect: The URI of its dialect.
        nodes: The schema objects of the root document with their paths, parents first.
        dynamic: The nodes with a `$dynamicAnchor`, by base URI and name.
    """

    def __init__(self, root: Any, documents: Mapping[str, object] | None = None) -> None:
        self.root = root
        self.dialect = dialect_of(root)
        self.nodes: list[tuple[Path, JSONObject]] = []
        self.dynamic: dict[tuple[str, str], JSONObject] = {}
        self.documents = documents or {}
        self._places: dict[str, object] = {"": root}
        self._bases: dict[int, str] = {}
        self._repeated: dict[str, None] = {}
        self._add("", root, self.nodes)

    def _add(self, base: str, root: object, nodes: list[tuple[Path, JSONObject]]) -> None:
        """Register the nodes below one, with their addresses and anchors."""
        found = list(walk(root))
        nodes += found
        bases: dict[Path, str] = {(): base}
        for path, node in found:
            # The parent has a path that is one step shorter, or two steps in a map or a list.
            outer = bases[path[:-1] if path[:-1] in bases else path[:-2]]
            bases[path] = self._bases[id(node)] = self._named(outer, node)

    def _named(self, base: str, node: JSONObject) -> str:
        """Register a node by its own names and return its base URI."""
        draft = int(DIALECTS.get(self.dialect, DIALECTS[LATEST]))
        own = node.get("id" if draft == 4 else "$id")
        # Up to draft 7 all that stands beside a reference is ignored (draft 7 core section 8.3).
        if isinstance(own, str) and not (draft <= 7 and "$ref" in node):
            base, _, name = _join(base, own).partition("#")
            # An `$id` of "#name" is the anchor of draft 6 and 7.
            self._places[f"{base}#{name}" if name else base] = node
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = node.get(keyword)
            if isinstance(anchor, str):
                if self._places.setdefault(f"{base}#{anchor}", node) is not node:
                    self._repeated[anchor] = None
                if keyword == "$dynamicAnchor":
                    self.dynamic[base, anchor] = node
        if node.get("$recursiveAnchor") is True:
            self.dynamic[base, ""] = node
        return base

    def base_of(self, node: JSONObject) -> str:
        """Return the URI from which the references of a node start."""
        return self._bases.get(id(node), "")

    def address_of(self, ref: str, node: JSONObject) -> str:
        """Return the URI to which a reference of a node leads."""
        return _join(self.base_of(node), ref)

    def find(self, ref: str, node: JSONObject) -> object:
        """Return the target of a reference.

        Args:
            ref: The URI reference; nothing is ever fetched.
            node: The node that has the reference.

        Raises:
            LookupError: There is no such place; the text names the missing part.
        """
        address, _, fragment = self.address_of(ref, node).partition("#")
        if address not in self._places:
            if address not in self.documents:
                raise LookupError(f"there is no document {show(address)}")
            self._places[address] = self.documents[address]
            self._add(address, self.documents[address], [])
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            if f"{address}#{fragment}" not in self._places:
                raise LookupError(f'no "$anchor": "{fragment}" in the schema')
            return self._places[f"{address}#{fragment}"]
        target = _follow(self._places[address], fragment)
        if id(target) not in self._bases:
            # An unknown keyword may hold a schema.
            self._add(address, target, [])
        return target

    def target(self, keyword: str, node: JSONObject, scope: Iterable[str]) -> Any:
        """Return the subschema to which a keyword of a node refers on the way to a value.

        Args:
            keyword: One of `REFERENCES`.
            node: The node that has it.
            scope: The base URIs on the way to the node, outermost first: the dynamic scope (2020-12
                core section 7.1).

        Raises:
            LookupError: There is no such place; the text names the missing part.
        """
        target = self.find(node[keyword], node)
        if keyword == "$ref" or not isinstance(target, dict):
            return target
        # A `$recursiveRef` is "#", and its anchor has no name (2019-09 core section 8.2.4.2).
        name = node[keyword].partition("#")[2]
        if self.dynamic.get((self.base_of(target), name)) is target:
            # The outermost resource with that anchor is meant (2020-12 core section 8.2.3.2).
            known = (self.dynamic[base, name] for base in scope if (base, name) in self.dynamic)
            return next(known, target)
        return target

    def reachable(self) -> list[JSONObject]:
        """Return the nodes below the root and behind its references, each once."""
        found: dict[int, JSONObject] = {}
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict) and id(node) not in found:
                found[id(node)] = node
                waiting.extend(self._next_nodes(node))
        return list(found.values())

    def patterns(self) -> set[str]:
        """Return the regular expressions of all nodes, also of nodes behind references."""
        nodes = [*self.reachable(), *(node for _path, node in self.nodes)]
        return {pattern for node in nodes for _place, pattern in patterns_of(node)}

    @cached_property
    def survey(self) -> Survey:
        """The cost of the schema, where a visit of a node costs 1, and if it is recursive."""
        return self.weighed(lambda _: 1)

    def weighed(self, weigh: Callable[[JSONObject], int]) -> Survey:
        """Return the cost of the schema and if it is recursive, in time linear in its size.

        Args:
            weigh: Returns the cost of one visit of a node.
        """
        if not any(keyword in node for _path, node in self.nodes for keyword in REFERENCES):
            return Survey(sum(weigh(node) for _path, node in self.nodes) or 1, recursive=False)
        costs: dict[int, int] = {}
        recursive: bool = False
        for component in components([self.root], self._next_nodes):
            members = {id(node) for node in component}
            edges = [id(child) for node in component for child in self._next_nodes(node)]
            outer = sum(costs[edge] for edge in edges if edge not in members)
            costs.update(dict.fromkeys(members, sum(map(weigh, component)) + outer))
            if not members.isdisjoint(edges) or any(map(self._leads_out_of_sight, component)):
                recursive = True
        return Survey(costs[id(self.root)], recursive)

    def is_endless(self) -> bool:
        """Tell if some node is applied to a value on the way to applying itself to that value."""

        def next_nodes(node: JSONObject) -> list[JSONObject]:
            return self._next_nodes(node, in_place=True)

        return any(
            len(component) > 1 or component[0] in next_nodes(component[0])
            for component in components(self.reachable(), next_nodes)
        )

    def _next_nodes(self, node: JSONObject, *, in_place: bool = False) -> list[JSONObject]:
        below = subschemas(node)
        found = [child for path, child in below if not in_place or path[0] in _IN_PLACE]
        with suppress(LookupError):
            if isinstance(node.get("$ref"), str):
                found.append(self.find(node["$ref"], node))
        return [child for child in found if isinstance(child, dict)]

    def _leads_out_of_sight(self, node: JSONObject) -> bool:
        """Tell if a reference of a node cannot be followed from here, so that it may lead back."""
        ref = node.get("$ref", "#")
        try:
            self.find(str(ref), node)
        except LookupError:
            # A place that is missing in this document leads nowhere.
            return not is_local(ref)
        return any(keyword in node for keyword in REFERENCES[1:])

    def broken_caps(self) -> list[str]:
        """Return in words each limit for schemas from elsewhere that this one breaks."""
        size = len(dumps(self.root, separators=(",", ":"), default=str))
        if size > MAX_SCHEMA_SIZE:
            return [f"{size} bytes of JSON, more than the {MAX_SCHEMA_SIZE} that a schema may have"]
        cost = self.survey.cost
        if cost > MAX_SCHEMA_COST:
            text = f"one value can cause {cost:.2g} checks" if cost < 10**300 else "endless checks"
            return [f"{text}, more than {MAX_SCHEMA_COST}; refer to a subschema fewer times"]
        return []

    def faults(self, compile_pattern: CompilePattern | None = None) -> list[Fault]:
        """Return everything that keeps the schema from being compiled, if it is of 2020-12.

        Args:
            compile_pattern: Compiles the `pattern` of a node, or one of its `patternProperties`;
                raises ValueError. Without it patterns are not looked at.
        """
        patterns: list[Fault] = []
        references: list[Fault] = []
        for path, node in self.nodes:
            if compile_pattern is not None:
                patterns += _pattern_faults(path, node, compile_pattern)
            if isinstance(node.get("$ref"), str):
                references += self._reference_faults(path, node, node["$ref"])
        anchors = [
            Fault((), f'"$anchor": "{name}" is declared twice; rename one')
            for name in self._repeated
        ]
        return [*keyword_faults(self.nodes), *patterns, *references, *anchors]

    def is_self_contained(self) -> bool:
        """Tell if an engine has nothing to look up: without `faults` it accepts the schema."""
        return all(_LOOKED_UP.isdisjoint(node) for _path, node in self.nodes)

    def slips(self) -> list[Fault]:
        """Return every unknown keyword that looks like a slip of a known one.

        Unknown keywords are allowed (2020-12 core section 6.5); those named `x-…` are never
        suspected.
        """
        found: list[Fault] = []
        for path, node in self.nodes:
            for keyword in node:
                if keyword in RULES or keyword.startswith("x-"):
                    continue
                meant = nearest(keyword, RULES)
                if meant:
                    free = f'"x-{keyword}" is free for your own use'
                    text = f'no such keyword; "{meant}" is, and {free}'
                    found.append(Fault((*path, keyword), text))
        return found

    def _reference_faults(self, path: Path, node: JSONObject, ref: str) -> Iterator[Fault]:
        uri = self.address_of(ref, node).partition("#")[0]
        try:
            target = self.find(ref, node)
        except LookupError as error:
            if uri.startswith(_STANDARD):
                return
            text = f"{show(ref)} leads nowhere: {error.args[0]}"
            if uri not in self._places:
                text = (
                    f"{show(ref)} is another document, and nothing is ever fetched; "
                    f"pass it in documents={{{show(uri)}: …}} or move it into $defs"
                )
            yield Fault((*path, "$ref"), text)
            return
        if not isinstance(target, (dict, bool)):
            text = f"{show(ref)} leads to {show(target)}, which is not a schema"
            yield Fault((*path, "$ref"), text)


def read_document(
    schema: object,
    documents: Mapping[str, object] | None = None,
    depth: int = MAX_SCHEMA_DEPTH,
    *,
    capped: bool = True,
) -> tuple[Document | None, list[Fault]]:
    """Read a schema that may be any value.

    Args:
        schema: The schema.
        documents: See `Document`.
        depth: The deepest nesting that is allowed.
        capped: True for the limits on size and cost, too.

    Returns:
        The document, or None; and the faults that keep it from being walked. One is empty.
    """
    plain = as_plain(schema)
    if plain is None:
        return None, [Fault((), f"a schema is an object, true or false, not {show(schema)}")]
    unfit = find_not_json(plain, inf, depth)
    if unfit is not None:
        return None, [Fault(*unfit)]
    document = Document(plain, documents)
    caps = document.broken_caps() if capped else []
    return (None, [Fault((), text) for text in caps]) if caps else (document, [])


def as_plain(schema: object) -> JSONObject | bool | None:
    """Return a schema that the engines accept, a dict or a bool; None if it is neither."""
    if isinstance(schema, (dict, bool)):
        return schema
    return dict(schema) if isinstance(schema, Mapping) else None


def is_local(ref: object) -> bool:
    """Tell if a reference stays inside its own document."""
    return isinstance(ref, str) and ref.startswith("#")


def schema_error(faults: Iterable[Fault]) -> SchemaError:
    """Return the error that tells faults with their places."""
    lines = [f"{'.'.join(map(str, path)) or 'the schema'}: {text}" for path, text, *_ in faults]
    return SchemaError("; ".join(lines))


def patterns_of(node: JSONObject) -> Iterator[tuple[Path, str]]:
    """Yield the regular expressions of a node with their places."""
    pattern, named = node.get("pattern"), node.get("patternProperties")
    if isinstance(pattern, str):
        yield ("pattern",), pattern
    if isinstance(named, dict):
        yield from ((("patternProperties", name), name) for name in named)


def _pattern_faults(
    path: Path, node: JSONObject, compile_pattern: CompilePattern
) -> Iterator[Fault]:
    for place, pattern in patterns_of(node):
        try:
            compile_pattern(pattern)
        except ValueError as error:
            yield Fault((*path, *place), f"{show(pattern)} cannot be used: {error}")


def _join(base: str, ref: str) -> str:
    # `urljoin` knows no fragments of schemes such as urn.
    return base + ref if ref.startswith("#") else urljoin(base, ref)


def _follow(root: Any, pointer: str) -> object:
    node = root
    for part in pointer.split("/")[1:]:
        step: str | int = unescape(part)
        if isinstance(node, list):
            step = int(part) if part.isascii() and part.isdigit() and len(part) < 10 else len(node)
            if step >= len(node):
                raise LookupError(f'there is no item "{part}" in a list of {len(node)}')
        elif not isinstance(node, dict) or step not in node:
            raise LookupError(f'there is no "{step}" at "#{pointer}"')
        node = node[step]
    return node


def components(
    roots: Iterable[JSONObject], next_nodes: Callable[[JSONObject], list[JSONObject]]
) -> Iterator[list[JSONObject]]:
    """Yield the strongly connected components of a graph of nodes, each after all that it reaches.

    Tarjan's algorithm, without recursion.

    Args:
        roots: The nodes to start from.
        next_nodes: Returns the nodes to which a node leads.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    opened: list[JSONObject] = []
    done: set[int] = set()
    for root in roots:
        # The first entry stands for the caller, who leads to the root.
        work: list[tuple[JSONObject, Iterator[JSONObject]]] = [(root, iter([root]))]
        while True:
            node, rest = work[-1]
            child = next(rest, None)
            if child is not None and id(child) not in order:
                order[id(child)] = low[id(child)] = len(order)
                opened.append(child)
                work.append((child, iter(next_nodes(child))))
            elif child is not None:
                if id(child) not in done:
                    low[id(node)] = min(low[id(node)], order[id(child)])
            else:
                work.pop()
                if not work:
                    break
                above = id(work[-1][0])
                low[above] = min(low[above], low[id(node)])
                if low[id(node)] == order[id(node)]:
                    component = [opened.pop()]
                    while component[-1] is not node:
                        component.append(opened.pop())
                    done.update(map(id, component))
                    yield component
