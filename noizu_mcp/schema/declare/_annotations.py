"""Annotations → nodes: the state of reading a declaration, and the types that it understands.

A declaration is read once, from the top down. An annotation becomes a node, a class becomes an
object node with a field for each of its own. A problem is noted with the path of the field, and
reading goes on with a node for any value, so that all problems are reported together.
"""

import enum
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    Never,
    NoReturn,
    TypeVar,
    get_args,
    get_origin,
)
from typing import Union as TypingUnion

from ..jsonschema._fault import Fault
from ._classes import PROBLEMS, is_class_form, read_class
from ._field import Marker
from ._field_options import constrain, marker_problems
from ._nodes import (
    MISSING,
    Array,
    Choice,
    Field,
    Map,
    Node,
    Object,
    Scalar,
    Tuple,
    Union,
    is_nullable,
    text_format,
)
from ._resolve import Scope, Unresolved, substitute

# Special forms that are about a field, not about its type. By name: some are newer than the oldest
# Python served, and typing_extensions has its own.
_WRAPPERS = frozenset({"Final", "Required", "NotRequired", "ReadOnly"})
_TEXT = (str, ForwardRef)


class ParseState:
    """The state of reading one declaration.

    Args:
        output: True if the declaration describes a result. Attributes that no parameter of the
            constructor sets are part of it.

    Attributes:
        faults: The problems so far.
        path: The names of the fields around the place that is being read.
        owner: The class that declares the last of them.
        classes: Each class that was read, with its type arguments and its node; a class that
            contains itself is found here.
        open: The nodes of the classes that are being read, by identity.
        aliases: The named types (PEP 695) that are being read.
        unresolved: True after a name that does not exist yet.
        risky: True after a type that may refuse a value which its schema accepts.
        headers: True after a field with a header.
        titled: True after a title, of a field or of a choice.
    """

    def __init__(self, *, output: bool = False) -> None:
        self.output = output
        self.faults: list[Fault] = []
        self.path: tuple[str | int, ...] = ()
        self.owner: type | None = None
        self.classes: list[tuple[type, tuple[Any, ...], Object]] = []
        self.open: set[int] = set()
        self.aliases: list[Any] = []
        self.unresolved = False
        self.risky = False
        self.headers = False
        self.titled = False

    def fault(self, text: str) -> None:
        """Note a problem at the present place."""
        self.faults.append(Fault(self.path, text, self.owner))

    def unknown(self, error: Unresolved) -> None:
        """Note a name that does not exist, at least not yet."""
        self.unresolved = True
        self.fault(str(error))

    @contextmanager
    def at(self, name: str | int | None, owner: type | None) -> Iterator[None]:
        """Stand at a field, or (with None) at a class as a whole, for the length of the block."""
        outside = self.path, self.owner
        self.path = self.path if name is None else (*self.path, name)
        self.owner = owner
        try:
            yield
        finally:
            self.path, self.owner = outside

    def node(self, annotation: Any, scope: Scope) -> Node:
        """Read an annotation.

        Args:
            annotation: Any annotation, text included. One that has no schema is a fault.
            scope: The names that it may use.

        Returns:
            A node that belongs to this place alone, so that constraints can be put on it; except
            that a class has one node.
        """
        try:
            return _infer(self, annotation, scope)
        except Unresolved as error:
            self.unknown(error)
            return Node()

    def check_marker(self, marker: Marker) -> None:
        """Note the problems of a marker that do not depend on its type."""
        for problem in marker_problems(marker):
            self.fault(problem)

    def constrain(self, node: Node, options: Mapping[str, Any]) -> None:
        """Put those options on a node that are about its type."""
        self.titled = self.titled or not options.keys().isdisjoint(("title", "titles"))
        for problem in constrain(node, options):
            self.fault(problem)

    def annotated_field(
        self,
        name: str,
        annotation: Any,
        scope: Scope,
        marker: Marker | None = None,
        **about: Any,
    ) -> Field:
        """Read a field that has an annotation and perhaps a marker. The state stands at the field.

        Args:
            name: The name on the wire.
            annotation: The whole annotation.
            scope: The names that it may use.
            marker: `field(...)` or `argument(...)`, if one was written.
            **about: Attributes of `Field`.
        """
        try:
            inner, entries, required = _unwrap(annotation, scope)
        except Unresolved as error:
            self.unknown(error)
            inner, entries, required = Any, [], None
        node = self.node(inner, scope)
        options = _entry_options(self, node, entries) if entries else {}
        if required is not None:
            about["required"] = required
        if marker is not None:
            if marker.kind is not None:
                self.fault(
                    f"{marker.maker}(...) is for mappings; beside an annotation write field(...)"
                )
            self.check_marker(marker)
            options.update(marker.options)
            if "factory" in options:
                about["factory"] = options["factory"] if callable(options["factory"]) else None
        if isinstance(about.get("default"), Marker):
            self.fault("field(...) is not read here; write Annotated[<type>, field(...)]")
            del about["default"]
        return self.field(name, node, options, **about)

    def field(self, name: str, node: Node, options: Mapping[str, Any], **about: Any) -> Field:
        """Return a field, after its constraints are put on its type.

        Args:
            name: The name on the wire.
            node: The type.
            options: The options of the marker, checked already.
            **about: Attributes of `Field`; `required` holds if the options do not decide it.
        """
        if options:
            self.constrain(node, options)
        about.setdefault("default", options.get("default", MISSING))
        field = Field(name, node, about)
        required = options.get("required")
        if required is None:
            required = about.get("required")
        if required is None:
            required = not field.has_default and not is_nullable(node)
        field.required = bool(required)
        if options:
            self._describe(field, options)
        return field

    def _describe(self, field: Field, options: Mapping[str, Any]) -> None:
        """Put those options on a field that are about the field itself; wrong values were noted."""
        texts = {
            name: value
            for name in ("description", "header", "title")
            if isinstance(value := options.get(name), str)
        }
        field.description = texts.get("description")
        field.title = texts.get("title")
        field.header = texts.get("header")
        self.headers = self.headers or field.header is not None
        examples = options.get("examples")
        field.examples = tuple(examples) if isinstance(examples, (list, tuple)) else ()
        field.complete = options.get("complete")


def _unwrap(annotation: Any, scope: Scope) -> tuple[Any, list[Any], bool | None]:
    """Take off the parts of an annotation that are about the field, not about its type.

    Returns:
        The annotation of the type; the entries of `Annotated`; and True for `Required[...]`, False
        for `NotRequired[...]`, else None.

    Raises:
        Unresolved: If text in it names something unknown.
    """
    entries: list[Any] = []
    required = None
    while True:
        if isinstance(annotation, _TEXT):
            annotation = scope.resolve(annotation)
        origin = get_origin(annotation)
        if origin is Annotated:
            entries = [*annotation.__metadata__, *entries]
            annotation = annotation.__origin__
        elif (form := getattr(origin, "_name", None)) in _WRAPPERS:
            required = {"Required": True, "NotRequired": False}.get(form, required)
            (annotation,) = get_args(annotation)
        else:
            return annotation, entries, required


def _entry_options(state: ParseState, node: Node, entries: Iterable[Any]) -> dict[str, Any]:
    """Return the options that the entries of `Annotated[...]` say, ours and those of others."""
    options: dict[str, Any] = {}
    for entry in entries:
        if isinstance(entry, Marker):
            if entry.kind is not None:
                state.fault(f"{entry.maker}(...) inside Annotated; write field(...)")
                continue
            state.check_marker(entry)
            if {"default", "factory"} & entry.options.keys():
                state.fault("a default inside Annotated; write it after the =, as Python does")
            own = entry.options.items()
            options.update((k, v) for k, v in own if k not in ("default", "factory"))
        elif isinstance(entry, str):
            options.setdefault("description", entry)
        else:
            # Loaded with the first constraint of another library.
            from ._constraints import annotated_options

            found = annotated_options(node, entry)
            if isinstance(found, str):
                state.fault(found)
            else:
                options.update(found)
    return options


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


def _infer(state: ParseState, annotation: Any, scope: Scope) -> Node:
    """Read an annotation.

    Raises:
        Unresolved: If text in it names something unknown.
    """
    if isinstance(annotation, _TEXT):
        annotation = scope.resolve(annotation)
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


def _of_class(state: ParseState, annotation: Any, cls: type, scope: Scope) -> Node:
    if issubclass(cls, enum.Enum):
        members = list(cls)
        if not members:
            state.fault(f"{cls.__name__} has no members; an enum needs values")
        return choice(state, members, cls.__name__)
    if (text := text_format(cls)) is not None:
        state.risky = state.risky or not text.total
        return Scalar("string", text)
    if is_class_form(cls):
        arguments = [substitute(each, scope) for each in get_args(annotation)]
        return read_class(state, cls, tuple(arguments))
    for classes, reader in _COLLECTIONS:
        if cls in classes:
            return reader(state, cls, get_args(annotation), scope)
    return _unsupported(state, annotation)


_TYPES = (
    "use str, int, float, bool, an Enum, Literal, list, dict, a Schema or attrs class,"
    " a dataclass or a TypedDict"
)


def _unsupported(state: ParseState, annotation: Any) -> Node:
    shown = getattr(annotation, "__qualname__", None) or str(annotation)
    marked = isinstance(annotation, Marker)
    hint = "write the type here, and the field after the =" if marked else _TYPES
    state.fault(f"{shown} has no JSON Schema; {hint}")
    return Node()


def _of_name(state: ParseState, annotation: Any, scope: Scope) -> Node:
    """Read an annotation that is a name for another: a type variable, a NewType, a named type."""
    if isinstance(annotation, TypeVar):
        return _variable(state, annotation, scope)
    if hasattr(annotation, "__supertype__"):
        return state.node(annotation.__supertype__, scope)
    if hasattr(annotation, "__value__") and hasattr(annotation, "__type_params__"):
        return _alias(state, annotation, scope)
    return _unsupported(state, annotation)


def _variable(state: ParseState, variable: TypeVar, scope: Scope) -> Node:
    if variable in scope.variables:
        return state.node(*scope.variables[variable])
    if variable.__bound__ is not None:
        return state.node(variable.__bound__, scope)
    state.fault(f"the type variable {variable} stands for nothing here; give its class a type")
    return Node()


def _alias(state: ParseState, alias: Any, scope: Scope) -> Node:
    if alias in state.aliases:
        state.fault(f"the type {alias} contains itself; write a recursive class instead")
        return Node()
    state.aliases.append(alias)
    node = state.node(alias.__value__, scope)
    state.aliases.pop()
    return node


def _annotated(state: ParseState, annotation: Any, scope: Scope) -> Node:
    node = state.node(annotation.__origin__, scope)
    options = _entry_options(state, node, annotation.__metadata__)
    state.constrain(node, options)
    for name, value in options.items():
        if name in ("description", "examples"):
            # An object may be the node of other places too, and describes itself.
            if not isinstance(node, Object):
                node.keywords[name] = value
        elif name in ("required", "header", "title", "complete"):
            state.fault(f"{name} belongs to a field, not to a type inside another type")
    return node


def choice(state: ParseState, results: Iterable[Any], what: str) -> Choice:
    """Return the node of a choice between values; enum members stand for their values.

    Args:
        state: Takes the faults: a value that is not a JSON scalar.
        results: The delivered values, in order.
        what: The name of the choice in messages.
    """
    found: dict[Any, tuple[Any, Any]] = {}
    for result in results:
        value = result.value if isinstance(result, enum.Enum) else result
        if value is not None and type(value) not in (str, int, float, bool):
            state.fault(f"{what} value {result!r} is not text, a number, a boolean or None")
        else:
            # 1 and True are equal in Python, and two values in JSON.
            found.setdefault((type(value) is bool, value), (value, result))
    pairs = found.values()
    return Choice(tuple(value for value, _ in pairs), tuple(result for _, result in pairs))


def _union(state: ParseState, annotation: Any, scope: Scope) -> Node:
    branches: list[Node] = []
    for part in get_args(annotation):
        node = state.node(part, scope)
        branches.extend(node.branches if isinstance(node, Union) else [node])
    kinds = {(branch.kind, branch.cast) for branch in branches if isinstance(branch, Scalar)}
    if {("integer", "int"), ("number", "float")} <= kinds:
        # Together they are every number, and each arrives as it was sent.
        branches = [b for b in branches if not (isinstance(b, Scalar) and b.kind == "integer")]
        for branch in branches:
            if isinstance(branch, Scalar) and branch.cast == "float":
                branch.cast = None
    return branches[0] if len(branches) == 1 else Union(branches)


_FORMS: Mapping[Any, Callable[[ParseState, Any, Scope], Node]] = {
    Annotated: _annotated,
    Literal: lambda state, annotation, _: choice(state, get_args(annotation), "Literal"),
    TypingUnion: _union,
    UnionType: _union,
}


def _list(state: ParseState, _cls: type, args: tuple[Any, ...], scope: Scope) -> Node:
    return Array(state.node(args[0], scope) if args else Node())


def _tuple(state: ParseState, _cls: type, args: tuple[Any, ...], scope: Scope) -> Node:
    if len(args) == 2 and args[1] is Ellipsis:
        return Array(state.node(args[0], scope), tuple)
    if not args:
        return Array(Node(), tuple)
    return Tuple([state.node(arg, scope) for arg in args])


def _set(state: ParseState, cls: type, args: tuple[Any, ...], scope: Scope) -> Node:
    item = state.node(args[0], scope) if args else Scalar("string")
    if not _is_hashable(item):
        state.fault(
            "items of a set must be text, numbers, enum members or tuples of them; write list[...]"
        )
    collection = frozenset if cls is frozenset else set
    return Array(item, collection, uniqueItems=True)


def _is_hashable(node: Node) -> bool:
    """Tell if the values of a node can be members of a set."""
    if isinstance(node, Array):
        return node.collection in (tuple, frozenset) and _is_hashable(node.item)
    if isinstance(node, (Tuple, Union)):
        return all(map(_is_hashable, node.children()))
    return isinstance(node, (Scalar, Choice))


def _map(state: ParseState, _cls: type, args: tuple[Any, ...], scope: Scope) -> Node:
    key, value = (state.node(arg, scope) for arg in args) if args else (Scalar("string"), Node())
    texts = isinstance(key, Choice) and all(type(name) is str for name in key.values)
    if not texts and not (isinstance(key, Scalar) and key.kind == "string" and key.cast is None):
        state.fault("the names of a JSON object are text: write dict[str, ...]")
    return Map(key, value)


_COLLECTIONS: tuple[tuple[Iterable[type], Callable[..., Node]], ...] = (
    ((list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection), _list),
    ((dict, abc.Mapping, abc.MutableMapping), _map),
    ((tuple,), _tuple),
    ((set, frozenset, abc.Set, abc.MutableSet), _set),
)


# Return annotations under which nothing is known of a result, or it is text.
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


def _is_result_class(annotation: Any) -> bool:
    """Tell if a class is one of this package and not a form: Content, ToolResult."""
    if get_origin(annotation) in (TypingUnion, UnionType):
        return any(map(_is_result_class, get_args(annotation)))
    module = getattr(annotation, "__module__", None) or ""
    own = isinstance(annotation, type) and module.partition(".")[0] == __name__.partition(".")[0]
    return own and not hasattr(annotation, PROBLEMS)
