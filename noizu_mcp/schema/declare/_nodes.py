"""The model of a declared schema: a tree of nodes, one for each type.

Every way to declare is read into it; the published schema, the builder and the dumper are made
from it. Plain classes, because a node is completed in several steps, and because attrs would take
5 ms of the import to generate these few lines.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final


class Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"


#: The default of a field that has none; None is a default.
MISSING: Final = Missing()


class Format:
    """A Python type that travels as text.

    Attributes:
        name: In words, for messages: `date`.
        keywords: JSON Schema keywords besides `type`.
        parse: Turns text into the value; raises ValueError for text that the keywords accept and
            the type does not.
        total: True if `parse` accepts every text that the keywords accept.
    """

    __slots__ = ("keywords", "name", "parse", "total")

    def __init__(
        self,
        name: str,
        keywords: dict[str, Any],
        parse: Callable[[str], Any],
        *,
        total: bool = False,
    ) -> None:
        self.name = name
        self.keywords = keywords
        self.parse = parse
        self.total = total


def _iso(cls: Any) -> Callable[[str], Any]:
    parse: Callable[[str], Any] = cls.fromisoformat
    return parse


def _uuid(cls: type) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        # UUID() also takes braces and `urn:`, which `format: uuid` (RFC 4122) does not allow.
        if len(text) != 36:
            raise ValueError("not 36 characters")
        return cls(text)

    return parse


def _base64(_cls: type) -> Callable[[str], Any]:
    def parse(text: str) -> bytes:
        try:
            return b64decode(text, validate=True)
        except Base64Error as error:
            raise ValueError(str(error)) from None

    return parse


_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"
# The types are recognised by name: only a program that uses one loads its module. `format` is an
# annotation (JSON Schema 2020-12, validation, section 7.2.1), so text that does not parse is
# refused after the schema accepted it; see `convert/_class_validation.py`.
# The module and name of a class → the name in messages, the keywords, the maker of the parser.
_FORMATS: Mapping[tuple[str, str], tuple[str, dict[str, Any], Callable[[Any], Any]]] = {
    ("datetime", "datetime"): ("date-time", {"format": "date-time"}, _iso),
    ("datetime", "date"): ("date", {"format": "date"}, _iso),
    ("datetime", "time"): ("time", {"format": "time"}, _iso),
    ("uuid", "UUID"): ("uuid", {"format": "uuid"}, _uuid),
    ("decimal", "Decimal"): ("decimal", {"pattern": _DECIMAL}, lambda cls: cls),
    ("builtins", "bytes"): ("base64", {"contentEncoding": "base64"}, _base64),
}


def text_format(cls: type) -> Format | None:
    """Return the text form of a class, or None if it has none."""
    made = _FORMATS.get((cls.__module__, cls.__qualname__))
    if made is None:
        return None
    name, keywords, maker = made
    return Format(name, keywords, maker(cls), total=name == "decimal")


class Node:
    """Any value. The subclasses say more.

    Attributes:
        keywords: JSON Schema keywords of this place: constraints, description.
    """

    __slots__ = ("keywords",)

    def __init__(self, **keywords: Any) -> None:
        self.keywords = keywords

    def children(self) -> "Iterator[Node]":
        """Yield the nodes inside."""
        return iter(())


class Scalar(Node):
    """A text, a number, a boolean or null.

    Attributes:
        kind: The JSON Schema type.
        cast: How the JSON value becomes the delivered one: "int" (1.0 is 1), "float" (1 is 1.0)
            or a `Format`; None if it stays as it is.
    """

    __slots__ = ("cast", "kind")

    def __init__(self, kind: str, cast: Format | str | None = None, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.kind = kind
        self.cast = cast


class Choice(Node):
    """One of several scalars.

    Attributes:
        values: The choices as JSON.
        results: The delivered value of each choice, in the order of `values`.
        titles: The text that a form shows for a value, by value.
    """

    __slots__ = ("results", "titles", "values")

    def __init__(self, values: tuple[Any, ...], results: tuple[Any, ...], **keywords: Any) -> None:
        super().__init__(**keywords)
        self.values = values
        self.results = results
        self.titles: Mapping[Any, str] = {}


class Array(Node):
    """A list, delivered as `collection`."""

    __slots__ = ("collection", "item")

    def __init__(self, item: Node, collection: type = list, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.item = item
        self.collection = collection

    def children(self) -> Iterator[Node]:
        """Yield the item."""
        yield self.item


class Tuple(Node):
    """A list of fixed length, each place with its own type."""

    __slots__ = ("items",)

    def __init__(self, items: list[Node], **keywords: Any) -> None:
        super().__init__(**keywords)
        self.items = items

    def children(self) -> Iterator[Node]:
        """Yield the items."""
        yield from self.items


class Map(Node):
    """An object with any names."""

    __slots__ = ("key", "value")

    def __init__(self, key: Node, value: Node, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.key = key
        self.value = value

    def children(self) -> Iterator[Node]:
        """Yield key and value."""
        yield self.key
        yield self.value


class Union(Node):
    """One of several types."""

    __slots__ = ("branches",)

    def __init__(self, branches: list[Node], **keywords: Any) -> None:
        super().__init__(**keywords)
        self.branches = branches

    def children(self) -> Iterator[Node]:
        """Yield the branches."""
        yield from self.branches

    @property
    def options(self) -> list[Node]:
        """The branches other than null."""
        return [branch for branch in self.branches if not is_null(branch)]


class Field:
    """A named value in an object.

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

    __slots__ = (
        "attribute",
        "complete",
        "default",
        "description",
        "examples",
        "factory",
        "header",
        "keyword",
        "name",
        "node",
        "owner",
        "required",
        "takes_self",
        "title",
    )

    def __init__(self, name: str, node: Node, about: Mapping[str, Any]) -> None:
        self.name = name
        self.node = node
        self.attribute: str = about.get("attribute", name)
        self.keyword: str | None = about.get("keyword", name)
        self.default: Any = about.get("default", MISSING)
        self.factory: Callable[..., Any] | None = about.get("factory")
        self.takes_self: bool = about.get("takes_self", False)
        self.owner: type | None = about.get("owner")
        self.required = False
        self.description: str | None = None
        self.examples: tuple[Any, ...] = ()
        self.header: str | None = None
        self.title: str | None = None
        self.complete: Any = None

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
        risky: True if the constructor may refuse a value that the schema accepts.
        recursive: True if the object contains itself, so that its schema needs a name.
    """

    __slots__ = ("cls", "description", "fields", "make", "name", "recursive", "risky")

    def __init__(self, name: str, make: str, cls: type, *, risky: bool = False) -> None:
        super().__init__()
        self.name = name
        self.make = make
        self.cls = cls
        self.risky = risky
        self.recursive = False
        self.fields: list[Field] = []
        self.description: str | None = None

    def children(self) -> Iterator[Node]:
        """Yield the types of the fields."""
        for field in self.fields:
            yield field.node


def is_null(node: Node) -> bool:
    """Tell if only null fits."""
    return isinstance(node, Scalar) and node.kind == "null"


def is_nullable(node: Node) -> bool:
    """Tell if null is named as one of the values that fit."""
    if isinstance(node, Union):
        return any(map(is_nullable, node.branches))
    return is_null(node) or (isinstance(node, Choice) and None in node.values)


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


def json_type(value: Any) -> str:
    """Return the JSON Schema type of a JSON value: `integer` for an int, `number` for a float."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return "null" if value is None else names.get(type(value), "object")
