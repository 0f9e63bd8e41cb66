"""The data form: `{"path": f.string(required=True), "note": str}` → nodes, and its instances."""

from collections.abc import Iterator, Mapping
from enum import Enum, EnumMeta
from keyword import iskeyword
from types import FunctionType
from typing import Any, get_origin

import attrs

from ._annotations import choice
from ._field import Marker
from ._nodes import MISSING, Array, Map, Node, Object, ObjectField, Scalar
from ._resolve import NameScope
from ._state import ParseState


@attrs.frozen(slots=False, eq=False, repr=False, init=False)
class DataArguments:
    """The arguments of the data form: `args.path`; `args["path"]` for other names than identifiers.

    Every declared name is an attribute; it is None for an absent field without a default. A field
    hides a method of this class: with a field `get`, `args.get` is its value.
    """

    def __getitem__(self, name: str) -> object:
        return self.__dict__[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def get(self, name: str, default: object = None) -> Any:
        """Return the value of a declared name, or `default` if the name is not declared."""
        return self.__dict__.get(name, default)

    def __mcp_json__(self) -> dict[str, object]:
        """Return the values by name for the dumper; absent ones are left out."""
        return {name: value for name, value in self.__dict__.items() if value is not None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DataArguments):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        # Of a tuple, too, there is one only if all values have one.
        return hash(frozenset(self.__dict__.items()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"


def record_class(name: str, fields: list[str]) -> type[DataArguments]:
    """Return an attrs class with these names as attributes, as far as they are identifiers."""
    # attrs writes the names into generated code; others live in the instance only.
    named = [field for field in fields if field.isidentifier() and not iskeyword(field)]
    these = {field: attrs.field(init=False) for field in named if not field.startswith("__")}
    cls = type(name, (DataArguments,), {"__module__": __name__})
    return attrs.define(
        cls, these=these, slots=False, frozen=True, eq=False, repr=False, init=False
    )


_NO_NAMES = NameScope({})


def is_field(value: object) -> bool:
    """Tell if a value of a mapping declares a field: a marker, or a type."""
    if isinstance(value, (Marker, type)) or value is Any or _is_maker(value):
        return True
    # A NewType, and a named type of PEP 695.
    named = hasattr(value, "__supertype__") or hasattr(value, "__value__")
    return named or get_origin(value) is not None


def _is_maker(value: object) -> bool:
    """Tell if a value is a function of the data form that was not called: `f.string`."""
    return isinstance(value, FunctionType) and value.__annotations__.get("return") is Marker


def read_data(state: ParseState, declared: Mapping[object, object], name: str) -> Object:
    """Read a mapping of names to fields and types.

    Args:
        state: Takes the faults: an entry that is not a field, for one.
        declared: The mapping.
        name: The name of the class that is made.
    """
    fields: list[ObjectField] = []
    for key, value in declared.items():
        with state.at(str(key), None):
            if isinstance(key, str):
                options = value.options if isinstance(value, Marker) else {}
                required = bool(options.get("required"))
                fields.append(state.field(key, _node(state, value), options, required=required))
            else:
                state.fault(f"the name of a field is text, got {key!r}")
    return Object(name, "direct", record_class(name, [field.name for field in fields]), fields)


def _node(state: ParseState, value: object) -> Node:
    """Read a field or a type, without the constraints of the field."""
    if not isinstance(value, Marker):
        return _typed(state, value)
    state.check_marker(value)
    inner = value.inner
    if value.kind is None:
        state.fault(f"{value.maker}(...) belongs in a class; write f.string(...), f.integer(...)")
        return Node()
    if value.kind == "enum":
        return _enum(state, inner)
    if value.kind == "object":
        return _object(state, inner)
    if value.kind == "array":
        return Array(_item(state, inner))
    return Scalar(value.kind, {"integer": "int", "number": "float"}.get(value.kind))


def _typed(state: ParseState, value: Any) -> Node:
    if _is_maker(value):
        state.fault(f"f.{value.__name__} is not called; write f.{value.__name__}()")
        return Node()
    if not is_field(value):
        state.fault(f"expected a field or a type, got {value!r}; write f.string(), str, ...")
        return Node()
    return state.node(value, _NO_NAMES)


def _item(state: ParseState, value: object) -> Node:
    if value is MISSING:
        state.fault("f.array needs the field or type of its items; write f.array(f.string())")
        return Node()
    node = _node(state, value)
    if isinstance(value, Marker):
        for name in ("required", "default", "header", "title"):
            if name in value.options:
                state.fault(f"{name} belongs to a field, not to the items of an array")
        state.constrain(node, value.options)
        for name in ("description", "examples"):
            if value.options.get(name) is not None:
                node.keywords[name] = value.options[name]
    return node


def _enum(state: ParseState, values: Any) -> Node:
    if len(values) == 1 and isinstance(values[0], (list, tuple, set, frozenset)):
        state.fault("f.enum takes its values one by one; write f.enum(*values)")
        return Node()
    members: list[object] = []
    for value in values:
        members += list(value) if isinstance(value, EnumMeta) else [value]
    if not members:
        state.fault('f.enum needs values; write f.enum("plain", "loud")')
    sent = [member.value if isinstance(member, Enum) else member for member in members]
    for index, value in enumerate(sent):
        if any(value == each and type(value) is type(each) for each in sent[:index]):
            state.fault(f"f.enum has {value!r} twice; leave one out")
    return choice(state, members, "f.enum")


def _object(state: ParseState, declared: object) -> Node:
    if not isinstance(declared, Mapping):
        got = "" if declared is MISSING else f", got {declared!r}"
        state.fault(
            "f.object needs its fields, a mapping of names to fields or types, or {} for an object"
            f" with any names{got}"
        )
        return Node()
    if not declared:
        # Nothing is said about the names, so nothing that is sent may be dropped.
        return Map(Scalar("string"), Node())
    return read_data(state, declared, "Arguments")
