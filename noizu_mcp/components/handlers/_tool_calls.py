"""Arguments and results of tool calls: both are checked, neither can break the session.

Bad arguments are an answer for the model. Only JSON leaves from here: a value that cannot be sent
becomes a failed result whose text says nothing about the program, and the detail goes to the log.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from ... import schema
from ..._errors import ProtocolError, ToolError, UnsavedHandle
from ..._limits import DEFAULTS
from ..._util import json_text
from ...schema import Shape, Violation, describe, dump_value, find_not_json
from ...types import META_BROKEN_OUTPUT, META_VIOLATIONS, Content, ToolResult, as_blocks
from ._bound import ToolSpec
from ._handler import refuse_coroutine

#: All that a client learns about a crash.
FAILED: Final = "Tool execution failed"

# A mapping with one of these types is a content block; with another `type` it is data.
_BLOCK_TYPES: Final = ("text", "image", "audio", "resource_link", "resource")

CheckedResult = tuple[ToolResult, str | None]


class CallingRequest(Protocol):
    """The request that calls a tool."""

    @property
    def server(self) -> Any:
        """The server, whose options say how arguments are read."""

    def note_coercion(self) -> None:
        """Record for listeners that the arguments had text for other types."""


def prepare(
    spec: ToolSpec, arguments: object, caller: CallingRequest | None = None
) -> tuple[object, ToolResult | None]:
    """Turn the arguments that a client sent into the value that the handler takes.

    Args:
        spec: The tool.
        arguments: The decoded `arguments` of `tools/call`; `{}` when they were absent.
        caller: The request; None for one without a server.

    Returns:
        The value for `spec.invoke` and None; or None and the answer for the model. Bad arguments
        are an answer, not an error of the protocol (server/tools, Error Handling; SEP-1303).
    """
    shape = spec.input
    # `Shape.try_build`, written out: this is the way of every call. Yes or no is the fast way of
    # every engine; violations are looked for after a no.
    try:
        if shape.accepts(arguments):
            return (arguments if shape.build is None else shape.build(arguments)), None
    except shape.refusals:
        pass
    options = None if caller is None else caller.server.options
    rules = (spec.coerce, None if options is None else options.coerce, shape.coerces)
    if next(rule for rule in rules if rule is not None):
        limits = DEFAULTS if options is None else options.limits
        changed = schema.coerce_text(shape, arguments, limits)
        if changed is not arguments:
            fits, built = shape.try_build(changed)
            if fits:
                if caller is not None:
                    caller.note_coercion()
                return built, None
    # Of the arguments as they were sent.
    return None, violations_result(spec.name, shape.compiled.violations(arguments))


def violations_result(name: str, violations: Sequence[Violation]) -> ToolResult:
    """Make the result that refuses the arguments of a call, where `call_tool` is overridden.

    It is the result that a server makes itself: a line for each violation, for the model, and the
    list of them in `_meta["com.noizu.mcp/violations"]`, for programs.

    Args:
        name: The name of the tool.
        violations: The violations that `compile_schema(…).violations(arguments)` found.

    Returns:
        A result with `is_error`.
    """
    lines = "\n".join(describe(violations))
    return ToolResult.error(
        f"Invalid arguments for tool {name}:\n{lines}",
        meta={META_VIOLATIONS: [violation.to_wire() for violation in violations]},
    )


def to_result(spec: ToolSpec | None, value: object) -> CheckedResult:
    """Turn the value that a handler returned into a result.

    Args:
        spec: The tool; None for an answer that belongs to no tool, as an override may give one.
        value: A text, None, a mapping, an instance, any JSON value, content, a list of content, or
            a `ToolResult`.

    Returns:
        The result; and None, or the log entry about a value that could not be sent. With an output
        schema the result has structured content that fits, or `is_error`.

    Raises:
        UnsavedHandle: The value has a handle that is not stored yet.
    """
    try:
        return _to_result(spec, value)
    except UnsavedHandle:
        raise
    except Exception as error:  # the value is the author's; dumping and encoding may raise anything
        return _broken(spec, repr(error))


def _to_result(spec: ToolSpec | None, value: object) -> CheckedResult:
    output = None if spec is None else spec.output
    if isinstance(value, ToolResult):
        # A ready result goes out as it is, once it is known to be JSON and to keep the contract.
        text_of(value.meta)
        if not value.has_structured:
            return _unstructured(spec, value)
        ready = dump_value(value.structured)
        text_of(ready)
        if output is not None and not value.is_error and not output.compiled.is_valid(ready):
            return _broken_schema(spec, output, ready)
        return attrs.evolve(value, structured=ready), None
    # Before dumping: content blocks are no data, though each of them could be written as JSON.
    if (blocks := _blocks(output, value)) is not None:
        return _unstructured(spec, ToolResult(blocks))
    # These could be written as JSON, but are surely not meant so.
    refuse_coroutine(value, "the handler")
    if output is None and isinstance(value, (bytes, bytearray)):
        raise TypeError("bytes cannot be sent; return Content.image(…), .audio(…) or .resource(…)")
    ready = dump_value(value)
    if output is not None and not output.compiled.is_valid(ready):
        return _broken_schema(spec, output, ready)
    if ready is None and output is None:
        return ToolResult(), None
    # server/tools, Structured Content: "SHOULD also return the serialized JSON in a TextContent
    # block", for clients that know no structured content.
    text = (Content.text(ready if isinstance(ready, str) else text_of(ready)),)
    # Up to 2025-11-25 structured content is an object; without a schema no other form is declared.
    structured = output is not None or isinstance(ready, dict)
    return (ToolResult(text, ready) if structured else ToolResult(text)), None


def text_of(ready: object) -> str:
    """Write a dumped value as JSON text.

    Raises:
        ValueError: NaN or an infinity, named with its place; or a circular reference.
    """
    try:
        return json_text(ready)
    except ValueError:
        found = find_not_json(ready)
        if found is None:
            raise
        path, text = found
        raise ValueError(describe([Violation(path, "", text)])[0]) from None


def _unstructured(spec: ToolSpec | None, result: ToolResult) -> CheckedResult:
    """Send a result without structured content, unless a declared output schema demands it.

    server/tools, Output Schema: "servers MUST provide structured results that conform to this
    schema". The schema speaks of the answers of a tool that did its work.
    """
    if spec is None or spec.output is None or result.is_error:
        return result, None
    return _broken(
        spec,
        "it has no structured content, which the output schema demands; return the value, or"
        " ToolResult(content, structured=…)",
    )


def _blocks(output: Shape | None, value: object) -> object:
    """Return the content blocks that a value is; None for data."""
    if isinstance(value, Content):
        return value
    if not isinstance(value, (list, tuple)) or not value:
        return None
    if any(isinstance(item, Content) for item in value):
        return as_blocks(value)
    if not all(isinstance(item, Mapping) and item.get("type") in _BLOCK_TYPES for item in value):
        return None
    # A declared output that looks like blocks is data: `list[{type: "text", …}]`.
    declared = output is not None and output.compiled.is_valid(list(value))
    return None if declared else as_blocks(value)


def _broken_schema(spec: ToolSpec | None, output: Shape, ready: object) -> CheckedResult:
    return _broken(spec, "\n".join(describe(output.compiled.violations(ready))))


def _broken(spec: ToolSpec | None, detail: str) -> CheckedResult:
    result = ToolResult.error(FAILED)
    if spec is not None and spec.output is not None:
        text = f"Tool {spec.name} broke its output contract"
        result = ToolResult.error(text, meta={META_BROKEN_OUTPUT: True})
    source = "an override" if spec is None else spec.source
    return result, f"the answer of {source} was not sent: {detail}"


def error_result(error: ToolError) -> ToolResult:
    """Turn a `ToolError` into a result that the model can act on.

    Args:
        error: The exception that the tool raised.

    Returns:
        A result with `isError: true` and the content of the error.
    """
    # The author wrote the content, so it may be wrong; an error must not end in another one.
    content = error.content
    try:
        return ToolResult.error(FAILED if content == "" else as_blocks(content), meta=error.meta)
    except (TypeError, ProtocolError):
        return ToolResult.error(FAILED, meta=error.meta)
