"""Values that the schema accepts and the typed class does not: dates that do not exist, validators.

JSON Schema takes `format` as an annotation, and knows nothing of a constructor's own checks. For
forms with such fields the validator is widened: a value is valid if the schema accepts it and it
can be built. Only ValueError and TypeError count as a refusal; anything else is a defect of the
class, which shows when the value is built for good.
"""

from collections.abc import Container, Iterator
from functools import cached_property
from itertools import chain, islice, repeat
from typing import Any

from ..declare._nodes import Array, Format, Map, Node, Object, Scalar, Tuple, Union, walk
from ..engines._compile import CompiledSchema
from ..jsonschema._violation import MAX_VIOLATIONS, Path, Violation, shorten, show
from ._build import Build, Builder

_REFUSALS = (ValueError, TypeError, ArithmeticError)
# A constructor may well quote the whole value.
_MAX_TEXT = 500
# Parts of a value that are looked at: a few microseconds each.
_MAX_PARTS = 50_000


def is_risky(root: Node) -> bool:
    """Tell if a value that the schema accepts may be one that cannot be built."""
    return any(
        (isinstance(node, Object) and node.risky)
        or (isinstance(node, Scalar) and isinstance(node.cast, Format) and not node.cast.total)
        for node in walk(root)
    )


def checked(compiled: CompiledSchema, root: Node, builder: Builder, build: Build) -> CompiledSchema:
    """Return a validator that also refuses what `build` refuses.

    Args:
        compiled: The validator of the schema alone.
        root: The node of the form.
        builder: What compiled `build`.
        build: Makes the value, or raises.
    """
    accepts = compiled.is_valid
    faults = _Faults(builder, root)

    def is_valid(value: Any) -> bool:
        return accepts(value) and not _refused(build, value)

    def violations(value: Any) -> list[Violation]:
        found = compiled.violations(value)
        if found:
            return _first(chain(found, faults.misread(value, found)))
        if is_valid(value):
            return found
        return _first(faults.of(value)) or [_violation((), value, "cannot be used")]

    return compiled._replace(is_valid=is_valid, violations=violations)


def _first(violations: Iterator[Violation]) -> list[Violation]:
    return list(islice(violations, MAX_VIOLATIONS))


def _refused(build: Build, value: Any) -> bool:
    try:
        build(value)
    except _REFUSALS:
        return True
    except Exception:
        # A defect of the class: the call must fail as one, not as bad arguments.
        return False
    return False


class _Faults:
    """Finds the parts of a value that cannot be built.

    Args:
        builder: What compiled the builder of the form.
        root: The node of the form.
    """

    def __init__(self, builder: Builder, root: Node) -> None:
        self._builder = builder
        self._root = root

    @cached_property
    def _risky(self) -> set[int]:
        """The nodes with something in them that may refuse a value; the rest is passed over."""
        return {id(node) for node in walk(self._root) if is_risky(node)}

    def misread(self, value: Any, found: list[Violation]) -> Iterator[Violation]:
        """Yield the texts that do not parse in a value that the schema rejects for other reasons.

        Constructors are left out: they judge whole values, and may take for granted what the
        schema says.

        Args:
            value: The value.
            found: What the schema says about it.
        """
        # Without a keyword the value is no JSON, or too deep to be walked.
        if all(violation.keyword for violation in found):
            yield from self._search({violation.path for violation in found}, value)

    def of(self, value: Any) -> Iterator[Violation]:
        """Yield a violation for each part of a fitting value that cannot be built.

        Of parts within parts the innermost only, and of a large value what is found soon.
        """
        return self._search(None, value)

    def _search(self, told: Container[Path] | None, value: Any) -> Iterator[Violation]:
        return _Search(self._builder, self._risky, told).of(self._root, value, ())


class _Search:
    """One search for the parts of a value that cannot be built.

    Args:
        builder: What compiled the builder of the form.
        risky: The nodes, by identity, with something in them that may refuse a value.
        told: The places that the schema finds fault with; None if the value fits.
    """

    def __init__(
        self, builder: Builder, risky: Container[int], told: Container[Path] | None
    ) -> None:
        self._builder = builder
        self._risky = risky
        self._told = told
        self._left = _MAX_PARTS

    def of(self, node: Node, value: Any, path: Path) -> Iterator[Violation]:
        """Yield the violations in what stands in the place of a node."""
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
        refused = False
        for inner, part, item in _parts(node, value):
            for violation in self.of(inner, item, (*path, part)):
                refused = True
                yield violation
        if isinstance(node, Object) and self._told is None and not refused:
            yield from self._of_constructor(node, value, path)

    def _of_union(self, node: Union, value: Any, path: Path) -> Iterator[Violation]:
        if value is None:
            return
        options = node.options
        # A union of which nothing is built holds nothing that could be refused.
        several = self._builder.unions.get(id(node), [])
        for test, branch in [(_always, options[0])] if len(options) == 1 else several:
            if test(value):
                yield from self.of(branch, value, path)
                return

    def _of_constructor(self, node: Object, value: Any, path: Path) -> Iterator[Violation]:
        try:
            self._builder.of(node)(value)
        except _REFUSALS as error:
            yield _violation(path, value, _text(error))


def _parts(node: Node, value: Any) -> Iterator[tuple[Node, str | int, Any]]:
    """Yield what a container holds: node, key and value; nothing if it is another kind of value."""
    if isinstance(node, (Array, Tuple)) and isinstance(value, (list, tuple)):
        inner = node.items if isinstance(node, Tuple) else repeat(node.item)
        yield from ((own, i, item) for own, (i, item) in zip(inner, enumerate(value), strict=False))
    elif isinstance(node, Map) and isinstance(value, dict):
        yield from ((node.value, name, item) for name, item in value.items())
    elif isinstance(node, Object) and isinstance(value, dict):
        fields = node.fields
        yield from ((f.node, f.name, value[f.name]) for f in fields if f.name in value)


def _always(_value: Any) -> bool:
    return True


def _parse_violation(format_: Format, value: Any, path: Path) -> Iterator[Violation]:
    try:
        format_.parse(value)
    except _REFUSALS:
        text = f"expected {_article(format_.name)}, got string {show(value)}"
        yield Violation(path, "format", text, expected=format_.name, got=value)


def _article(name: str) -> str:
    return {"base64": "base64 text", "uuid": "a UUID"}.get(name, f"a {name}")


def _text(error: Exception) -> str:
    # attrs validators raise with the text first, and with themselves after it.
    first = error.args[0] if error.args else ""
    text = first if isinstance(first, str) and first else f"refused: {type(error).__name__}"
    return shorten(text, _MAX_TEXT)


def _violation(path: Path, value: Any, text: str) -> Violation:
    return Violation(path, "validator", " ".join(text.split()), got=value)
