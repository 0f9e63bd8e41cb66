"""The data of a workbench, as resources: one entry, the list of all, or a search."""

import json
import re
from collections.abc import Iterable
from typing import Any

import attrs

from noizu_mcp import Context, McpError, ResourceNotFound, ResourceTemplate
from noizu_mcp.types import ResourceDefinition

from .settings import REDACTED, Secret
from .workflows import Workflows

JSON = "application/json"
#: Entries of a list, and of a search.
MAX_LISTED, MAX_FOUND = 50, 20
#: Notes that are kept; the oldest goes first.
MAX_NOTES = 1000

INVALID_PARAMS = -32602
Row = dict[str, Any]


class Notes:
    """Notes that a skill writes, and everybody reads."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._count = 0

    def add(self, text: str) -> int:
        """Add a note; return its id."""
        self._count += 1
        self._rows = [*self._rows, {"id": self._count, "text": text}][-MAX_NOTES:]
        return self._count

    def rows(self) -> list[Row]:
        """Return the notes, the newest first."""
        return self._rows[::-1]

    def find(self, words: str) -> list[Row]:
        """Return the notes that have all the words."""
        wanted = words.casefold().split()
        rows = self.rows()
        return [row for row in rows if all(word in row["text"].casefold() for word in wanted)]


class Store(ResourceTemplate, abstract=True):
    """A store: `list` and the ids of its entries stand in the place of `{id}`."""

    _listed = "list"  # the path of the list, which `resources/list` shows

    async def read(self, uri: str, id: str, ctx: Context) -> Any:  # noqa: A002 - in the URI
        if id == "list":
            return _json((await self.rows(ctx))[:MAX_LISTED])
        found = await self.find(id, ctx)
        if found is not None:
            return _json(found)
        if not re.fullmatch(r"[0-9]{1,18}", id):
            raise McpError(INVALID_PARAMS, f"Invalid ID: {id}")
        for row in await self.rows(ctx):
            if row["id"] == int(id):
                return row
        raise ResourceNotFound(uri)

    async def rows(self, ctx: Context) -> list[Row]:
        """Return the entries."""
        raise NotImplementedError

    async def find(self, text: str, ctx: Context) -> list[Row] | None:
        """Answer a search; None if the text is no search, or the store has none."""
        return None

    # Last: the name hides the type.
    def list(self) -> Iterable[ResourceDefinition]:
        return [ResourceDefinition(f"workbench://{self._listed}", self._listed, mime_type=JSON)]


class NoteStore(Store, uri_template="workbench://notes/{id}", mime_type=JSON):
    """Notes: `list`, an id, or `search:` and words."""

    _listed = "notes/list"

    async def rows(self, ctx: Context) -> list[Row]:
        notes: Notes = ctx.state.notes
        return notes.rows()

    async def find(self, text: str, ctx: Context) -> list[Row] | None:
        kind, _, words = text.partition(":")
        notes: Notes = ctx.state.notes
        return notes.find(words)[:MAX_FOUND] if kind == "search" else None


class WorkflowStore(Store, uri_template="workbench://workflows/{id}", mime_type=JSON):
    """Workflows with their steps: `list` or an id."""

    _listed = "workflows/list"

    async def rows(self, ctx: Context) -> list[Row]:
        workflows: Workflows = ctx.state.workflows
        return await workflows.describe()


class RunStore(Store, uri_template="workbench://runs/{id}", mime_type=JSON):
    """Runs of workflows, the newest first: `list` or an id."""

    _listed = "runs/list"

    async def rows(self, ctx: Context) -> list[Row]:
        return [attrs.asdict(run) for run in reversed(ctx.state.workflows.runs.kept)]


class SettingStore(ResourceTemplate, uri_template="workbench://config/{key}", mime_type=JSON):
    """Settings: `list` or a key. Secret values are redacted."""

    def read(self, uri: str, key: str, ctx: Context) -> Any:
        rows = {name: _setting(name, value) for name, value in ctx.state.settings.values.items()}
        if key == "list":
            return _json(list(rows.values()))
        if key not in rows:
            raise ResourceNotFound(uri)
        return rows[key]

    def list(self) -> Iterable[ResourceDefinition]:
        return [ResourceDefinition("workbench://config/list", "config/list", mime_type=JSON)]


def _setting(key: str, value: Any) -> Row:
    secret = isinstance(value, Secret)
    return {"key": key, "value": REDACTED if secret else value, "secret": secret}


def _json(rows: list[Row]) -> str:
    # A list would be several contents, and an empty one none.
    return json.dumps(rows)
