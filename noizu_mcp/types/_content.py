"""Content blocks: what tools answer with and prompts are made of.

One class for all types of block. `Content.text("hi")` makes a block and `block.text` reads it: the
same name on the class and on the instance, kept apart by a descriptor.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, ParamSpec, Self, TypeVar, overload

import attrs

from .._util import final
from .._value import Value
from ._common import ContentAnnotations, Icon
from ._wire import Item, Wire, as_tuple, camel_case, kind_of, merge_extra, read_items, write_items

_P = ParamSpec("_P")
_T = TypeVar("_T")


@final
@attrs.frozen(eq=False, repr=False)
class ResourceContents(Wire):
    """The contents of a resource, or of a part of one: a text or bytes, never both.

    Attributes:
        uri: Where it comes from.
        text: The text, or None.
        blob: The bytes, or None; base64 on the wire only.
        mime_type: What the text or the bytes are.
        meta: `_meta` of the contents (2025-06-18 and later).

    Raises:
        TypeError: Neither or both of `text` and `blob` were given.
    """

    uri: str
    mime_type: str | None = None
    text: str | None = attrs.field(default=None, kw_only=True)
    blob: bytes | None = attrs.field(default=None, kw_only=True)
    meta: dict[str, Any] | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if (self.text is None) == (self.blob is None):
            raise TypeError("give either text= or blob=")


#: The fields of a block beside `annotations` and `_meta`, by type; optional ones say `| None`.
_BLOCKS: Final[dict[str, dict[str, Any]]] = {
    "text": {"text": str},
    "image": {"data": bytes, "mime_type": str},
    "audio": {"data": bytes, "mime_type": str},
    "resource_link": {
        "uri": str,
        "name": str,
        "title": str | None,
        "description": str | None,
        "mime_type": str | None,
        "size": int | None,
        "icons": tuple[Icon, ...] | None,
    },
    "resource": {"resource": ResourceContents},
}


@functools.cache
def _items_of(block_type: str) -> tuple[Item, ...]:
    return tuple(
        Item(name, camel_case(name), kind_of(annotation), type(None) not in _args(annotation))
        for name, annotation in _BLOCKS[block_type].items()
    )


def _args(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__args__", ())


# Every block may carry these two; an unknown type keeps them, unread, at `extra`.
_COMMON_ITEMS: Final = (
    Item("annotations", "annotations", kind_of(ContentAnnotations), required=False),
    Item("meta", "_meta", kind_of(dict), required=False),
)


class _Value(Generic[_T]):
    """A field of a block; reading it from a block whose type lacks it is an `AttributeError`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, block: None, owner: type) -> Self: ...
    @overload
    def __get__(self, block: "Content", owner: type) -> _T: ...
    def __get__(self, block: "Content | None", owner: type) -> Any:
        return self if block is None else _read(block, self.name)


class _MakerAndValue(Generic[_P, _T]):
    """On the class the function that makes a block, on a block the value of the same name."""

    def __init__(self, make: "Callable[_P, Content]", value: type[_T]) -> None:
        self.make = make
        self.value = value

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        # Python names a function so in the errors about its arguments: by what its caller wrote.
        self.make.__name__ = name
        self.make.__qualname__ = f"{owner.__qualname__}.{name}"

    @overload
    def __get__(self, block: None, owner: type) -> "Callable[_P, Content]": ...
    @overload
    def __get__(self, block: "Content", owner: type) -> _T: ...
    def __get__(self, block: "Content | None", owner: type) -> Any:
        return self.make if block is None else _read(block, self.name)


def _read(block: "Content", name: str) -> Any:
    try:
        return block.fields[name]
    except KeyError:
        has = ", ".join(block.fields) or "only .extra"
        raise AttributeError(
            f"a content block of type {block.type!r} has no {name!r}; it has {has}"
        ) from None


def _text(
    text: str, *, annotations: ContentAnnotations | None = None, meta: dict[str, Any] | None = None
) -> "Content":
    """Make a text block.

    Args:
        text: What the model reads.
        annotations: For whom it is, and how much it matters.
        meta: `_meta` of the block.
    """
    if text.__class__ is str and annotations is None and meta is None:
        return Content("text", {"text": text})  # most answers are one of these
    return _make("text", {"text": text}, annotations, meta)


def _resource(
    resource: ResourceContents,
    *,
    annotations: ContentAnnotations | None = None,
    meta: dict[str, Any] | None = None,
) -> "Content":
    """Make a block with the contents of a resource in it.

    Args:
        resource: The contents.
        annotations: For whom it is, and how much it matters.
        meta: `_meta` of the block.
    """
    return _make("resource", {"resource": resource}, annotations, meta)


def _make(
    block_type: str,
    fields: dict[str, Any],
    annotations: ContentAnnotations | None,
    meta: dict[str, Any] | None,
) -> "Content":
    common = {"annotations": annotations, "meta": meta}
    for items, values in ((_items_of(block_type), fields), (_COMMON_ITEMS, common)):
        for item in items:
            value = values[item.name]
            if not (item.kind.accepts(value) or (value is None and not item.required)):
                where = f"Content.{block_type}: {item.name}"
                raise TypeError(f"{where}: expected {item.kind.noun}, got {value!r}")
    return Content(block_type, fields, annotations, meta)


@final
@attrs.frozen(eq=False, repr=False)
class Content(Value):
    """A content block: text, image, audio, a link to a resource, or a resource itself.

    Make one with `Content.text`, `.image`, `.audio`, `.resource_link` or `.resource`, or read one
    with `from_wire`. A field that a type of block lacks raises `AttributeError`; an optional one
    that was not sent reads None.

    Attributes:
        type: `text`, `image`, `audio`, `resource_link`, `resource`, or what a newer peer sent.
        fields: The fields of this type by their Python names; also attributes of the block.
        annotations: For whom it is, and how much it matters.
        meta: `_meta` of the block.
        extra: Unknown keys as they came; everything but `type` for an unknown type.
    """

    type: str
    fields: Mapping[str, Any]
    annotations: ContentAnnotations | None = None
    meta: dict[str, Any] | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)

    text = _MakerAndValue(_text, str)
    resource = _MakerAndValue(_resource, ResourceContents)
    data = _Value[bytes]()
    mime_type = _Value[str | None]()
    uri = _Value[str]()
    name = _Value[str]()
    title = _Value[str | None]()
    description = _Value[str | None]()
    size = _Value[int | None]()
    icons = _Value[tuple[Icon, ...]]()

    def __repr__(self) -> str:
        shown = {"type": self.type, **self.fields}
        shown |= {"annotations": self.annotations, "meta": self.meta, "extra": self.extra or None}
        inner = ", ".join(f"{k}={v!r}" for k, v in shown.items() if v not in (None, ()))
        return f"Content({inner})"

    @staticmethod
    def image(
        data: bytes,
        mime_type: str,
        *,
        annotations: ContentAnnotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> "Content":
        """Make an image block.

        Args:
            data: The bytes of the image, not base64.
            mime_type: Like `image/png`.
            annotations: For whom it is, and how much it matters.
            meta: `_meta` of the block.
        """
        return _make("image", {"data": data, "mime_type": mime_type}, annotations, meta)

    @staticmethod
    def audio(
        data: bytes,
        mime_type: str,
        *,
        annotations: ContentAnnotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> "Content":
        """Make an audio block.

        Args:
            data: The bytes of the recording, not base64.
            mime_type: Like `audio/wav`.
            annotations: For whom it is, and how much it matters.
            meta: `_meta` of the block.
        """
        return _make("audio", {"data": data, "mime_type": mime_type}, annotations, meta)

    @staticmethod
    def resource_link(
        uri: str,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        icons: Iterable[Icon] = (),
        annotations: ContentAnnotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> "Content":
        """Make a link to a resource that the client may read (2025-06-18 and later).

        Args:
            uri: The URI of the resource.
            name: The name for programs.
            title: The name for people.
            description: What a model should know before it follows the link.
            mime_type: What a reader will get.
            size: Bytes before any encoding.
            icons: Pictures of it.
            annotations: For whom it is, and how much it matters.
            meta: `_meta` of the block.
        """
        fields = {
            "uri": uri,
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "size": size,
            "icons": as_tuple(icons),
        }
        return _make("resource_link", fields, annotations, meta)

    @classmethod
    def from_wire(cls, value: Any, where: str = "content") -> Self:
        """Read a block that a peer sent.

        Args:
            value: The decoded JSON value.
            where: What errors call it.

        Returns:
            The block; one of an unknown type keeps its keys at `extra`.

        Raises:
            ProtocolError: Not an object, no `type`, or a field is missing or has the wrong type.
        """
        found, rest = read_items((_TYPE_ITEM,), value, where)
        block_type = found["type"]
        if block_type not in _BLOCKS:
            return cls(block_type, {}, extra=rest)
        common, rest = read_items(_COMMON_ITEMS, rest, where)
        items = _items_of(block_type)
        found, rest = read_items(items, rest, where)
        fields = {item.name: found.get(item.name) for item in items}
        if block_type == "resource_link":
            fields["icons"] = as_tuple(fields["icons"])
        return cls(block_type, fields, **common, extra=rest)

    def to_wire(self) -> dict[str, Any]:
        """Write the JSON object of the block.

        Returns:
            A new JSON-ready dict without null keys; bytes are base64.
        """
        wire: dict[str, Any] = {"type": self.type}
        if self.type in _BLOCKS:
            wire |= write_items(_items_of(self.type), self.fields)
        common = {"annotations": self.annotations, "meta": self.meta}
        wire |= write_items(_COMMON_ITEMS, common)
        return merge_extra(wire, self.extra)


_TYPE_ITEM: Final = Item("type", "type", kind_of(str), required=True)
