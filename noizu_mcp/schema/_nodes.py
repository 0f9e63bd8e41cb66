"""The model of a declared form: what every declaration is read into, and what all output needs."""

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from ._marker import MISSING


@attrs.frozen(eq=False)
class Format:
    """A Python type that travels as text.

    Attributes:
        name: In words, for messages: `date`.
        keywords: JSON Schema keywords besides `type`.
        parse: Text to value; raises ValueError where the keywords accept too much.
        total: True if `parse` takes all that the keywords accept.
    """

    name: str
    keywords: dict[str, Any]
    parse: Callable[[str], Any]
    total: bool = False


@attrs.define(eq=False)
class Node:
    """Any value. The subclasses say more.

    Attributes:
        keywords: JSON Schema keywords of this place: constraints, description.
    """

    keywords: dict[str, Any] = attrs.field(factory=dict, kw_only=True)

    def children(self) -> "Iterator[Node]":
        """Yield the nodes inside."""
        return iter(())


@attrs.define(eq=False)
class Scalar(Node):
    """A text, a number, a boolean or null.

    Attributes:
        kind: The JSON Schema type.
        cast: What to deliver where another JSON value may stand for it: "int" for 1.0, "float"
            for 1, or the value of a `Format`.
    """

    kind: str
    cast: Format | str | None = None


@attrs.define(eq=False)
class Choice(Node):
    """One of several scalars.

    Attributes:
        values: As JSON.
        results: What is delivered for each, in the same order.
    """

    values: tuple[Any, ...]
    results: tuple[Any, ...]


@attrs.define(eq=False)
class Array(Node):
    """A list, delivered as `collection`."""

    item: Node
    collection: type = list

    def children(self) -> Iterator[Node]:
        """Yield the item."""
        yield self.item


@attrs.define(eq=False)
class Tuple(Node):
    """A list of fixed length, each place with its own type."""

    items: list[Node]

    def children(self) -> Iterator[Node]:
        """Yield the items."""
        yield from self.items


@attrs.define(eq=False)
class Map(Node):
    """An object with any names."""

    key: Node
    value: Node

    def children(self) -> Iterator[Node]:
        """Yield key and value."""
        yield self.key
        yield self.value


@attrs.define(eq=False)
class Union(Node):
    """One of several types."""

    branches: list[Node]

    def children(self) -> Iterator[Node]:
        """Yield the branches."""
        yield from self.branches

    @property
    def options(self) -> list[Node]:
        """The branches other than null."""
        return [branch for branch in self.branches if not is_null(branch)]


@attrs.define(eq=False)
class Field:
    """A named value in an object.

    Attributes:
        name: On the wire.
        node: Its type.
        attribute: The attribute of the instance, or the key.
        keyword: The parameter of the constructor; None if it takes none.
        required: True if the name must be present.
        default: As declared; MISSING for none.
        factory: Makes the default; called with the instance if `takes_self`.
        owner: The class that declares it.
    """

    name: str
    node: Node
    attribute: str
    keyword: str | None
    required: bool
    default: Any = MISSING
    factory: Callable[..., Any] | None = None
    takes_self: bool = False
    description: str | None = None
    examples: tuple[Any, ...] = ()
    header: Any = None
    owner: type | None = None

    @property
    def has_default(self) -> bool:
        """True if an absent field gets a declared value."""
        return self.default is not MISSING or self.factory is not None

    @property
    def may_be_null(self) -> bool:
        """True if null is a value of the field, and not a sign of its absence."""
        return type(self.node) is Node or is_nullable(self.node)


@attrs.define(eq=False)
class Object(Node):
    """An object with declared names.

    Attributes:
        name: For `$defs` and for the generated source.
        make: `direct` (attributes set without a constructor), `call` (constructor), `dict` (absent
            keys stay absent) or `arguments` (a dict with every key).
        cls: The class to deliver.
        risky: True if the constructor may refuse what the schema accepts.
    """

    name: str
    make: str
    cls: type
    fields: list[Field] = attrs.field(factory=list)
    description: str | None = None
    risky: bool = False

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
