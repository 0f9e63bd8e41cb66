"""The data form, `{"path": f.string(required=True), "note": str}` → nodes."""

from collections.abc import Callable, Mapping
from enum import EnumMeta
from typing import Any, get_origin

from .. import fields
from . import _nodes as nodes
from ._data_class import record_class
from ._field import MISSING, Marker
from ._field_options import constrain
from ._infer import choice
from ._nodes import Field, Node, Scalar
from ._parse_state import Reading, make_field
from ._resolve import Scope

_NO_NAMES = Scope({})
_MAKERS = [getattr(fields, name) for name in fields.__all__]


def is_field(value: Any) -> bool:
    """Tell if a value of a mapping declares a field: a marker, or a type."""
    if isinstance(value, (Marker, type)) or value is Any or _is_maker(value):
        return True
    return get_origin(value) is not None


def _is_maker(value: Any) -> bool:
    return any(value is maker for maker in _MAKERS)


def read_data(reading: Reading, declared: Mapping[Any, Any], name: str) -> nodes.Object:
    """Read a mapping of names to fields and types.

    Args:
        reading: Where faults go: an entry that is no field, for one.
        declared: The mapping.
        name: For the class that is made.
    """
    read: list[Field] = []
    for key, value in declared.items():
        with reading.at(str(key), None):
            if isinstance(key, str):
                read.append(_field(reading, key, value))
            else:
                reading.fault(f"the name of a field is text, got {key!r}")
    cls = record_class(name, [field.name for field in read])
    node = nodes.Object(name, "direct", cls)
    node.fields.extend(read)
    return node


def _field(reading: Reading, name: str, value: Any) -> Field:
    if isinstance(value, Marker):
        reading.check_marker(value)
        return make_field(reading, name, _marked(reading, value), value.options, **_required(value))
    return make_field(reading, name, _typed(reading, value), {}, required=False)


def _required(marker: Marker) -> dict[str, Any]:
    return {"required": bool(marker.options.get("required"))}


def _typed(reading: Reading, value: Any) -> Node:
    if _is_maker(value):
        reading.fault(f"f.{value.__name__} is not called; write f.{value.__name__}()")
        return Node()
    if not is_field(value):
        reading.fault(f"expected a field or a type, got {value!r}; write f.string(), str, ...")
        return Node()
    return reading.node(value, _NO_NAMES)


def _item(reading: Reading, value: Any) -> Node:
    if not isinstance(value, Marker):
        return _typed(reading, value)
    reading.check_marker(value)
    node = _marked(reading, value)
    for name in ("required", "default", "header", "title"):
        if name in value.options:
            reading.fault(f"{name} belongs to a field, not to the items of an array")
    for problem in constrain(node, value.options):
        reading.fault(problem)
    for name in ("description", "examples"):
        if value.options.get(name) is not None:
            node.keywords[name] = value.options[name]
    return node


def _marked(reading: Reading, marker: Marker) -> Node:
    maker = _KINDS.get(marker.kind or "")
    if maker is None:
        reading.fault(
            f"{marker.maker}(...) belongs into a class; write f.string(...), f.integer(...)"
        )
        return Node()
    return maker(reading, marker.inner)


def _enum(reading: Reading, values: Any) -> Node:
    if len(values) == 1 and isinstance(values[0], (list, tuple, set, frozenset)):
        reading.fault("f.enum takes its values one by one; write f.enum(*values)")
        return Node()
    members = [member for value in values for member in _members(value)]
    if not members:
        reading.fault('f.enum needs values; write f.enum("plain", "loud")')
    return choice(reading, members, "f.enum")


def _members(value: Any) -> list[Any]:
    return list(value) if isinstance(value, EnumMeta) else [value]


def _object(reading: Reading, declared: Any) -> Node:
    if not isinstance(declared, Mapping):
        got = "" if declared is MISSING else f", got {declared!r}"
        reading.fault(
            f"f.object needs its fields, a mapping of names to fields or types, or {{}} for an object with any names{got}"
        )
        return Node()
    if not declared:
        # Nothing to name means that nothing is known, not that nothing may be sent.
        return nodes.Map(Scalar("string"), Node())
    return read_data(reading, declared, "Arguments")


def _array(reading: Reading, item: Any) -> Node:
    if item is MISSING:
        reading.fault("f.array needs the field or type of its items; write f.array(f.string())")
        return Node()
    return nodes.Array(_item(reading, item))


_KINDS: Mapping[str, Callable[[Reading, Any], Node]] = {
    "string": lambda _reading, _inner: Scalar("string"),
    "integer": lambda _reading, _inner: Scalar("integer", "int"),
    "number": lambda _reading, _inner: Scalar("number", "float"),
    "boolean": lambda _reading, _inner: Scalar("boolean"),
    "enum": _enum,
    "object": _object,
    "array": _array,
}
