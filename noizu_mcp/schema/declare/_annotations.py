"""Annotations → nodes: the types that a declaration may use."""

import enum
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from inspect import Parameter
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Never,
    NoReturn,
    TypeVar,
    get_args,
    get_origin,
)
from typing import Union as TypingUnion

from ._classes import PROBLEMS, is_class_form, is_pydantic, read_class
from ._handles import is_handle
from ._nodes import Array, Map, Node, Object, Scalar, ScalarChoice, Tuple, Union, text_format
from ._resolve import NameScope, substitute
from ._state import ParseState

_SCALARS: Mapping[object, Callable[[], Node]] = {
    str: lambda: Scalar("string"),
    int: lambda: Scalar("integer", "int"),
    float: lambda: Scalar("number", "float"),
    bool: lambda: Scalar("boolean"),
    None: lambda: Scalar("null"),
    NoneType: lambda: Scalar("null"),
    Any: Node,
    object: Node,
}


def infer(state: ParseState, annotation: object, scope: NameScope) -> Node:
    """Read an annotation that is not text.

    Raises:
        Unresolved: If text in it names something unknown.
    """
    origin = get_origin(annotation)
    if origin is None:
        if type(annotation).__hash__ is not None and annotation in _SCALARS:
            return _SCALARS[annotation]()
    elif origin in _FORMS:
        return _FORMS[origin](state, annotation, scope)
    cls = origin or annotation
    if isinstance(cls, type):
        return _of_class(state, annotation, cls, scope)
    return _of_name(state, annotation, scope)


def _of_class(state: ParseState, annotation: object, cls: type, scope: NameScope) -> Node:
    if issubclass(cls, enum.Enum):
        members = list(cls)
        if not members:
            state.fault(f"{cls.__name__} has no members; an enum needs values")
        return choice(state, members, cls.__name__)
    if (text := text_format(cls)) is not None:
        state.risky = state.risky or not text.total
        return Scalar("string", text)
    if is_pydantic(cls):
        return state.pydantic_node(substitute(annotation, scope)[0])
    if is_class_form(cls):
        if is_handle(cls):
            _check_handle(state, cls)
        arguments = [substitute(each, scope) for each in get_args(annotation)]
        return read_class(state, cls, tuple(arguments))
    for classes, reader in _COLLECTIONS:
        if cls in classes:
            return reader(state, cls, get_args(annotation), scope)
    return _unsupported(state, annotation)


def _check_handle(state: ParseState, cls: type) -> None:
    if not (state.output or state.undecided):
        name = cls.__name__
        text = f"{name} is a handle, and a call takes it as a parameter of its own: write {name},"
        state.fault(
            f"{text} or {name} | None, as the type of a parameter; elsewhere str for its id"
        )


def _unsupported(state: ParseState, annotation: object) -> Node:
    # Loaded with the first type of another library, or the first mistake.
    from ._foreign_types import no_form, result_node

    node = result_node(annotation) if state.output else None
    if node is None:
        state.fault(no_form(annotation))
    return node or Node()


def _of_name(state: ParseState, annotation: object, scope: NameScope) -> Node:
    """Read an annotation that is a name for another: a type variable, a NewType, a named type."""
    if isinstance(annotation, TypeVar):
        return _variable(state, annotation, scope)
    if hasattr(annotation, "__supertype__"):
        return state.node(annotation.__supertype__, scope)
    if hasattr(annotation, "__value__") and hasattr(annotation, "__type_params__"):
        return _alias(state, annotation, scope)
    return _unsupported(state, annotation)


def _variable(state: ParseState, variable: TypeVar, scope: NameScope) -> Node:
    known = scope.variables.get(variable) or state.types.get(variable)
    if known is not None:
        return state.node(*known)
    if variable.__bound__ is not None:
        return state.node(variable.__bound__, scope)
    state.fault(f"the type variable {variable} stands for nothing here; give its class a type")
    return Node()


def _alias(state: ParseState, alias: Any, scope: NameScope) -> Node:
    if alias in state.aliases:
        state.fault(f"the type {alias} contains itself; write a recursive class instead")
        return Node()
    state.aliases.append(alias)
    node = state.node(alias.__value__, scope)
    state.aliases.pop()
    return node


def _annotated(state: ParseState, annotation: Any, scope: NameScope) -> Node:
    node, entries = state.annotated_node(annotation.__origin__, annotation.__metadata__, scope)
    options = state.entry_options(node, entries)
    state.constrain(node, options)
    for name, value in options.items():
        if name in ("description", "examples"):
            # An object may be the node of other places too, and describes itself.
            if not isinstance(node, Object):
                node.keywords[name] = value
        elif name in ("required", "header", "title", "complete"):
            state.fault(f"{name} belongs to a field, not to a type inside another type")
    return node


def choice(state: ParseState, results: Iterable[object], what: str) -> ScalarChoice:
    """Return the node of a choice between values; enum members stand for their values.

    Args:
        state: Takes the faults: a value that is not a JSON scalar.
        results: The delivered values, in order.
        what: The name of the choice in messages.
    """
    found: dict[object, tuple[object, object]] = {}
    for result in results:
        value = result.value if isinstance(result, enum.Enum) else result
        if value is not None and type(value) not in (str, int, float, bool):
            state.fault(f"{what} value {result!r} is not text, a number, a boolean or None")
        else:
            # 1 and True are equal in Python, and two values in JSON.
            found.setdefault((type(value) is bool, value), (value, result))
    pairs = found.values()
    return ScalarChoice(tuple(value for value, _ in pairs), tuple(result for _, result in pairs))


def _union(state: ParseState, annotation: object, scope: NameScope) -> Node:
    branches: list[Node] = []
    parts: list[object] = [scope.resolve(part) for part in get_args(annotation)]
    models = [part for part in parts if _is_model(part)]
    if len(models) > 1 and len(models) == sum(part is not NoneType for part in parts):
        # Pydantic tells its own classes apart: by a discriminator, or by what fits best.
        branches.append(state.pydantic_node(reduce(or_, models)))
        parts = [part for part in parts if part is NoneType]
    for part in parts:
        node = state.node(part, scope)
        branches.extend(node.branches if isinstance(node, Union) else [node])
    casts = [branch.cast for branch in branches if isinstance(branch, Scalar)]
    if "int" in casts and "float" in casts:
        # Together they are every number, and each arrives as it was sent.
        branches = [b for b in branches if not (isinstance(b, Scalar) and b.cast == "int")]
        for branch in branches:
            if isinstance(branch, Scalar) and branch.cast == "float":
                branch.cast = None
    return branches[0] if len(branches) == 1 else Union(branches)


def _is_model(annotation: Any) -> bool:
    """Tell if an annotation is a class of pydantic, alone or with metadata."""
    while get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return isinstance(annotation, type) and is_pydantic(annotation)


_FORMS: Mapping[object, Callable[[ParseState, object, NameScope], Node]] = {
    Annotated: _annotated,
    Literal: lambda state, annotation, _: choice(state, get_args(annotation), "Literal"),
    TypingUnion: _union,
    UnionType: _union,
}


def _tuple(state: ParseState, _cls: type, args: tuple[object, ...], scope: NameScope) -> Node:
    if len(args) == 2 and args[1] is Ellipsis:
        return Array(state.node(args[0], scope), tuple)
    if not args:
        return Array(Node(), tuple)
    return Tuple([state.node(arg, scope) for arg in args])


def _set(state: ParseState, cls: type, args: tuple[object, ...], scope: NameScope) -> Node:
    item = state.node(args[0], scope) if args else Scalar("string")
    if not _is_hashable(item):
        state.fault(
            "items of a set must be text, numbers, enum members or tuples of them; write list[...]"
        )
    collection = frozenset if cls is frozenset else set
    made = Array(item, collection)
    made.keywords["uniqueItems"] = True
    return made


def _is_hashable(node: Node) -> bool:
    """Tell if the values of a node can be members of a set."""
    if isinstance(node, Array):
        return node.collection in (tuple, frozenset) and _is_hashable(node.item)
    if isinstance(node, (Tuple, Union)):
        return all(map(_is_hashable, node.children()))
    return isinstance(node, (Scalar, ScalarChoice))


def _map(state: ParseState, _cls: type, args: tuple[object, ...], scope: NameScope) -> Node:
    key, value = (state.node(arg, scope) for arg in args) if args else (Scalar("string"), Node())
    texts = isinstance(key, ScalarChoice) and all(type(name) is str for name in key.values)
    if not texts and not (isinstance(key, Scalar) and key.kind == "string" and key.cast is None):
        state.fault("the names of a JSON object are text: write dict[str, ...]")
    return Map(key, value)


_COLLECTIONS: tuple[tuple[Iterable[type], Callable[..., Node]], ...] = (
    (
        (list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection),
        lambda state, _cls, args, scope: Array(state.node(args[0], scope) if args else Node()),
    ),
    ((dict, abc.Mapping, abc.MutableMapping), _map),
    ((tuple,), _tuple),
    ((set, frozenset, abc.Set, abc.MutableSet), _set),
)


# Return annotations that say nothing about a result, or that it is text.
_SILENT = (str, None, NoneType, Any, object, dict, list, NoReturn, Never, Parameter.empty)


def output_annotation(annotation: Any) -> bool:
    """Tell if a return annotation declares the output schema of a tool.

    A concrete type does: `int`, `list[int]`, `dict[str, int]`, a class with fields. `str`, `None`,
    `Any`, bare `dict` and `list`, and the result classes of this package do not, nor does a union
    with one of these except None.

    Args:
        annotation: The annotation, with text replaced by the objects that it names.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        return output_annotation(annotation.__origin__)
    if origin in (TypingUnion, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        return all(map(output_annotation, parts))
    if hasattr(annotation, "__supertype__"):
        return output_annotation(annotation.__supertype__)
    if any(annotation is silent for silent in _SILENT) or isinstance(annotation, TypeVar):
        return False
    if origin is list:
        return not any(map(_is_result_class, get_args(annotation)))
    return not _is_result_class(annotation)


def _is_result_class(annotation: object) -> bool:
    """Tell if a class is one of this package and not a form: Content, ToolResult."""
    if get_origin(annotation) in (TypingUnion, UnionType):
        return any(map(_is_result_class, get_args(annotation)))
    module = getattr(annotation, "__module__", None) or ""
    own = isinstance(annotation, type) and module.partition(".")[0] == __name__.partition(".")[0]
    return own and not hasattr(annotation, PROBLEMS)
