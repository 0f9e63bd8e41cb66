"""Tasks: what becomes of a call that goes on after its request has its answer.

Source: the extension `io.modelcontextprotocol/tasks`, `specification/2026-07-28/tasks`.
"""

from typing import Any, Final, Literal

import attrs

from .._util import final
from ._results import Result

#: The id of the extension, as both ends declare it.
TASKS: Final = "io.modelcontextprotocol/tasks"

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]


@final
@attrs.frozen(eq=False, repr=False)
class Task(Result):
    """A task: the answer to `tools/call` that begins it, and what `tasks/get` says of it.

    Attributes:
        task_id: What names it.
        status: `working`, `input_required`, `completed`, `failed` or `cancelled`.
        created_at: When it began, ISO 8601.
        last_updated_at: When it changed last, ISO 8601.
        ttl_ms: Milliseconds from its beginning for which it is kept; None for no limit. May change.
        poll_interval_ms: Milliseconds between two looks at it.
        status_message: What it does, or why it failed, for people.
        input_requests: With `input_required`: what is asked, by key; `tasks/update` answers.
        result: With `completed`: the result of the call, `isError` ones too.
        error: With `failed`: the JSON-RPC error.
        meta: `_meta` of the answer that it came in.
    """

    task_id: str
    status: str
    created_at: str = attrs.field(kw_only=True)
    last_updated_at: str = attrs.field(kw_only=True)
    ttl_ms: int | None = attrs.field(default=None, kw_only=True)
    poll_interval_ms: int | None = attrs.field(default=None, kw_only=True)
    status_message: str | None = attrs.field(default=None, kw_only=True)
    input_requests: dict[str, Any] | None = attrs.field(default=None, kw_only=True)
    result: dict[str, Any] | None = attrs.field(default=None, kw_only=True)
    error: dict[str, Any] | None = attrs.field(default=None, kw_only=True)
    meta: dict[str, Any] | None = attrs.field(default=None, kw_only=True)

    @property
    def ended(self) -> bool:
        """True once it does not change any more."""
        return self.status in ("completed", "failed", "cancelled")

    def to_wire(self) -> dict[str, Any]:
        """Write the JSON object; its time to live is there in any case, null for no limit."""
        return {**super().to_wire(), "ttlMs": self.ttl_ms}
