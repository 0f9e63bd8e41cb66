"""Values of extensions: tasks and Agent Skills.

Sources: `io.modelcontextprotocol/tasks`, `specification/2026-07-28/tasks`; and
`io.modelcontextprotocol/skills`, `specification/stable/skills` (SEP-2640).
"""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import unquote

import attrs

from .._util import final
from .._value import JSON, JSONMapping, JSONObject
from ._common import Result
from ._wire import Wire

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]


@final
@attrs.frozen(eq=False, repr=False)
class Task(Result):
    """A task: the answer of the `tools/call` that begins it, and of `tasks/get`.

    Attributes:
        task_id: The id of the task.
        status: `working`, `input_required`, `completed`, `failed` or `cancelled`.
        created_at: The time of its beginning, ISO 8601.
        last_updated_at: The time of its last change, ISO 8601.
        ttl_ms: Milliseconds from its beginning for which it is kept; None for no limit. It may
            change.
        poll_interval_ms: Milliseconds that a client should wait between two `tasks/get`.
        status_message: A text for people about its progress or failure.
        input_requests: The requests to the client by key, with `input_required`; the client answers
            with `tasks/update`.
        result: The result of the call, with `completed`; it may have `isError`.
        error: The JSON-RPC error, with `failed`.
        meta: `_meta` of the answer.
    """

    task_id: str
    status: str
    created_at: str = attrs.field(kw_only=True)
    last_updated_at: str = attrs.field(kw_only=True)
    ttl_ms: int | None = attrs.field(default=None, kw_only=True)
    poll_interval_ms: int | None = attrs.field(default=None, kw_only=True)
    status_message: str | None = attrs.field(default=None, kw_only=True)
    input_requests: JSONObject | None = attrs.field(default=None, kw_only=True)
    result: JSONObject | None = attrs.field(default=None, kw_only=True)
    error: JSONObject | None = attrs.field(default=None, kw_only=True)
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)

    @property
    def ended(self) -> bool:
        """True if the status is final."""
        return self.status in ("completed", "failed", "cancelled")

    def to_wire(self) -> JSONObject:
        """Write the JSON object; `ttlMs` is always present, null for no limit."""
        return {**super().to_wire(), "ttlMs": self.ttl_ms}


@final
@attrs.frozen(eq=False, repr=False)
class SkillDefinition(Wire):
    """A skill as `skills/list` and `skills/get` describe it ("Skill Entries").

    Attributes:
        uri: The URI of its `SKILL.md`.
        frontmatter: The frontmatter of that file; it has `name` and `description`.
        resources: Its files, `SKILL.md` among them: a list of mappings with `uri`, `digest`
            (`sha256:` and 64 hexadecimal digits) and `size` in bytes; or the string `dynamic`.
    """

    uri: str
    frontmatter: JSONObject
    resources: JSON

    @property
    def name(self) -> str:
        """The name in the frontmatter; several skills of a server may have the same."""
        return str(self.frontmatter.get("name", ""))

    @property
    def description(self) -> str:
        """The description in the frontmatter, by which a model decides whether to load it."""
        return str(self.frontmatter.get("description", ""))

    @property
    def root(self) -> str:
        """The URI of its folder, without a slash at the end."""
        return self.uri.rpartition("/")[0]

    @property
    def files(self) -> Mapping[str, JSONMapping] | None:
        """The members of `resources` by their paths in the folder; None if they are dynamic."""
        if not isinstance(self.resources, list):
            return None
        above = f"{self.root}/"
        named = (
            (each["uri"], each)
            for each in self.resources
            if isinstance(each, Mapping) and isinstance(each.get("uri"), str)
        )
        return {unquote(uri.removeprefix(above)): each for uri, each in named}
