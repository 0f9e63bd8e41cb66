"""What a schema may cost: size, depth, and the work that one value can cause, without running it.

A cost is counted on the graph of subschemas, where `$ref` is an edge: work doubles at each level
of a chain in which everybody refers twice to the next. What refers back to itself counts once: the
native engine remembers its answers there, and the depth of the value bounds the rest.
"""

from collections.abc import Iterable, Mapping
from json import dumps
from typing import Any, NamedTuple

from ._keywords import Path, subschemas
from ._refs import Refs, is_local

KIB = 1024

# The largest tool schema seen in the wild is a few dozen KiB; a megabyte is an attack or a mistake.
MAX_SCHEMA_SIZE = 256 * KIB
# Nobody reads further, and the engines recurse: the native one stops near 255.
MAX_SCHEMA_DEPTH = 64
# Subschemas visited for one value. 1e5 take about 10 ms natively; doubling reaches 1e60 in a page.
MAX_SCHEMA_COST = 100_000
# Our own schemas may be deeper, but the native engine gives up near 255.
MAX_TRUSTED_DEPTH = 200
# The native engine recurses on the C stack where a schema refers to itself: it overflows a 128 KiB
# stack at 174 levels, and an overflow there kills the process.
MAX_VALUE_DEPTH = 128


class Survey(NamedTuple):
    """What the graph of subschemas says.

    Attributes:
        cost: Subschemas visited for one value in the worst case.
        recursive: Whether a value can be followed deeper than the schema is written.
    """

    cost: int
    recursive: bool


def depth_of(value: Any, limit: int) -> int:
    """Return how deep lists and objects nest, at most `limit + 1`; a scalar has depth 0.

    Walks level by level and without recursion, so that any value can be asked.
    """
    level = [value]
    depth = 0
    while depth <= limit:
        # Only what can hold something is kept: a level is never larger than its containers.
        level = [node for node in level if node and isinstance(node, (dict, list, tuple))]
        if not level:
            return depth
        depth += 1
        level = [
            item for node in level for item in (node.values() if isinstance(node, dict) else node)
        ]
    return depth


def is_deeper(value: Any, limit: int) -> bool:
    """Tell if lists and objects nest deeper than `limit`."""
    return depth_of(value, limit) > limit


def is_larger(value: Any, limit: int) -> bool:
    """Tell if lists and objects hold more than `limit` values in all."""
    count = 0
    waiting = [value]
    while waiting and count <= limit:
        node = waiting.pop()
        if isinstance(node, (dict, list, tuple)):
            count += len(node)
            waiting.extend(node.values() if isinstance(node, dict) else node)
    return count > limit


def broken_caps(schema: Mapping[str, Any] | bool) -> list[str]:
    """Return in words each limit for schemas from elsewhere that this one breaks."""
    # First, because whatever renders or walks a schema relies on it.
    if is_deeper(schema, MAX_SCHEMA_DEPTH):
        return [f"nested deeper than {MAX_SCHEMA_DEPTH} levels; flatten it with $defs and $ref"]
    size = len(dumps(schema, separators=(",", ":"), default=str))
    if size > MAX_SCHEMA_SIZE:
        return [f"{size} bytes of JSON, more than the {MAX_SCHEMA_SIZE} that a schema may have"]
    cost = survey(schema).cost
    if cost > MAX_SCHEMA_COST:
        text = f"one value can cause {cost:.2g} checks" if cost < 10**300 else "endless checks"
        return [f"{text}, more than {MAX_SCHEMA_COST}; refer to a subschema fewer times"]
    return []


def survey(schema: Any) -> Survey:
    """Return the cost and recursiveness of a schema; linear in its size."""
    graph = _Graph(schema)
    cost = graph.components()
    return Survey(cost, graph.recursive)


class _Graph:
    """The subschemas as nodes, known by identity; `$ref` and nesting as edges.

    Tarjan's algorithm, iterative: components come out with all that they reach already counted.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._refs = Refs(root)
        self._order: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._open: list[int] = []
        self._edges: dict[int, list[Any]] = {}
        self._cost: dict[int, int] = {}
        self.recursive = False

    def components(self) -> int:
        """Count the root and return its cost."""
        if not isinstance(self._root, dict):
            return 1
        work: list[tuple[Any, Iterable[Any]]] = [self._enter(self._root)]
        while work:
            node, rest = work[-1]
            child = next(iter(rest), None)
            if child is None:
                work.pop()
                self._leave(id(node))
                if work:
                    self._lower(id(work[-1][0]), self._low[id(node)])
            elif id(child) not in self._order:
                work.append(self._enter(child))
            elif id(child) not in self._cost:
                self.recursive = True
                self._lower(id(node), self._order[id(child)])
        return self._cost[id(self._root)]

    def _enter(self, node: Any) -> tuple[Any, Iterable[Any]]:
        key = id(node)
        self._order[key] = self._low[key] = len(self._order)
        self._open.append(key)
        self._edges[key] = self._neighbours(node)
        return node, iter(self._edges[key])

    def _lower(self, key: int, value: int) -> None:
        self._low[key] = min(self._low[key], value)

    def _leave(self, key: int) -> None:
        if self._low[key] != self._order[key]:
            return
        members = [self._open.pop()]
        while members[-1] != key:
            members.append(self._open.pop())
        inside = set(members)
        edges = [id(child) for member in members for child in self._edges[member]]
        total = len(members) + sum(self._cost[edge] for edge in edges if edge not in inside)
        for member in members:
            self._cost[member] = total

    def _neighbours(self, node: Mapping[str, Any]) -> list[Any]:
        found = [child for _path, child in subschemas(node)]
        if "$id" in node and node is not self._root:
            # References below start from here, not from the root: out of sight.
            self.recursive = True
        references = (key for key in ("$ref", "$dynamicRef", "$recursiveRef") if key in node)
        found.extend(self._target(key, node[key]) for key in references)
        return [child for child in found if isinstance(child, dict)]

    def _target(self, keyword: str, ref: Any) -> Any:
        """Return what is referred to; what cannot be followed from here may well lead back."""
        if keyword != "$ref" or not is_local(ref):
            self.recursive = True
            return None
        try:
            return self._refs.find(ref)[1]
        except LookupError:
            return None


def path_text(path: Path) -> str:
    """Return a path into a schema as words: `properties.q.pattern`; the root is `the schema`."""
    return ".".join(map(str, path)) or "the schema"
