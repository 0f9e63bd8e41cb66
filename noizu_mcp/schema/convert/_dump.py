"""Typed values → JSON: dicts, lists, text, numbers, booleans and None.

The class of a value decides, not a declaration: a handler may return an instance, a mapping that
holds instances, or JSON already. How the instances of a class are dumped is found out once.
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
from ..._value import JSONObject
from ..declare._handles import is_handle
from ..declare._nodes import Object, find_named

#: The classes whose values are JSON already.
ATOMS = frozenset({str, int, float, bool, type(None)})

#: The packages whose values have a form of their own.
FOREIGN = frozenset({"numpy", "pandas", "polars"})

Dump = Callable[[Any], object]

_by_class: "WeakKeyDictionary[type, Dump]" = WeakKeyDictionary()


def dump_value(value: Any) -> Any:
    """Return a value as JSON.

    Enum members become their values, attrs and dataclass instances and models of pydantic objects,
    sets and tuples lists, dates and durations ISO 8601 text, paths, UUIDs and addresses text,
    bytes base64. Arrays and series of numpy, pandas and polars become lists, frames lists of
    objects; a missing value of pandas is null. A field that was absent (None where null does not
    fit) is left out. A key that is not text becomes text, as `json.dumps` would write it: 1 is "1",
    True is "true", a date its ISO 8601 text.

    Args:
        value: Any value; mappings and lists may hold any of these.

    Returns:
        JSON in new containers: the value is not changed, and shares nothing that can change.

    Raises:
        TypeError: The value, or a value inside it, has no JSON form; or a key has no text, or
            the text of another key of its mapping.
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
    """Register the dump function of a class; only its form knows names and absence."""
    # A handle writes its id itself.
    if node.make != "dict" and not is_handle(node.cls):
        _by_class[node.cls] = dump_fields(node)


def dump_fields(node: Object) -> Callable[[Any], JSONObject]:
    """Return the function that writes the fields of an instance of a class."""
    fields = [
        (field.attribute, field.name, not (field.required or field.may_be_null))
        for field in node.fields
    ]
    return _by_attributes(fields)


def _choose(cls: type) -> Dump:
    """Return the dumper of a class that is met for the first time."""
    if issubclass(cls, enum.Enum):
        return lambda value: dump_value(value.value)
    if hasattr(cls, "__mcp_json__"):
        return lambda value: dump_value(value.__mcp_json__())
    if (foreign := _of_library(cls)) is not None:
        return foreign
    if attrs.has(cls):
        return _by_attributes([(a.name, a.alias or a.name, False) for a in attrs.fields(cls)])
    if hasattr(cls, "__dataclass_fields__"):
        fields = sys.modules["dataclasses"].fields(cls)
        return _by_attributes([(field.name, field.name, False) for field in fields])
    return _choose_kind(cls)


def _of_library(cls: type) -> Dump | None:
    """Return the dumper of a class that another library defines; None for any other class."""
    if hasattr(cls, "__pydantic_serializer__"):
        return _by_pydantic
    described = "pydantic" in sys.modules and hasattr(cls, "__get_pydantic_core_schema__")
    packages = {base.__module__.partition(".")[0] for base in cls.__mro__}
    if not described and packages.isdisjoint(FOREIGN):
        return None
    # Loaded with the first value of such a library.
    from ._foreign_values import plain_converter

    convert = plain_converter(cls)
    return convert and (lambda value: dump_value(convert(value)))


def _choose_kind(cls: type) -> Dump:
    for kind, dump in _KINDS:
        if issubclass(cls, kind):
            return dump
    return find_named(cls, _NAMED) or _refuse


def _by_attributes(fields: Iterable[tuple[str, str, bool]]) -> Callable[[Any], JSONObject]:
    """Return a dumper by attribute; a field marked True is left out while it is None."""
    named = tuple(fields)

    def dump(value: object) -> JSONObject:
        made = {}
        for attribute, name, may_be_absent in named:
            inner = getattr(value, attribute)
            if inner.__class__ in ATOMS:
                if inner is None and may_be_absent:
                    continue
                made[name] = inner
            else:
                made[name] = dump_value(inner)
        return made

    return dump


def _by_pydantic(value: Any) -> object:
    # The contract is checked afterwards, by the schema: pydantic need not warn.
    write = value.__pydantic_serializer__.to_python
    return write(value, mode="json", by_alias=True, warnings=False)


def _list(value: Iterable[object]) -> list[object]:
    return [dump_value(inner) for inner in value]


def _duration(value: Any) -> str:
    """Write a timedelta as ISO 8601, as pydantic does: `P1DT2H`."""
    sign, value = ("-", -value) if value.days < 0 else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    rest = f"{seconds}.{value.microseconds:06}".rstrip("0").rstrip(".")
    amounts = ((hours, "H"), (minutes, "M"), (rest if rest != "0" else 0, "S"))
    time = "".join(f"{amount}{unit}" for amount, unit in amounts if amount)
    day = f"{value.days}D" if value.days else ""
    return f"{sign}P{day}{'T' if time else ''}{time}" if day or time else "PT0S"


def _decimal(value: Any) -> str:
    if not value.is_finite():
        raise ValueError(f"JSON cannot express {value}")
    return format(value, "f")


def _refuse(value: object) -> object:
    # Loaded with the first value that cannot be sent.
    from ._foreign_values import no_json

    raise TypeError(no_json(value))


def _name(name: object) -> str:
    """Return the text of a key that is not of the class `str` itself."""
    # As a key, base64 would surprise: keys are compared and read by people.
    plain = name.value if isinstance(name, enum.Enum) else name
    with suppress(TypeError):
        plain = _refuse(plain) if isinstance(plain, bytes) else dump_value(plain)
    if isinstance(plain, str):
        return str.__str__(plain)
    if plain.__class__ in ATOMS:
        return json_text(plain)
    raise TypeError(f"the keys of a JSON object are text, and {type(name).__qualname__} has none")


def _clash(value: Mapping[object, object]) -> TypeError:
    """Make the error for a mapping that would lose an entry, as 1 and "1" are one key in JSON."""
    ((text, _),) = Counter(map(_name, value)).most_common(1)
    return TypeError(f"two keys of one object would both be {text!r} in JSON")


_KINDS: tuple[tuple[Any, Dump], ...] = (
    (str, str.__str__),
    (int, int),
    (float, float),
    ((bytes, bytearray, memoryview), lambda value: b64encode(value).decode("ascii")),
    (Mapping, lambda value: dump_value(dict(value))),
    ((list, tuple), _list),
    # A set has no order, and a published schema must have one.
    (AbstractSet, lambda value: _list(sorted(value, key=repr))),
)
_NAMED: dict[tuple[str, str], Dump] = {
    ("datetime", "date"): lambda value: value.isoformat(),
    ("datetime", "time"): lambda value: value.isoformat(),
    ("datetime", "timedelta"): _duration,
    ("uuid", "UUID"): str,
    ("decimal", "Decimal"): _decimal,
    ("pathlib", "PurePath"): str,
    ("ipaddress", "_IPAddressBase"): str,
}
