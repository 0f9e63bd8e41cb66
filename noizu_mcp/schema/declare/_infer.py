"""Type annotations → nodes."""

import enum
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from . import _nodes as nodes
from ._classes import is_class_form, read_class
from ._field import Marker
from ._formats import text_format
from ._nodes import Node, Scalar
from ._parse_state import Reading
from ._resolve import Scope, substitute

_SCALARS: Mapping[Any, Callable[[], Node]] = {
    str: lambda: Scalar("string"),
    int: lambda: Scalar("integer", "int"),
    float: lambda: Scalar("number", "float"),
    bool: lambda: Scalar("boolean"),
    None: lambda: Scalar("null"),
    NoneType: lambda: Scalar("null"),
    Any: Node,
    object: Node,
}


def infer(reading: Reading, annotation: Any, scope: Scope) -> Node:
    """Read an annotation.

    Args:
        reading: Where faults go; an annotation that no schema can express is one.
        annotation: Any annotation, text included.
        scope: Where its names are looked up.

    Returns:
        A node of its own, so that constraints can be put on it; a class is read only once.

    Raises:
        Unresolved: If text in it names something unknown.
    """
    annotation = scope.resolve(annotation)
    origin = get_origin(annotation)
    if origin in _FORMS:
        return _FORMS[origin](reading, annotation, scope)
    if isinstance(annotation, TypeVar):
        return _variable(reading, annotation, scope)
    if origin is None and _hashable(annotation) and annotation in _SCALARS:
        return _SCALARS[annotation]()
    if hasattr(annotation, "__supertype__"):
        return reading.node(annotation.__supertype__, scope)
    if hasattr(annotation, "__value__") and hasattr(annotation, "__type_params__"):
        return _alias(reading, annotation, scope)
    return _of_class(reading, annotation, origin or annotation, scope)


def _hashable(value: Any) -> bool:
    return type(value).__hash__ is not None


def _variable(reading: Reading, variable: TypeVar, scope: Scope) -> Node:
    if variable in scope.variables:
        inner, inner_scope = scope.variables[variable]
        return reading.node(inner, inner_scope)
    if variable.__bound__ is not None:
        return reading.node(variable.__bound__, scope)
    reading.fault(f"the type variable {variable} stands for nothing here; give its class a type")
    return Node()


def _alias(reading: Reading, alias: Any, scope: Scope) -> Node:
    if alias in reading.aliases:
        reading.fault(f"the type {alias} contains itself; write a recursive class instead")
        return Node()
    reading.aliases.append(alias)
    node = reading.node(alias.__value__, scope)
    reading.aliases.pop()
    return node


def _annotated(reading: Reading, annotation: Any, scope: Scope) -> Node:
    node = reading.node(annotation.__origin__, scope)
    options = reading.metadata(node, annotation.__metadata__)
    for name in ("description", "examples"):
        if name in options and not isinstance(node, nodes.Object):
            node.keywords[name] = options.pop(name)
    for name in options.keys() & {"required", "header", "title", "complete"}:
        reading.fault(f"{name} belongs to a field, not to what is inside its type")
    return node


def _literal(reading: Reading, annotation: Any, _scope: Scope) -> Node:
    return choice(reading, list(get_args(annotation)), "Literal")


def choice(reading: Reading, results: list[Any], what: str) -> nodes.Choice:
    """Return the node of a choice between values; enum members stand for their values.

    Args:
        reading: Where faults go: a value that is no JSON scalar.
        results: What to deliver, in order.
        what: How messages call it.
    """
    found: dict[Any, tuple[Any, Any]] = {}
    for result in results:
        value = result.value if isinstance(result, enum.Enum) else result
        if value is not None and type(value) not in (str, int, float, bool):
            reading.fault(f"{what} value {result!r} is not text, a number, a boolean or None")
        else:
            found.setdefault((type(value) is bool, value), (value, result))
    pairs = found.values()
    return nodes.Choice(tuple(value for value, _ in pairs), tuple(result for _, result in pairs))


def _union(reading: Reading, annotation: Any, scope: Scope) -> Node:
    branches: list[Node] = []
    for part in get_args(annotation):
        node = reading.node(part, scope)
        branches.extend(node.branches if isinstance(node, nodes.Union) else [node])
    kinds = {(branch.kind, branch.cast) for branch in branches if isinstance(branch, Scalar)}
    if {("integer", "int"), ("number", "float")} <= kinds:
        # Together they are every number, and each arrives as it came.
        branches = [b for b in branches if not (isinstance(b, Scalar) and b.kind == "integer")]
        for branch in branches:
            if isinstance(branch, Scalar) and branch.cast == "float":
                branch.cast = None
    return branches[0] if len(branches) == 1 else nodes.Union(branches)


def _of_class(reading: Reading, annotation: Any, cls: Any, scope: Scope) -> Node:
    if not isinstance(cls, type):
        return _unsupported(reading, annotation)
    if issubclass(cls, enum.Enum):
        return _enum(reading, cls)
    made = text_format(cls)
    if made is not None:
        return Scalar("string", made)
    if is_class_form(cls):
        args = [substitute(arg, scope) for arg in get_args(annotation)]
        return read_class(reading, cls, tuple(args))
    return _collection(reading, annotation, cls, scope)


def _collection(reading: Reading, annotation: Any, cls: type, scope: Scope) -> Node:
    args = get_args(annotation)
    for classes, reader in _COLLECTIONS:
        if cls in classes:
            return reader(reading, cls, args, scope)
    return _unsupported(reading, annotation)


def _list(reading: Reading, _cls: type, args: tuple[Any, ...], scope: Scope) -> Node:
    return nodes.Array(reading.node(args[0], scope) if args else Node())


def _enum(reading: Reading, cls: type[enum.Enum]) -> Node:
    members = list(cls)
    if not members:
        reading.fault(f"{cls.__name__} has no members; an enum needs values")
    return choice(reading, members, cls.__name__)


def _tuple(reading: Reading, _cls: type, args: tuple[Any, ...], scope: Scope) -> Node:
    if len(args) == 2 and args[1] is Ellipsis:
        return nodes.Array(reading.node(args[0], scope), tuple)
    if not args:
        return nodes.Array(Node(), tuple)
    return nodes.Tuple([reading.node(arg, scope) for arg in args])


def _set(reading: Reading, cls: type, args: tuple[Any, ...], scope: Scope) -> Node:
    item = reading.node(args[0], scope) if args else Scalar("string")
    if not _may_be_member(item):
        reading.fault(
            "items of a set must be text, numbers, enum members or tuples of them; write list[...]"
        )
    collection = frozenset if cls is frozenset else set
    return nodes.Array(item, collection, uniqueItems=True)


def _may_be_member(node: Node) -> bool:
    if isinstance(node, nodes.Array):
        return node.collection in (tuple, frozenset) and _may_be_member(node.item)
    if isinstance(node, (nodes.Tuple, nodes.Union)):
        return all(map(_may_be_member, node.children()))
    return isinstance(node, (Scalar, nodes.Choice))


def _map(reading: Reading, _cls: type, args: tuple[Any, ...], scope: Scope) -> Node:
    key, value = (reading.node(arg, scope) for arg in args) if args else (Scalar("string"), Node())
    texts = isinstance(key, nodes.Choice) and all(type(name) is str for name in key.values)
    if not texts and not (isinstance(key, Scalar) and key.kind == "string" and key.cast is None):
        reading.fault("the names of a JSON object are text: write dict[str, ...]")
    return nodes.Map(key, value)


def _unsupported(reading: Reading, annotation: Any) -> Node:
    shown = getattr(annotation, "__qualname__", None) or str(annotation)
    hint = (
        "write the type that stands after its ="
        if isinstance(annotation, Marker)
        else (
            "use str, int, float, bool, an Enum, Literal, list, dict, a Schema or attrs class,"
            " a dataclass or a TypedDict"
        )
    )
    reading.fault(f"{shown} has no JSON Schema; {hint}")
    return Node()


_FORMS: Mapping[Any, Callable[[Reading, Any, Scope], Node]] = {
    Annotated: _annotated,
    Literal: _literal,
    Union: _union,
    UnionType: _union,
}
_COLLECTIONS: tuple[tuple[Iterable[type], Callable[..., Node]], ...] = (
    ((list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection), _list),
    ((dict, abc.Mapping, abc.MutableMapping), _map),
    ((tuple,), _tuple),
    ((set, frozenset, abc.Set, abc.MutableSet), _set),
)
