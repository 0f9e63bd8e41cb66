"""The server: its own skills, skills of the folder, workflows, stores and policies."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
import trio

from noizu_mcp import Context, McpError, Schema, Server, ToolResult, field
from noizu_mcp.policies import AuditLog
from noizu_mcp.types import ReadResult

from .rules import Rules
from .settings import Settings
from .skills import Skills
from .stores import Notes, NoteStore, RunStore, SettingStore, WorkflowStore
from .workflows import Workflows


@attrs.frozen
class State:
    """The parts of a workbench: `ctx.state`."""

    settings: Settings
    skills: Skills
    workflows: Workflows
    notes: Notes


class Found(Schema):
    result: list[str]
    branch: Literal["found", "nothing"]


async def remember(
    text: Annotated[str, field(min_length=1, max_length=10_000)], ctx: Context
) -> str:
    """Keep a note."""
    return f"workbench://notes/{ctx.state.notes.add(text)}"


async def recall(query: Annotated[str, field(max_length=1000)], ctx: Context) -> Found:
    """Search the notes. Possible output branches: found, nothing."""
    texts = [row["text"] for row in ctx.state.notes.find(query)[:20]]
    return Found(result=texts, branch="found" if texts else "nothing")


class Workbench(Server, name="workbench", version="1.0.0", tool_timeout=30.0):
    """A server over one folder.

    Args:
        home: The folder; by default that of the environment variable WORKBENCH, else the one beside
            this file.

    Raises:
        ValueError: Its settings are malformed.
        OSError: It has no settings.
    """

    resources = [NoteStore, WorkflowStore, RunStore, SettingStore]

    def __init__(self, home: Path | None = None) -> None:
        home = home or Path(os.environ.get("WORKBENCH", Path(__file__).parent / "home"))
        settings = Settings(home / "settings.toml")
        skills = Skills(home / "skills", settings, [remember, recall])
        workflows = Workflows(home / "workflows", skills, settings)
        self.parts = State(settings, skills, workflows, Notes())
        self.providers.add(skills, workflows)
        # Before the first call, so that none is made without policies.
        self._rules = Rules(home / "policies.toml")
        self._apply_policies()
        if "audit" in settings.values:
            self.telemetry.add(AuditLog(home / settings.values["audit"]))

    def _apply_policies(self) -> None:
        self.policies.replace(self._rules.load())

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[State]:
        with self.parts.settings.redacting_logs():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._rules.watch, self._apply_policies)
                yield self.parts
                nursery.cancel_scope.cancel()

    # Whatever goes out passes through here, whoever made it.

    async def call_tool(self, name: str, args: dict[str, Any], ctx: Context) -> ToolResult:
        redact = self.parts.settings.redact
        try:
            result = await super().call_tool(name, args, ctx)
        except McpError as error:
            raise McpError(error.code, redact(error.message), redact(error.data)) from None
        wire = result.to_wire()
        # The same object where there is nothing to hide: the server recognises the results of
        # timeouts and crashes, and counts them as such.
        return result if (redacted := redact(wire)) == wire else ToolResult.from_wire(redacted)

    async def read_resource(self, uri: str, ctx: Context) -> ReadResult:
        result = await super().read_resource(uri, ctx)
        return ReadResult.from_wire(self.parts.settings.redact(result.to_wire()))

    def count_tools(self) -> int:
        """Count the skills and the enabled workflows. It blocks."""
        return self.parts.skills.count() + self.parts.workflows.count()
