"""Values that the schema accepts and the typed class does not: dates that do not exist, validators.

JSON Schema takes `format` as an annotation, and knows nothing of a constructor's own checks. For
forms with such fields the validator is widened: a value is valid if the schema accepts it and it
can be built. Only ValueError and TypeError count as a refusal; anything else is a defect of the
class, which shows when the value is built for good.
"""

from collections.abc import Iterator
from typing import Any

from ._build import Build, Builder
from ._engine import CompiledSchema
from ._nodes import Array, Format, Map, Node, Object, Scalar, Tuple, Union, walk
from ._violation import Path, Violation, show

_REFUSALS = (ValueError, TypeError, ArithmeticError)


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

    def is_valid(value: Any) -> bool:
        return accepts(value) and not _refused(build, value)

    def violations(value: Any) -> list[Violation]:
        found = compiled.violations(value)
        if found or is_valid(value):
            return found
        return list(_explain(builder, root, value, ())) or [_violation((), value, "cannot be used")]

    return compiled._replace(is_valid=is_valid, violations=violations)


def _refused(build: Build, value: Any) -> bool:
    try:
        build(value)
    except _REFUSALS:
        return True
    except Exception:
        # A defect of the class: the call must fail as one, not as bad arguments.
        return False
    return False


def _explain(builder: Builder, node: Node, value: Any, path: Path) -> Iterator[Violation]:
    """Yield a violation for each part of a value that cannot be built, the innermost only."""
    if isinstance(node, Scalar) and isinstance(node.cast, Format):
        yield from _parse_violation(node.cast, value, path)
    elif isinstance(node, Array):
        for index, item in enumerate(value):
            yield from _explain(builder, node.item, item, (*path, index))
    elif isinstance(node, Tuple):
        for index, (inner, item) in enumerate(zip(node.items, value, strict=True)):
            yield from _explain(builder, inner, item, (*path, index))
    elif isinstance(node, Map):
        for name, item in value.items():
            yield from _explain(builder, node.value, item, (*path, name))
    elif isinstance(node, Union):
        yield from _explain_union(builder, node, value, path)
    elif isinstance(node, Object):
        yield from _explain_object(builder, node, value, path)


def _parse_violation(format_: Format, value: Any, path: Path) -> Iterator[Violation]:
    try:
        format_.parse(value)
    except _REFUSALS:
        text = f"expected {_article(format_.name)}, got string {show(value)}"
        yield Violation(path, "format", text, expected=format_.name, got=value)


def _article(name: str) -> str:
    return {"base64": "base64 text", "uuid": "a UUID"}.get(name, f"a {name}")


def _explain_union(builder: Builder, node: Union, value: Any, path: Path) -> Iterator[Violation]:
    if value is None:
        return
    options = node.options
    # A union of which nothing is built holds nothing that could be refused.
    several = builder.unions.get(id(node), [])
    for test, branch in [(_always, options[0])] if len(options) == 1 else several:
        if test(value):
            yield from _explain(builder, branch, value, path)
            return


def _always(_value: Any) -> bool:
    return True


def _explain_object(builder: Builder, node: Object, value: Any, path: Path) -> Iterator[Violation]:
    inside = [
        violation
        for field in node.fields
        if field.name in value
        for violation in _explain(builder, field.node, value[field.name], (*path, field.name))
    ]
    yield from inside
    if not inside:
        try:
            builder.of(node)(value)
        except _REFUSALS as error:
            yield _violation(path, value, _text(error))


def _text(error: Exception) -> str:
    # attrs validators raise with the text first, and with themselves after it.
    first = error.args[0] if error.args else ""
    return first if isinstance(first, str) and first else f"refused: {type(error).__name__}"


def _violation(path: Path, value: Any, text: str) -> Violation:
    return Violation(path, "validator", " ".join(text.split()), got=value)
