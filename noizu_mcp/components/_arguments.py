"""The arguments of a call: checked against the input of the tool, then built."""

from typing import Any

from ..schema import Violation, describe
from ..types import META_VIOLATIONS, ToolResult
from ._spec import ToolSpec


def prepare(spec: ToolSpec, arguments: Any) -> tuple[Any, ToolResult | None]:
    """Turn what a client sent into what the handler takes.

    Args:
        spec: The tool.
        arguments: The decoded `arguments` of `tools/call`; `{}` when they were absent.

    Returns:
        The value for `spec.invoke` and None; or None and the answer for the model. Bad arguments
        are an answer, not an error of the protocol (server/tools, Error Handling; SEP-1303).
    """
    shape = spec.input
    if not shape.compiled.is_valid(arguments):
        return None, _refusal(spec, shape.compiled.violations(arguments))
    return (arguments if shape.build is None else shape.build(arguments)), None


def _refusal(spec: ToolSpec, violations: list[Violation]) -> ToolResult:
    lines = "\n".join(describe(violations))
    return ToolResult.error(
        f"Invalid arguments for tool {spec.name}:\n{lines}",
        meta={META_VIOLATIONS: [violation.to_wire() for violation in violations]},
    )
