"""Typed values → JSON-ready values: dicts, lists, text, numbers, booleans and None.

What a value becomes depends on its own class, never on a declaration: a handler may return an
instance, a mapping that holds instances, or JSON already.
"""

import enum
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from ..._util import json_text
from ..declare._data_class import Record
from ..declare._field import Marker
from ..declare._nodes import Object

# The classes whose values are JSON as they are.
ATOMS = frozenset({str, int, float, bool, type(None)})

Dump = Callable[[Any], Any]

_by_class: "WeakKeyDictionary[type, Dump]" = WeakKeyDictionary()


def dump_value(value: Any) -> Any:
    """Return a value as JSON types.

    Enum members become their values, attrs and dataclass instances objects, sets and tuples lists,
    dates ISO 8601 text, bytes base64. A field that was absent (None where null does not fit) is
    left out. A key that is no text becomes one, as `json.dumps` would write it: 1 is "1", True is
    "true", a date its ISO 8601 text.

    Args:
        value: Anything; mappings and lists may hold any of these.

    Returns:
        New containers: the value is never changed and never shared, except for JSON scalars.

    Raises:
        TypeError: The value, or one inside it, has no JSON form; or a key has no text, or that of
            another key of its mapping.
        ValueError: A key is NaN or an infinity.
        RecursionError: The value contains itself.
    """
    cls = value.__class__
    if cls in ATOMS:
        return value
    if cls is dict:
        made = {
            name if name.__class__ is str else _name(name): dump_value(inner)
            for name, inner in value.items()
        }
        if len(made) != len(value):
            raise _clash(value)
        return made
    if cls is list or cls is tuple:
        return [dump_value(inner) for inner in value]
    dump = _by_class.get(cls)
    if dump is None:
        dump = _by_class[cls] = _choose(cls)
    return dump(value)


def register(node: Object) -> None:
    """Keep how instances of a form's class are dumped: only the form knows names and absence."""
    if issubclass(node.cls, (dict, Record)):
        return
    fields = [
        (field.attribute, field.name, not (field.required or field.may_be_null))
        for field in node.fields
    ]
    _by_class[node.cls] = _by_attributes(fields)


def _choose(cls: type) -> Dump:
    """Return what dumps the instances of a class that is met for the first time."""
    if cls is Marker:
        return _refuse_marker
    if issubclass(cls, enum.Enum):
        return lambda value: dump_value(value.value)
    if issubclass(cls, Record):
        return lambda value: {
            name: dump_value(inner) for name, inner in value.__dict__.items() if inner is not None
        }
    if attrs.has(cls):
        return _by_attributes([(a.name, a.alias or a.name, False) for a in attrs.fields(cls)])
    if hasattr(cls, "__dataclass_fields__"):
        fields = sys.modules["dataclasses"].fields(cls)
        return _by_attributes([(field.name, field.name, False) for field in fields])
    return _choose_kind(cls)


def _choose_kind(cls: type) -> Dump:
    for kind, dump in _KINDS:
        if issubclass(cls, kind):
            return dump
    for base in cls.__mro__:
        named = _NAMED.get((base.__module__, base.__qualname__))
        if named is not None:
            return named
    return _refuse


def _by_attributes(fields: Iterable[tuple[str, str, bool]]) -> Dump:
    """Return what dumps by attribute; one marked True is left out while it is None."""
    always = [(attribute, name) for attribute, name, absent in fields]
    absent = frozenset(name for _, name, may_be_absent in fields if may_be_absent)

    def dump(value: Any) -> dict[str, Any]:
        made = {}
        for attribute, name in always:
            inner = getattr(value, attribute)
            if inner.__class__ in ATOMS:
                if inner is None and name in absent:
                    continue
                made[name] = inner
            else:
                made[name] = dump_value(inner)
        return made

    return dump


def _mapping(value: Mapping[Any, Any]) -> Any:
    return dump_value(dict(value))


def _list(value: Iterable[Any]) -> list[Any]:
    return [dump_value(inner) for inner in value]


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__qualname__} is not JSON, and no class of a form")


def _refuse_marker(value: Marker) -> Any:
    raise TypeError(f"{value.maker}(...) is a field, which stands in a mapping of fields only")


def _name(name: Any) -> str:
    """Return the text of a key that is not of the class `str` itself."""
    # Base64 is a form for values that nobody compares; as a key it would be a surprise.
    plain = name.value if isinstance(name, enum.Enum) else name
    with suppress(TypeError):
        plain = _refuse(plain) if isinstance(plain, bytes) else dump_value(plain)
    if isinstance(plain, str):
        return str.__str__(plain)
    if plain.__class__ in ATOMS:
        return json_text(plain)
    raise TypeError(f"the keys of a JSON object are text, and {type(name).__qualname__} has none")


def _clash(value: Mapping[Any, Any]) -> TypeError:
    """Make the error for a mapping that would lose an entry, as 1 and "1" are one key in JSON."""
    ((text, _),) = Counter(map(_name, value)).most_common(1)
    return TypeError(f"two keys of one object would both be {text!r} in JSON")


_KINDS: tuple[tuple[Any, Dump], ...] = (
    (str, str.__str__),
    (int, int),
    (float, float),
    ((bytes, bytearray, memoryview), lambda value: b64encode(value).decode("ascii")),
    (Mapping, _mapping),
    ((list, tuple), _list),
    # A set has no order, and what is published must have one.
    (AbstractSet, lambda value: _list(sorted(value, key=repr))),
)
_NAMED: dict[tuple[str, str], Dump] = {
    ("datetime", "date"): lambda value: value.isoformat(),
    ("datetime", "time"): lambda value: value.isoformat(),
    ("uuid", "UUID"): str,
    ("decimal", "Decimal"): lambda value: format(value, "f"),
}
