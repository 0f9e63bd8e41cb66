"""Violations as lines that a model can act on."""

from collections.abc import Sequence

from ..jsonschema._violation import MAX_VIOLATIONS, Violation

# A model corrects a few faults at a time; the rest would only push the task out of its sight.
MAX_LINES = 20


def describe(violations: Sequence[Violation]) -> list[str]:
    """Return one line for each violation: `/items/0/qty: expected integer, got string "3"`.

    Args:
        violations: What a schema found, in its order.

    Returns:
        At most 20 different lines, and one more, `… and N more`, when there were more; of 100
        violations, at which a schema stops to look, `… and at least N more`.
    """
    lines = list(dict.fromkeys(map(_line, violations)))
    if len(lines) <= MAX_LINES:
        return lines
    least = "at least " if len(violations) >= MAX_VIOLATIONS else ""
    return [*lines[:MAX_LINES], f"… and {least}{len(lines) - MAX_LINES} more"]


def _line(violation: Violation) -> str:
    return f"{violation.pointer or '(root)'}: {violation.message}"
