"""The base of every value of the wire; only this file knows that the wire has camelCase names.

A wire value is a frozen attrs class. Its fields, their order and their annotations are the whole
description of its JSON: `website_url: str | None = None` is an optional string at `websiteUrl`.
Other keys of a peer are kept at `extra`, and sent on unchanged.
"""

import binascii
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import attrs

from .._errors import ProtocolError
from .._util import json_text, shorten
from .._value import JSONObject, Value

#: Longest quotation of a wrong value in an error, in characters of JSON.
MAX_QUOTED = 60


# A rule and no table of names: a new field needs nothing but its annotation.
def camel_case(name: str) -> str:
    """Give the JSON key of a field.

    Args:
        name: The Python name: `website_url`, `meta`.

    Returns:
        The JSON key: `websiteUrl`, `_meta`.
    """
    if name == "meta":
        return "_meta"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def as_tuple(items: Iterable[object] | None) -> tuple[Any, ...]:
    """Freeze a list; the converter of every list field.

    Args:
        items: Any iterable but a string, or None for no items.

    Returns:
        The items.

    Raises:
        TypeError: It is a string, which Python would split into its letters.
    """
    if isinstance(items, str):
        raise TypeError(f"expected a list, got the string {items!r}")
    return tuple(items or ())


def _quote(value: object) -> str:
    try:
        text = json_text(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return shorten(text, MAX_QUOTED)


class JsonKind:
    """A type of field: checks Python values, reads them from JSON and writes them to JSON."""

    __slots__ = ("json_noun", "noun", "types")

    def __init__(self, noun: str, *types: type, json_noun: str | None = None) -> None:
        self.noun = noun
        self.json_noun = json_noun or noun
        self.types = types

    def accepts(self, value: object) -> bool:
        """Tell whether a Python value is of this kind; a bool is never a number."""
        return isinstance(value, self.types) and (value.__class__ is not bool or bool in self.types)

    def read(self, value: object, where: str) -> Any:
        """Turn a decoded JSON value into the Python value, or raise `ProtocolError`."""
        if not self.accepts(value):
            raise ProtocolError(f"{where}: expected {self.noun}, got {_quote(value)}")
        return value

    def write(self, value: Any) -> Any:
        """Turn the Python value into a JSON-ready one."""
        return value


class _IntegerKind(JsonKind):
    """An integer; JSON does not tell `3` from `3.0` (JSON Schema 2020-12 core section 6.3)."""

    __slots__ = ()

    def read(self, value: object, where: str) -> Any:
        if type(value) is float and value.is_integer():
            return int(value)
        return super().read(value, where)


class _BytesKind(JsonKind):
    """Bytes in Python, base64 on the wire and nowhere else."""

    __slots__ = ()

    def read(self, value: object, where: str) -> bytes:
        if not isinstance(value, str):
            raise ProtocolError(f"{where}: expected a base64 string, got {_quote(value)}")
        try:
            # Strict: Python else skips foreign characters, and two texts would mean one value.
            return binascii.a2b_base64(value, strict_mode=True)
        except ValueError:
            raise ProtocolError(f"{where}: expected base64, got {_quote(value)}") from None

    def write(self, value: bytes) -> str:
        return binascii.b2a_base64(value, newline=False).decode("ascii")


class _MappingKind(JsonKind):
    """A mapping in Python, an object on the wire."""

    __slots__ = ()

    def write(self, value: Mapping[str, object]) -> JSONObject:
        return dict(value)


class _ListKind(JsonKind):
    """A tuple in Python, an array on the wire."""

    __slots__ = ("item",)

    def __init__(self, item: JsonKind) -> None:
        super().__init__("a list", list)
        self.item = item

    def accepts(self, value: object) -> bool:
        return isinstance(value, list | tuple) and all(map(self.item.accepts, value))

    def read(self, value: object, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ProtocolError(f"{where}: expected a list, got {_quote(value)}")
        return tuple(self.item.read(item, f"{where}[{i}]") for i, item in enumerate(value))

    def write(self, value: Iterable[object]) -> list[Any]:
        return [self.item.write(item) for item in value]


class _WireKind(JsonKind):
    """A nested value: any class with `from_wire` and `to_wire`."""

    __slots__ = ("cls",)

    def __init__(self, cls: Any) -> None:
        super().__init__(f"an instance of {cls.__name__}", cls, json_noun="an object")
        self.cls = cls

    def read(self, value: Any, where: str) -> Any:
        return self.cls.from_wire(value, where)

    def write(self, value: Any) -> Any:
        return value.to_wire()


_OBJECT = _MappingKind("an object", Mapping)
# By origin: `dict[str, Any]` and `dict` are one kind, since members are not checked.
_KINDS: dict[object, JsonKind] = {
    str: JsonKind("a string", str),
    bool: JsonKind("true or false", bool),
    int: _IntegerKind("an integer", int),
    float: JsonKind("a number", int, float),
    bytes: _BytesKind("bytes", bytes),
    dict: _OBJECT,
    Mapping: _OBJECT,
    Any: JsonKind("anything", object, bool),
    # The class that has the field says which strings it takes.
    typing.Literal: JsonKind("a string", str),
}


def kind_of(annotation: object) -> JsonKind:
    """Find the kind of a field by its annotation.

    Args:
        annotation: `str`, `bool`, `int`, `float`, `bytes`, `dict[str, Any]`,
            `Mapping[str, Any]`, `Any`, a `Literal` of strings, a class with `from_wire` and
            `to_wire`, `tuple[X, ...]` of one of these, or any of them with `| None`.

    Returns:
        The kind; for `X | None` the kind of X.
    """
    # `X | None`: None comes last by convention, and `Item.required` says that it is allowed.
    if isinstance(annotation, types.UnionType):
        annotation = annotation.__args__[0]
    origin = typing.get_origin(annotation)
    if origin is tuple:
        return _ListKind(kind_of(typing.get_args(annotation)[0]))
    if hasattr(annotation, "from_wire"):
        return _WireKind(annotation)
    return _KINDS[origin or annotation]


class Item(NamedTuple):
    """One field of a wire value: its Python name, its JSON key and its kind."""

    name: str
    key: str
    kind: JsonKind
    required: bool

    def admits(self, value: object) -> bool:
        """Tell whether a Python value may stand in the field."""
        return self.kind.accepts(value) or (value is None and not self.required)


def read_items(
    items: Iterable[Item], value: object, where: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take the described fields out of a JSON object.

    Args:
        items: The description.
        value: The decoded JSON value of the peer.
        where: Its name in errors: `Implementation`, `result.content[0]`.

    Returns:
        The values by Python name, without absent and null ones; then the unknown keys.

    Raises:
        ProtocolError: It is not an object, a required key is missing, or a value has the wrong
            type.
    """
    # A dict first, here and below: the check of an abstract class takes ten times as long.
    if value.__class__ is not dict and not isinstance(value, Mapping):
        raise ProtocolError(f"{where}: expected an object, got {_quote(value)}")
    # A copy: messages are shared with observers, so nothing is taken out of them.
    rest = dict(value)
    found: dict[str, object] = {}
    for item in items:
        # Null counts as absent: many peers write it for optional members that have no value.
        raw = rest.pop(item.key, None)
        if raw is not None:
            found[item.name] = item.kind.read(raw, f"{where}.{item.key}")
        elif item.required:
            raise ProtocolError(f"{where}.{item.key}: expected {item.kind.json_noun}, got nothing")
    return found, rest


def write_items(items: Iterable[Item], values: Mapping[str, object]) -> JSONObject:
    """Write described fields as a JSON object.

    Args:
        items: The description; its order is the order of the keys.
        values: A value, or None, for each item by its Python name.

    Returns:
        A new dict, without optional fields that are None or an empty list.
    """
    return {
        item.key: item.kind.write(values[item.name])
        for item in items
        if item.required or values[item.name] not in (None, ())
    }


def merge_extra(wire: JSONObject, extra: Mapping[str, object]) -> JSONObject:
    """Put unknown keys back; a known key is never overwritten by one of them.

    Args:
        wire: The JSON object of the known fields; changed in place.
        extra: The unknown keys.

    Returns:
        `wire`.
    """
    for key, value in extra.items():
        wire.setdefault(key, value)
    return wire


_ITEMS: "dict[type[Wire], tuple[Item, ...]]" = {}


def _items_of(cls: "type[Wire]") -> tuple[Item, ...]:
    # On first use, not at import: a program that never sends an icon does not pay for it.
    if cls not in _ITEMS:
        _ITEMS[cls] = tuple(
            Item(a.name, camel_case(a.name), kind_of(a.type), a.default is attrs.NOTHING)
            for a in attrs.fields(cls)
            if a.name != "extra"
        )
    return _ITEMS[cls]


@attrs.frozen(eq=False, repr=False, kw_only=True)
class Wire(Value):
    """A value that is a JSON object on the wire; subclasses say `eq=False, repr=False`.

    It cannot be hashed, since it holds mappings.

    Attributes:
        extra: Keys that this version of the package does not know, unchanged.
    """

    extra: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)

    def __attrs_post_init__(self) -> None:
        for item in _items_of(type(self)):
            value = getattr(self, item.name)
            if not item.admits(value):
                where = f"{type(self).__name__}.{item.name}"
                raise TypeError(f"{where}: expected {item.kind.noun}, got {value!r}")

    def __repr__(self) -> str:
        named = ((a.name, getattr(self, a.name)) for a in attrs.fields(type(self)))
        # An empty mapping has a meaning: a capability without parts is `{}`.
        given = ", ".join(
            f"{k}={v!r}" for k, v in named if v not in (None, ()) and (v or k != "extra")
        )
        return f"{type(self).__name__}({given})"

    @classmethod
    def from_wire(cls, value: object, where: str | None = None) -> Self:
        """Read the JSON object of a peer.

        Args:
            value: The decoded JSON value; must be an object.
            where: Its name in errors; the name of the class by default.

        Returns:
            The value; unknown keys are at `extra`, and null counts as absent.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        where = where or cls.__name__
        # Read before the constructor: its errors would name Python fields, not JSON keys.
        found, rest = read_items(_items_of(cls), value, where)
        try:
            return cls(**found, extra=rest)
        except TypeError as error:  # a rule of the class over several fields
            raise ProtocolError(f"{where}: {error}") from None

    def to_wire(self) -> JSONObject:
        """Write the JSON object, in the order of the fields.

        Returns:
            A new JSON-ready dict without null and empty-list keys; the keys of `extra` are last.
        """
        items = _items_of(type(self))
        wire = write_items(items, {item.name: getattr(self, item.name) for item in items})
        return merge_extra(wire, self.extra)
