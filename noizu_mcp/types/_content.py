"""Content blocks, of which results of tools and messages of prompts are made.

One class serves all types of block. `Content.text("hi")` makes a block, and `block.text` reads it:
a descriptor keeps the function of the class and the value of the instance apart.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    get_args,
    overload,
)
from urllib.parse import quote

import attrs

from .._util import final, json_text
from .._value import JSONObject, Value
from ._common import ContentAnnotations, Icon
from ._wire import Item, Wire, as_tuple, camel_case, kind_of, merge_extra, read_items, write_items

if TYPE_CHECKING:
    from .._media import Figure, FilePath, Picture

_P = ParamSpec("_P")
_T = TypeVar("_T")


@final
@attrs.frozen(eq=False, repr=False)
class ResourceContents(Wire):
    """The contents of a resource, or of a part of one: text or bytes, never both.

    Attributes:
        uri: The URI of the resource or its part.
        text: The text, or None.
        blob: The bytes, or None; base64 on the wire only.
        mime_type: The media type of the text or the bytes.
        meta: `_meta` of the contents (2025-06-18 and later).

    Raises:
        TypeError: Neither or both of `text` and `blob` were given.
    """

    uri: str
    mime_type: str | None = None
    text: str | None = attrs.field(default=None, kw_only=True)
    blob: bytes | None = attrs.field(default=None, kw_only=True)
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if (self.text is None) == (self.blob is None):
            raise TypeError("give either text= or blob=")


#: The fields of a block besides `annotations` and `_meta`, by type; optional ones have `| None`.
_BLOCKS: Final[dict[str, dict[str, object]]] = {
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
        Item(name, camel_case(name), kind_of(annotation), type(None) not in get_args(annotation))
        for name, annotation in _BLOCKS[block_type].items()
    )


# Every block may carry these two. Blocks of unknown types keep them at `extra`, unread.
_COMMON_ITEMS: Final = (
    Item("annotations", "annotations", kind_of(ContentAnnotations), required=False),
    Item("meta", "_meta", kind_of(dict), required=False),
)


class _Value(Generic[_T]):
    """A field of a block; `AttributeError` for a block whose type lacks it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, block: None, owner: type) -> Self: ...
    @overload
    def __get__(self, block: "Content", owner: type) -> _T: ...
    def __get__(self, block: "Content | None", owner: type) -> object:
        return self if block is None else _read(block, self.name)


class _MakerAndValue(Generic[_P, _T]):
    """A function that makes a block on the class, and the value of that name on a block."""

    def __init__(self, make: "Callable[_P, Content]", value: type[_T]) -> None:
        self.make = make
        self.value = value

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        # Errors about arguments name the function: by its public name, not `_text`.
        self.make.__name__ = name
        self.make.__qualname__ = f"{owner.__qualname__}.{name}"

    @overload
    def __get__(self, block: None, owner: type) -> "Callable[_P, Content]": ...
    @overload
    def __get__(self, block: "Content", owner: type) -> _T: ...
    def __get__(self, block: "Content | None", owner: type) -> object:
        return self.make if block is None else _read(block, self.name)


def _read(block: "Content", name: str) -> object:
    try:
        return block.fields[name]
    except KeyError:
        has = ", ".join(block.fields) or "only .extra"
        raise AttributeError(
            f"a content block of type {block.type!r} has no {name!r}; it has {has}"
        ) from None


def _text(
    text: str, *, annotations: ContentAnnotations | None = None, meta: JSONObject | None = None
) -> "Content":
    """Make a text block.

    Args:
        text: The text. A string is not quoted; `text_content` would quote it.
        annotations: Audience and importance.
        meta: `_meta` of the block.
    """
    if text.__class__ is str and annotations is None and meta is None:
        return Content("text", {"text": text})  # the fast path: most answers are one text
    return _make("text", {"text": text}, annotations, meta)


def _resource(
    resource: ResourceContents,
    *,
    annotations: ContentAnnotations | None = None,
    meta: JSONObject | None = None,
) -> "Content":
    """Make a block with the contents of a resource in it.

    Args:
        resource: The contents.
        annotations: Audience and importance.
        meta: `_meta` of the block.
    """
    return _make("resource", {"resource": resource}, annotations, meta)


def _make(
    block_type: str,
    fields: dict[str, Any],
    annotations: ContentAnnotations | None,
    meta: JSONObject | None,
) -> "Content":
    values = {**fields, "annotations": annotations, "meta": meta}
    for item in (*_items_of(block_type), *_COMMON_ITEMS):
        if not item.admits(value := values[item.name]):
            where = f"Content.{block_type}: {item.name}"
            raise TypeError(f"{where}: expected {item.kind.noun}, got {value!r}")
    return Content(block_type, fields, annotations, meta)


def _medium(
    block_type: str,
    data: object,
    mime_type: str | None,
    annotations: ContentAnnotations | None,
    meta: JSONObject | None,
) -> "Content":
    """Make a block of an image or a recording."""
    if data.__class__ is not bytes:
        # Loaded with the first file or picture.
        from .._media import media_of

        data, mime_type = media_of(block_type, data, mime_type)
    return _make(block_type, {"data": data, "mime_type": mime_type}, annotations, meta)


@final
@attrs.frozen(eq=False, repr=False)
class Content(Value):
    """A content block: text, image, audio, a link to a resource, or a resource itself.

    Make one with `Content.text`, `.image`, `.audio`, `.file`, `.resource_link` or `.resource`, or
    read one with `from_wire`. A field that a type of block lacks raises `AttributeError`; an
    optional field without a value is None.

    Attributes:
        type: `text`, `image`, `audio`, `resource_link`, `resource`, or a type of a newer peer.
        fields: The fields of this type by their Python names; also attributes of the block.
        annotations: Audience and importance.
        meta: `_meta` of the block.
        extra: Unknown keys, unchanged; everything but `type` for an unknown type.
    """

    type: str
    fields: Mapping[str, Any]
    annotations: ContentAnnotations | None = None
    meta: JSONObject | None = None
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
        data: "bytes | FilePath | Figure | Picture",
        mime_type: str | None = None,
        *,
        annotations: ContentAnnotations | None = None,
        meta: JSONObject | None = None,
    ) -> "Content":
        """Make an image block.

        Args:
            data: The bytes of the image, not base64; or the path of a file, which is read at once;
                or an image of Pillow or a figure of matplotlib, which is saved.
            mime_type: The media type, such as `image/png`. Bytes need it; for a file it is
                derived from its name, and a picture is saved as PNG without it.
            annotations: Audience and importance.
            meta: `_meta` of the block.

        Raises:
            TypeError: The data is anything else, or has no media type.
            OSError: The file cannot be read.
            ValueError: The file has more than 10 MiB, or its name is not that of an image.
        """
        return _medium("image", data, mime_type, annotations, meta)

    @staticmethod
    def audio(
        data: "bytes | FilePath",
        mime_type: str | None = None,
        *,
        annotations: ContentAnnotations | None = None,
        meta: JSONObject | None = None,
    ) -> "Content":
        """Make an audio block.

        Args:
            data: The bytes of the recording, not base64; or the path of a file, which is read at
                once.
            mime_type: The media type, such as `audio/wav`; derived from the name of a file.
            annotations: Audience and importance.
            meta: `_meta` of the block.

        Raises:
            TypeError: The data is anything else, or has no media type.
            OSError: The file cannot be read.
            ValueError: The file has more than 10 MiB, or its name is not that of a recording.
        """
        return _medium("audio", data, mime_type, annotations, meta)

    @staticmethod
    def file(
        path: "FilePath",
        mime_type: str | None = None,
        *,
        uri: str | None = None,
        annotations: ContentAnnotations | None = None,
        meta: JSONObject | None = None,
    ) -> "Content":
        """Make a block with a file in it: a resource of text, or of bytes where it is no text.

        Args:
            path: The path of the file, which is read at once.
            mime_type: The media type; by default that of the name of the file. Without one, a file
                in UTF-8 is `text/plain`, any other `application/octet-stream`.
            uri: The URI of the resource; by default `file:///` and the name of the file. The folder
                is no business of a client.
            annotations: Audience and importance.
            meta: `_meta` of the block.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file has more than 10 MiB.
        """
        # Loaded with the first file.
        from .._media import file_contents

        content, found, name = file_contents(path, mime_type)
        part: dict[str, Any] = {"text" if isinstance(content, str) else "blob": content}
        resource = ResourceContents(uri or f"file:///{quote(name)}", found, **part)
        return _make("resource", {"resource": resource}, annotations, meta)

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
        meta: JSONObject | None = None,
    ) -> "Content":
        """Make a link to a resource that the client may read (2025-06-18 and later).

        Args:
            uri: The URI of the resource.
            name: The name for programs.
            title: The name for people.
            description: A description that helps the model to decide whether to read it.
            mime_type: The media type of the resource.
            size: The size of the resource in bytes, before any encoding.
            icons: Pictures of it.
            annotations: Audience and importance.
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
    def from_wire(cls, value: object, where: str = "content") -> Self:
        """Read a block that a peer sent.

        Args:
            value: The decoded JSON value.
            where: Its name in errors.

        Returns:
            The block; a block of an unknown type keeps its keys at `extra`.

        Raises:
            ProtocolError: It is not an object, or a field is missing or has the wrong type; the
                message names the field.
        """
        if value.__class__ is dict and len(value) == 2 and value.get("type") == "text":
            text = value.get("text")
            if text.__class__ is str:
                return cls("text", {"text": text})  # the fast path: most answers are one text
        found, rest = read_items((_TYPE_ITEM,), value, where)
        block_type = found["type"]
        # A newer peer may send unknown blocks; they are passed on unchanged.
        if block_type not in _BLOCKS:
            return cls(block_type, {}, extra=rest)
        items = _items_of(block_type)
        found, rest = read_items((*_COMMON_ITEMS, *items), rest, where)
        # Absent optional fields are present as None, so that reading them raises no error.
        fields = {item.name: found.get(item.name) for item in items}
        if block_type == "resource_link":
            fields["icons"] = as_tuple(fields["icons"])
        return cls(block_type, fields, found.get("annotations"), found.get("meta"), extra=rest)

    def to_wire(self) -> JSONObject:
        """Write the JSON object of the block.

        Returns:
            A new JSON-ready dict without null keys; bytes are base64.
        """
        plain = self.annotations is None and self.meta is None and not self.extra
        if plain and self.type == "text":
            # Most answers are one plain text; the table below takes five times as long.
            return {"type": "text", "text": self.fields["text"]}
        # Not `_items_of` of an unknown type: peers choose the type, and the cache keeps each.
        items = (*(_items_of(self.type) if self.type in _BLOCKS else ()), *_COMMON_ITEMS)
        values = {**self.fields, "annotations": self.annotations, "meta": self.meta}
        return merge_extra({"type": self.type, **write_items(items, values)}, self.extra)


_TYPE_ITEM: Final = Item("type", "type", kind_of(str), required=True)


def as_blocks(value: object) -> tuple[Content, ...]:
    """Turn the content of a handler into blocks.

    Args:
        value: A string, a block, a content mapping with a `type` key, or an iterable of these.

    Returns:
        The blocks.

    Raises:
        TypeError: The value, or an item of it, is of another type.
        ProtocolError: A mapping is not a content block.
    """
    # Lists first: nearly every handler returns a text or a list of blocks.
    if isinstance(value, (list, tuple)):
        return tuple([_as_block(item) for item in value])
    if isinstance(value, (str, Content, Mapping)):
        return (_as_block(value),)
    # Bytes can be iterated, too, and would become a list of numbers.
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return tuple(map(_as_block, value))
    raise TypeError(f"expected content, got {type(value).__name__}; wrap it: Content.text(…)")


def _as_block(value: object) -> Content:
    if value.__class__ is Content:
        return value  # the class is final, so no subclass is missed
    if isinstance(value, str):
        return Content.text(value)
    if isinstance(value, Mapping):
        return Content.from_wire(value)
    raise TypeError(f"expected a content block, got {type(value).__name__}")


def plain_text(text: str) -> list[Content]:
    """Make the content of a result from a string, which is sent as it is.

    Args:
        text: The text for the model.

    Returns:
        A list of one text block, ready to be returned by a tool.
    """
    return [Content.text(text)]


def text_content(value: object) -> list[Content]:
    """Make the content of a result from a value, which is sent as JSON text.

    Args:
        value: Any JSON value.

    Returns:
        A list of one text block, ready to be returned by a tool.

    Raises:
        TypeError: The value has no JSON form.
        ValueError: NaN, an infinity or a circular reference.
    """
    return [Content.text(json_text(value))]
