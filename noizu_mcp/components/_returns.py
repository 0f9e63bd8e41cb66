"""What a handler returned, as the result that goes to the client.

Nothing that is not JSON leaves from here: a value that cannot be sent becomes a failed result whose
text says nothing about the program, and the detail goes to the log.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from .._errors import ProtocolError, ToolError
from .._util import json_text
from ..schema import Shape, describe, dump_value
from ..types import Content, ToolResult, as_blocks
from ._signature import refuse_coroutine
from ._spec import ToolSpec

#: All that a client learns about a crash.
FAILED: Final = "Tool execution failed"

# Of these a mapping in a list is a content block; other values of `type` are the author's data.
_BLOCK_TYPES: Final = ("text", "image", "audio", "resource_link", "resource")

Outcome = tuple[ToolResult, str | None]


def to_result(spec: ToolSpec | None, value: Any) -> Outcome:
    """Turn what a handler returned into a result.

    Args:
        spec: The tool; None for an answer that belongs to none, as an override may give one.
        value: What it returned: a text, None, a mapping, an instance, any JSON value, content, a
            list of content, or a `ToolResult`.

    Returns:
        The result, and None or what the log should say about a value that could not be sent. With
        an output schema it has structured content that fits, or `is_error`.
    """
    try:
        return _to_result(spec, value)
    except Exception as error:  # the value is the author's; dumping and encoding may raise anything
        return _broken(spec, repr(error))


def _to_result(spec: ToolSpec | None, value: Any) -> Outcome:
    output = None if spec is None else spec.output
    if output is None and value.__class__ is str:
        return ToolResult((Content.text(value),)), None  # the short way for most answers
    if isinstance(value, ToolResult):
        return _verbatim(spec, value)
    if (blocks := _blocks(output, value)) is not None:
        return _unstructured(spec, ToolResult(blocks))
    _refuse_strangers(output, value)
    ready = dump_value(value)
    if output is not None and not output.compiled.is_valid(ready):
        return _breach(spec, output, ready)
    if ready is None and output is None:
        return ToolResult(), None
    text = (Content.text(ready if isinstance(ready, str) else json_text(ready)),)
    structured = output is not None or isinstance(ready, dict)
    return (ToolResult(text, ready) if structured else ToolResult(text)), None


def _unstructured(spec: ToolSpec | None, result: ToolResult) -> Outcome:
    """Send a result without structured content, which a declared output schema demands.

    server/tools, Output Schema: "servers MUST provide structured results that conform to this
    schema". The schema speaks of what a tool answers when it did its work.
    """
    if spec is None or spec.output is None or result.is_error:
        return result, None
    return _broken(
        spec,
        "it has no structured content, which the output schema demands; return the value, or"
        " ToolResult(content, structured=…)",
    )


def _verbatim(spec: ToolSpec | None, result: ToolResult) -> Outcome:
    """Send a ready result as it is, once it is known to be JSON and to keep the contract."""
    json_text(result.meta)
    if not result.has_structured:
        return _unstructured(spec, result)
    ready = dump_value(result.structured)
    json_text(ready)
    output = None if spec is None else spec.output
    if output is not None and not result.is_error and not output.compiled.is_valid(ready):
        return _breach(spec, output, ready)
    return attrs.evolve(result, structured=ready), None


def _blocks(output: Shape | None, value: Any) -> Any:
    """Tell content from data: the blocks that a value is, or None when it is something else."""
    if isinstance(value, Content):
        return value
    if not isinstance(value, (list, tuple)) or not value:
        return None
    if any(isinstance(item, Content) for item in value):
        return as_blocks(value)
    if not all(isinstance(item, Mapping) and item.get("type") in _BLOCK_TYPES for item in value):
        return None
    declared = output is not None and output.compiled.is_valid(list(value))
    return None if declared else as_blocks(value)


def _refuse_strangers(output: Shape | None, value: Any) -> None:
    """Refuse what could be written as JSON but is surely not meant so."""
    refuse_coroutine(value, "the handler")
    if output is None and isinstance(value, (bytes, bytearray)):
        raise TypeError("bytes are no answer; return Content.image(…), .audio(…) or .resource(…)")


def _breach(spec: ToolSpec | None, output: Shape, ready: Any) -> Outcome:
    return _broken(spec, "\n".join(describe(output.compiled.violations(ready))))


def _broken(spec: ToolSpec | None, detail: str) -> Outcome:
    if spec is None or spec.output is None:
        text = FAILED
    else:
        text = f"Tool {spec.name} broke its output contract"
    source = "an override" if spec is None else spec.source
    return ToolResult.error(text), f"the answer of {source} was not sent: {detail}"


def error_result(error: ToolError) -> ToolResult:
    """Turn a `ToolError` into a result that the model can act on.

    Args:
        error: What the tool raised.

    Returns:
        A result with `isError: true` and the content of the error.
    """
    content = error.content
    if content == "":
        return ToolResult.error(FAILED, meta=error.meta)
    try:
        return ToolResult.error(as_blocks(content), meta=error.meta)
    except (TypeError, ProtocolError):
        return ToolResult.error(FAILED, meta=error.meta)
