"""The model of a declared schema: a tree of nodes, one for each type.

Every way to declare is read into it; the published schema, the builder and the dumper are made
from it. Plain classes, because a node is completed in several steps, and because attrs would take
5 ms of the import to generate these few lines.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, dataclass_transform

#: Fields of a form once its classes are written out: a class that is written out twice at each of
#: many levels grows without bound.
MAX_PLACES: Final = 20_000


_Entry = TypeVar("_Entry")


class FormTooLarge(Exception):
    """A form has more than `MAX_PLACES` fields once its classes are written out."""

    text = "is too large once its classes are written out; make it flatter"


class Missing:
    """The type of `MISSING`."""


#: Stands for the absence of a default, since None is a default.
MISSING: Final = Missing()


class Format(NamedTuple):
    """A Python type that travels as text.

    Attributes:
        name: In words, for messages: `date`.
        keywords: JSON Schema keywords besides `type`.
        parse: Turns text into the value; raises ValueError for text that the keywords accept and
            the type does not.
        total: True if `parse` accepts every text that the keywords accept.
    """

    name: str
    keywords: dict[str, object]
    parse: Callable[[str], object]
    total: bool


def _uuid(cls: type) -> Callable[[str], object]:
    def parse(text: str) -> object:
        # UUID() also takes braces and `urn:`, which `format: uuid` (RFC 4122) does not allow.
        if len(text) != 36:
            raise ValueError("not 36 characters")
        return cls(text)

    return parse


def _base64(_cls: type) -> Callable[[str], object]:
    def parse(text: str) -> bytes:
        try:
            return b64decode(text, validate=True)
        except Base64Error as error:
            raise ValueError(str(error)) from None

    return parse


def _called(cls: type) -> Callable[[str], object]:
    return cls


# A length of time of RFC 3339, appendix A, without years and months, which have no fixed length; a
# sign in front and fractions of a second, as ISO 8601-2 and pydantic have them.
_DURATION: Final = (
    r"(-?)P(?!$)(?:([0-9]{1,9})W|(?:([0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)S)?)?)"
)
_UNITS: Final = ("weeks", "days", "hours", "minutes", "seconds")


def _duration(cls: type) -> Callable[[str], object]:
    def parse(text: str) -> object:
        found = re.fullmatch(_DURATION, text)
        if found is None:
            raise ValueError("not an ISO 8601 duration")
        sign, *amounts = found.groups()
        parts = zip(_UNITS, amounts, strict=True)
        value = cls(**{unit: float(amount) for unit, amount in parts if amount is not None})
        return -value if sign else value

    return parse


# Of a class that is known by its name only.
_ISO: Callable[[object], object] = attrgetter("fromisoformat")
_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"
# The types are recognised by name: only a program that uses one loads its module. `format` is an
# annotation (JSON Schema 2020-12, validation, section 7.2.1), so text that does not parse is
# refused after the schema accepted it; see `convert/_class_validation.py`.
# The module and name of a class → the name in messages, the keywords, the maker of the parser.
# The top-level module counts: since 3.13 the classes of pathlib are defined in a submodule.
_FORMATS: Mapping[tuple[str, str], tuple[str, dict[str, object], Callable[[Any], Any]]] = {
    ("datetime", "datetime"): ("date-time", {"format": "date-time"}, _ISO),
    ("datetime", "date"): ("date", {"format": "date"}, _ISO),
    ("datetime", "time"): ("time", {"format": "time"}, _ISO),
    ("uuid", "UUID"): ("uuid", {"format": "uuid"}, _uuid),
    ("decimal", "Decimal"): ("decimal", {"pattern": _DECIMAL}, _called),
    ("datetime", "timedelta"): ("duration", {"format": "duration"}, _duration),
    ("builtins", "bytes"): ("base64", {"contentEncoding": "base64"}, _base64),
    ("ipaddress", "IPv4Address"): ("ipv4", {"format": "ipv4"}, _called),
    ("ipaddress", "IPv6Address"): ("ipv6", {"format": "ipv6"}, _called),
    ("ipaddress", "IPv4Network"): ("IPv4 network", {}, _called),
    ("ipaddress", "IPv6Network"): ("IPv6 network", {}, _called),
    **dict.fromkeys(
        (("pathlib", "Path"), ("pathlib", "PurePath"), ("pathlib", "PurePosixPath")),
        ("path", {}, _called),
    ),
}
# Their parsers take every text that the keywords accept.
_TOTAL: Final = ("decimal", "path")


def text_format(cls: type) -> Format | None:
    """Return the text form of a class; None if it does not travel as text."""
    made = _FORMATS.get((cls.__module__.partition(".")[0], cls.__qualname__))
    if made is None:
        return None
    name, keywords, maker = made
    return Format(name, keywords, maker(cls), name in _TOTAL)


def find_named(cls: type, table: Mapping[tuple[str, str], _Entry]) -> _Entry | None:
    """Return the entry of a class, or of its nearest base; a library need not be imported for it.

    Args:
        cls: The class.
        table: The entries, by the top-level package and the name of the class. A name has no
            underscore at its end: numpy 1 called its boolean type `bool_`.
    """
    names = ((b.__module__.partition(".")[0], b.__qualname__.rstrip("_")) for b in cls.__mro__)
    return next((table[name] for name in names if name in table), None)


@dataclass_transform()
class Node:
    """Any value. The subclasses say more, each with its annotations in the order of its arguments.

    Attributes:
        keywords: JSON Schema keywords of this place: constraints, description.
    """

    def __init__(self, *values: object) -> None:
        self.keywords: dict[str, Any] = {}
        vars(self).update(zip(type(self).__annotations__, values, strict=False))

    def children(self) -> "Iterator[Node]":
        """Yield the nodes inside."""
        for value in vars(self).values():
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, Node):
                    yield each


class Scalar(Node):
    """A text, a number, a boolean or null.

    Attributes:
        kind: The JSON Schema type.
        cast: How the JSON value becomes the delivered one: "int" (1.0 is 1), "float" (1 is 1.0)
            or a `Format`; None if it stays as it is.
    """

    kind: str
    cast: Format | str | None = None


class ScalarChoice(Node):
    """One of several scalars.

    Attributes:
        values: The choices as JSON.
        results: The delivered value of each choice, in the order of `values`.
        titles: The text that a form shows for a value, by value.
    """

    values: tuple[object, ...]
    results: tuple[object, ...]
    titles: Mapping[object, str] = MappingProxyType({})


class Array(Node):
    """A list, delivered as `collection`."""

    item: Node
    collection: type = list


class Tuple(Node):
    """A list of fixed length, each place with its own type."""

    items: list[Node]


class Map(Node):
    """An object with any names."""

    key: Node
    value: Node


class Union(Node):
    """One of several types."""

    branches: list[Node]

    @property
    def options(self) -> list[Node]:
        """The branches other than null."""
        return [branch for branch in self.branches if not is_null(branch)]


class ObjectField:
    """A named value in an object.

    Args:
        name: The name on the wire.
        node: The type.
        **about: The attributes that differ from their defaults.

    Attributes:
        name: On the wire.
        node: Its type.
        attribute: The attribute of the instance, or the key.
        keyword: The parameter of the constructor; None if it takes none.
        required: True if the name must be present.
        default: The declared default; MISSING for none.
        factory: Makes the default; called with the instance if `takes_self`.
        owner: The class that declares it.
        title: Its name for people; a schema does not show it.
        complete: The source of completions, as declared, unchecked; None for none.
    """

    attribute: str
    keyword: str | None
    required: bool = False
    default: object = MISSING
    factory: Callable[..., object] | None = None
    takes_self: bool = False
    owner: type | None = None
    description: str | None = None
    examples: tuple[object, ...] = ()
    header: str | None = None
    title: str | None = None
    complete: object = None

    def __init__(self, name: str, node: Node, **about: object) -> None:
        self.node = node
        self.name = self.attribute = self.keyword = name
        vars(self).update(about)

    @property
    def has_default(self) -> bool:
        """True if an absent field gets a declared value."""
        return self.default is not MISSING or self.factory is not None

    @property
    def may_be_null(self) -> bool:
        """True if null is a value of the field, not a sign that it was absent."""
        return type(self.node) is Node or is_nullable(self.node)


class Object(Node):
    """An object with declared names.

    Attributes:
        name: For `$defs` and for the generated source.
        make: `direct` (attributes set without a constructor), `call` (constructor), `dict` (absent
            keys stay absent) or `arguments` (a dict with every key).
        cls: The class to deliver.
        fields: Its fields, in the order of the declaration.
        risky: True if the constructor may refuse a value that the schema accepts.
        recursive: True if the object contains itself, so that its schema needs a name.
    """

    name: str
    make: str
    cls: type
    fields: list[ObjectField]
    risky: bool = False
    recursive: bool = False
    description: str | None = None

    def children(self) -> Iterator[Node]:
        """Yield the types of the fields."""
        return (field.node for field in self.fields)


class Pydantic(Node):
    """A type that pydantic describes and validates.

    Attributes:
        name: For messages and file names.
        schema: Its JSON Schema, without titles, other types written out.
        definitions: The parts that contain themselves, by their names in `$defs`.
        check: Turns JSON into the typed value, or raises. Only an input is read.
        cls: The class with fields, if it is one; else None.
        titles: The titles of its fields that the author wrote, by name on the wire.
    """

    name: str
    schema: dict[str, Any]
    definitions: dict[str, Any]
    check: Callable[[object], object]
    cls: type | None = None
    titles: Mapping[str, str] = MappingProxyType({})


def is_null(node: Node) -> bool:
    """Tell if only null fits."""
    return isinstance(node, Scalar) and node.kind == "null"


def is_nullable(node: Node) -> bool:
    """Tell if null is named as one of the values that fit."""
    if isinstance(node, Union):
        return any(map(is_nullable, node.branches))
    return is_null(node) or (isinstance(node, ScalarChoice) and None in node.values)


def walk(root: Node) -> Iterator[Node]:
    """Yield every node once, the root first."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(node.children())
