"""JSON values by name, and the bases of values: frozen attrs classes, and frozen objects."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

#: A decoded JSON value. Not a recursive union: each reader would have to narrow every member again.
JSON: TypeAlias = Any
#: A decoded JSON object, or one to encode.
JSONObject: TypeAlias = dict[str, Any]
#: The same, for code that only reads it.
JSONMapping: TypeAlias = Mapping[str, Any]


class Value:
    """The base of values: two values of one class are equal if their fields are equal.

    attrs would compile these methods for every class, which is half of the time that it takes; the
    classes of this package say `eq=False, repr=False` instead.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        # Not `isinstance`: a subclass may have more fields, and equality must be symmetric.
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _names(type(self)))

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in _names(type(self)))))

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in _names(type(self)))
        return f"{type(self).__name__}({', '.join(shown)})"


def _names(cls: type) -> list[str]:
    return [field.name for field in attrs.fields(cls)]


class Frozen:
    """The base of values that are made once, by name, and compared by identity.

    The fields are the annotations of the class; attrs would generate a constructor for each class,
    half a millisecond of the import of every program.
    """

    def __init__(self, **fields: object) -> None:
        # Past `__setattr__`, which refuses every change.
        vars(self).update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")
