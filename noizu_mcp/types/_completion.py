"""What crosses the wire about completion: what is completed, and with what."""

from collections.abc import Iterable
from typing import Any, Final, Self

import attrs

from .._util import final
from ._results import Result, without_envelope
from ._wire import Item, Wire, as_tuple, kind_of, merge_extra, read_items

#: server/utilities/completion: at most so many values in one answer.
MAX_COMPLETIONS: Final = 100

_PROMPT: Final = "ref/prompt"
_RESOURCE: Final = "ref/resource"
# What must come with each.
_NEEDS: Final = {_PROMPT: "name", _RESOURCE: "uri"}


@final
@attrs.frozen(eq=False, repr=False)
class Reference(Wire):
    """Names what is completed: an argument of a prompt, or a variable of a resource template.

    Attributes:
        type: `ref/prompt` or `ref/resource`.
        name: The name of the prompt.
        uri: The URI template, as `resources/templates/list` gave it.
        title: The name of the prompt for people (2025-06-18 and later).

    Raises:
        TypeError: There is no such type, or the name or the URI that belongs to it is missing.
    """

    type: str
    name: str | None = attrs.field(default=None, kw_only=True)
    uri: str | None = attrs.field(default=None, kw_only=True)
    title: str | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.type not in _NEEDS:
            raise TypeError(f"type: expected {_PROMPT} or {_RESOURCE}, got {self.type!r}")
        if getattr(self, _NEEDS[self.type]) is None:
            raise TypeError(f"{_NEEDS[self.type]}: expected a string, got nothing")

    @classmethod
    def prompt(cls, name: str) -> Self:
        """Name a prompt.

        Args:
            name: As `prompts/list` gave it.
        """
        return cls(_PROMPT, name=name)

    @classmethod
    def resource(cls, uri: str) -> Self:
        """Name a resource template.

        Args:
            uri: The URI template, as `resources/templates/list` gave it.
        """
        return cls(_RESOURCE, uri=uri)


def _as_values(values: Iterable[Any]) -> tuple[str, ...]:
    found = as_tuple(values)
    for value in found:
        if not isinstance(value, str):
            raise TypeError(f"a completion is a text, got {value!r}")
    return found


_INNER: Final = Item("completion", "completion", kind_of(dict), required=True)
_META: Final = Item("meta", "_meta", kind_of(dict), required=False)
_ITEMS: Final = (
    Item("values", "values", kind_of(tuple[str, ...]), required=True),
    Item("total", "total", kind_of(int), required=False),
    Item("has_more", "hasMore", kind_of(bool), required=False),
)


@final
@attrs.frozen(eq=False, repr=False)
class Completion(Result):
    """What an argument may be completed to (server/utilities/completion), on both ends.

    Attributes:
        values: The texts, best first. At most 100 of them go over the wire.
        total: How many there are in all, if that is known.
        has_more: Whether there are more than these; None says so only when more than 100 were
            given.
        meta: `_meta` of the result.
        extra: Keys that this version of the package does not know, as they came; those beside
            the values are under `completion`.

    Raises:
        TypeError: A value is no text, or another field has the wrong type.
    """

    values: tuple[str, ...] = attrs.field(default=(), converter=_as_values)
    total: int | None = None
    has_more: bool | None = None
    meta: dict[str, Any] | None = attrs.field(default=None, kw_only=True)

    @classmethod
    def from_wire(cls, value: Any, where: str | None = None) -> Self:
        """Read the result of `completion/complete`.

        Args:
            value: The decoded JSON value.
            where: What errors call it; `result` by default.

        Returns:
            The completion, without the envelope of 2026-07-28.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        where = where or "result"
        outer, rest = read_items((_INNER, _META), without_envelope(value), where)
        inner, unknown = read_items(_ITEMS, outer["completion"], f"{where}.completion")
        extra = {**rest, "completion": unknown} if unknown else rest
        return cls(**inner, meta=outer.get("meta"), extra=extra)

    def to_wire(self) -> dict[str, Any]:
        """Write the JSON object of the result, without the envelope of 2026-07-28.

        Returns:
            A new JSON-ready dict; `total` and `hasMore` only where they say something.
        """
        inner: dict[str, Any] = {"values": list(self.values[:MAX_COMPLETIONS])}
        if self.total is not None:
            inner["total"] = self.total
        if self.has_more or (self.has_more is None and len(self.values) > MAX_COMPLETIONS):
            inner["hasMore"] = True
        merge_extra(inner, self.extra.get("completion", {}))
        wire: dict[str, Any] = {"completion": inner}
        if self.meta is not None:
            wire["_meta"] = dict(self.meta)
        return merge_extra(wire, self.extra)
