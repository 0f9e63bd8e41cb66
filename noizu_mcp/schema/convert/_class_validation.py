"""Values that the schema accepts and the class refuses: dates that do not exist, own validators.

JSON Schema takes `format` as an annotation, and knows nothing of the checks of a constructor. For a
form with such types the validator is widened: a value is valid if the schema accepts it and it can
be built. ValueError, TypeError and ArithmeticError are refusals; any other exception is a defect of
the class, which shows when the value is built for the call. The file is loaded with the first such
form.
"""

from collections.abc import Container, Iterator
from itertools import chain, islice, repeat
from typing import Any

from ..._pointer import Path
from ..declare._nodes import Array, Format, Map, Node, Object, Pydantic, Scalar, Tuple, Union, walk
from ..engines._compile import CompiledSchema
from ..jsonschema._violation import MAX_VIOLATIONS, Violation, show
from ._build import Build, ValueBuilder
from ._refusals import REFUSALS, pydantic_violations, reason_of, refusal

# Parts of one value that are searched, at a few microseconds each.
_MAX_PARTS = 50_000


def is_risky(root: Node) -> bool:
    """Tell if building may fail for a value that the schema accepts."""
    return any(
        (isinstance(node, Object) and node.risky)
        or isinstance(node, Pydantic)
        or (isinstance(node, Scalar) and isinstance(node.cast, Format) and not node.cast.total)
        for node in walk(root)
    )


def checked(
    compiled: CompiledSchema, root: Node, builder: ValueBuilder, build: Build
) -> CompiledSchema:
    """Return a validator that refuses also the values that `build` refuses.

    Args:
        compiled: The validator of the schema alone.
        root: The node of the form.
        builder: The builder that compiled `build`.
        build: Makes the value, or raises.
    """
    accepts = compiled.is_valid
    # The nodes with something inside that may refuse a value; all others are passed over.
    risky: set[int] = set()

    def search(value: object, told: Container[Path] | None) -> Iterator[Violation]:
        if not risky:
            risky.update(id(node) for node in walk(root) if is_risky(node))
        return _CulpritSearch(builder, risky, told).of(root, value, ())

    def is_valid(value: object) -> bool:
        return accepts(value) and not _refused(build, value)

    def violations(value: object) -> list[Violation]:
        found = compiled.violations(value)
        if not found:
            more = search(value, None)
        elif all(violation.keyword for violation in found):
            more = chain(found, search(value, {violation.path for violation in found}))
        else:
            # Without a keyword the value is not JSON, or too deep to be searched.
            more = iter(found)
        told = list(islice(more, MAX_VIOLATIONS))
        return told if told or is_valid(value) else [refusal((), value, "cannot be used")]

    return compiled._replace(is_valid=is_valid, violations=violations)


def _refused(build: Build, value: object) -> bool:
    try:
        build(value)
    except REFUSALS:
        return True
    except Exception:
        # A defect of the class: the call must fail as one, not as bad arguments.
        return False
    return False


class _CulpritSearch:
    """One search for the parts of a value that cannot be built.

    Of parts inside parts the innermost are reported. Constructors are called only for a value that
    the schema accepts: they judge whole values, and may rely on the schema.

    Args:
        builder: The builder of the form, compiled.
        risky: The identities of the nodes with something inside that may refuse a value.
        told: The paths that the schema reports already; None if it accepts the value.
    """

    def __init__(
        self, builder: ValueBuilder, risky: Container[int], told: Container[Path] | None
    ) -> None:
        self._builder = builder
        self._risky = risky
        self._told = told
        self._left = _MAX_PARTS

    def of(self, node: Node, value: object, path: Path) -> Iterator[Violation]:
        """Yield the violations of the value at the place of a node."""
        self._left -= 1
        if id(node) not in self._risky or self._left < 0:
            return
        if isinstance(node, Scalar) and isinstance(node.cast, Format):
            if isinstance(value, str) and not (self._told and path in self._told):
                yield from _parse_violation(node.cast, value, path)
            return
        if isinstance(node, Union):
            yield from self._of_union(node, value, path)
            return
        if isinstance(node, Pydantic):
            # It judges whole values, as a constructor does.
            if self._told is None:
                yield from pydantic_violations(node, value, path)
            return
        refused = False
        for inner, part, item in _parts(node, value):
            for violation in self.of(inner, item, (*path, part)):
                refused = True
                yield violation
        if isinstance(node, Object) and self._told is None and not refused:
            yield from self._of_constructor(node, value, path)

    def _of_union(self, node: Union, value: object, path: Path) -> Iterator[Violation]:
        if value is None:
            return
        options = node.options
        # A union without anything to build has nothing inside that could refuse a value.
        tested = self._builder.unions.get(id(node), [])
        for test, branch in [(None, options[0])] if len(options) == 1 else tested:
            if test is None or test(value):
                yield from self.of(branch, value, path)
                return

    def _of_constructor(self, node: Object, value: object, path: Path) -> Iterator[Violation]:
        try:
            self._builder.of(node)(value)
        except REFUSALS as error:
            yield refusal(path, value, reason_of(error))


def _parts(node: Node, value: object) -> Iterator[tuple[Node, str | int, object]]:
    """Yield the node, key and value of each part of a container; nothing for any other value."""
    if isinstance(node, (Array, Tuple)) and isinstance(value, (list, tuple)):
        inner = node.items if isinstance(node, Tuple) else repeat(node.item)
        yield from ((own, i, item) for own, (i, item) in zip(inner, enumerate(value), strict=False))
    elif isinstance(node, Map) and isinstance(value, dict):
        yield from ((node.value, name, item) for name, item in value.items())
    elif isinstance(node, Object) and isinstance(value, dict):
        fields = node.fields
        yield from ((f.node, f.name, value[f.name]) for f in fields if f.name in value)


# `a date` is right; these are not `a base64`, `a uuid`.
_ARTICLES = {
    "base64": "base64 text",
    "duration": "a duration like PT1H30M",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "uuid": "a UUID",
    "IPv4 network": "an IPv4 network",
    "IPv6 network": "an IPv6 network",
}


def _parse_violation(format_: Format, value: Any, path: Path) -> Iterator[Violation]:
    try:
        format_.parse(value)
    except REFUSALS:
        name = format_.name
        text = f"expected {_ARTICLES.get(name, f'a {name}')}, got string {show(value)}"
        yield Violation(path, "format", text, expected=name, got=value)
