"""Values of tools: definitions and results."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs

from .._util import UNSET, Unset, final, json_text
from .._value import JSONObject, Value
from ._common import Annotations, Icon, without_envelope
from ._content import Content, as_blocks
from ._wire import Item, JsonKind, Wire, as_tuple, kind_of, merge_extra, read_items


@final
@attrs.frozen(eq=False, repr=False)
class ToolDefinition(Wire):
    """A tool as `tools/list` describes it (server/tools, Tool).

    Attributes:
        name: The name for `tools/call`.
        title: The name for people (2025-06-18 and later).
        description: A description for the model, which decides by it whether to call the tool.
        input_schema: JSON Schema of the arguments; its root is an object.
        output_schema: JSON Schema of `structuredContent` (2025-06-18 and later).
        annotations: Hints; do not trust them unless you trust the server.
        icons: Pictures of it (2025-11-25 and later).
        execution: `{"taskSupport": …}` (2025-11-25 only).
        meta: `_meta` of the tool (2025-06-18 and later).
    """

    name: str
    title: str | None = attrs.field(default=None, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)
    input_schema: JSONObject = attrs.field(kw_only=True)
    output_schema: JSONObject | None = attrs.field(default=None, kw_only=True)
    annotations: Annotations | None = attrs.field(default=None, kw_only=True)
    icons: tuple[Icon, ...] = attrs.field(default=(), converter=as_tuple, kw_only=True)
    execution: JSONObject | None = attrs.field(default=None, kw_only=True)
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)


_FLAG = Item("is_error", "isError", kind_of(bool), required=False)
_META = Item("meta", "_meta", kind_of(dict), required=False)
# A plain list: each block is checked when it is read.
_CONTENT = Item("content", "content", JsonKind("a list", list), required=True)


@final
@attrs.frozen(eq=False, repr=False)
class ToolResult(Value):
    """The result of a tool (server/tools, CallToolResult), on both ends.

    A handler may return one; it is sent unchanged. 2026-07-28 allows null as structured content, so
    `structured=None` is a value; without the argument there is no structured content.

    Attributes:
        content: Blocks for the model. The constructor takes a string, a block, a content mapping or
            a list of these.
        is_error: True if the tool failed; the content then says how to do better.
        meta: `_meta` of the result.
        extra: Keys that this version of the package does not know, unchanged.
        violations: On a client: one line for each way in which the result breaks the output schema
            of its tool. It is never sent.

    Raises:
        TypeError: `content` is of another type.
    """

    content: tuple[Content, ...] = attrs.field(default=(), converter=as_blocks)
    # Type checkers other than mypy know an argument without the underscore only by its alias.
    _structured: object = attrs.field(default=UNSET, alias="structured")
    is_error: bool = attrs.field(default=False, kw_only=True)
    meta: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True)
    extra: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    violations: Sequence[str] = attrs.field(default=(), kw_only=True)

    def __repr__(self) -> str:
        shown: dict[str, object] = {"content": self.content}
        if self.has_structured:
            shown["structured"] = self._structured
        if self.is_error:
            shown["is_error"] = True
        if self.meta is not None:
            shown["meta"] = self.meta
        if self.extra:
            shown["extra"] = self.extra
        if self.violations:
            shown["violations"] = self.violations
        return f"ToolResult({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    @property
    def structured(self) -> Any:
        """The `structuredContent`, any JSON value; None if absent, see `has_structured`."""
        return None if self._structured is UNSET else self._structured

    @property
    def text(self) -> str:
        """The text of all text blocks, joined by line ends; empty without one."""
        return "\n".join(block.text for block in self.content if block.type == "text")

    @property
    def has_structured(self) -> bool:
        """True if there is `structuredContent`, which may be null."""
        return self._structured is not UNSET

    @classmethod
    def ok(
        cls,
        content: object = UNSET,
        *,
        structured: object = UNSET,
        meta: Mapping[str, object] | None = None,
    ) -> Self:
        """Make the result of a successful call.

        Args:
            content: Content, like that of the class. By default the JSON of `structured` as a text,
                for clients that ignore structured content; without `structured` nothing.
            structured: Any JSON value.
            meta: `_meta` of the result.

        Raises:
            TypeError: `content` is not content, or `structured` has no JSON form.
            ValueError: `structured` has NaN, an infinity or a circular reference.
        """
        if isinstance(content, Unset):
            content = () if structured is UNSET else json_text(structured)
        return cls(content, structured, meta=meta)

    @classmethod
    def error(
        cls,
        content: object,
        *,
        structured: object = UNSET,
        meta: Mapping[str, object] | None = None,
    ) -> Self:
        """Make the result of a failed call that the model can act on.

        Args:
            content: Content that explains the mistake and a way out.
            structured: Any JSON value.
            meta: `_meta` of the result.

        Raises:
            TypeError: `content` is not content.
        """
        return cls(content, structured, is_error=True, meta=meta)

    @classmethod
    def from_wire(cls, value: object, where: str = "result") -> Self:
        """Read the result of `tools/call`.

        Args:
            value: The decoded JSON value.
            where: Its name in errors.

        Returns:
            The result, without the envelope of 2026-07-28; `structuredContent: null` differs from
            a result without `structuredContent`.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        found, rest = read_items((_CONTENT, _FLAG, _META), without_envelope(value), where)
        # `structuredContent` stays in the rest: `read_items` drops null, which is a value here.
        blocks = enumerate(found.pop("content"))
        content = [Content.from_wire(block, f"{where}.content[{i}]") for i, block in blocks]
        return cls(content, rest.pop("structuredContent", UNSET), **found, extra=rest)

    def to_wire(self) -> JSONObject:
        """Write the JSON object of the result, without the envelope of 2026-07-28.

        Returns:
            A new JSON-ready dict: `content`, then `structuredContent`, `isError` and `_meta` if
            present, then `extra`.
        """
        wire: JSONObject = {"content": [block.to_wire() for block in self.content]}
        if self._structured is not UNSET:
            wire["structuredContent"] = self._structured
        if self.is_error:
            wire["isError"] = True
        if self.meta is not None:
            wire["_meta"] = dict(self.meta)
        return merge_extra(wire, self.extra) if self.extra else wire
