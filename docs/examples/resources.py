"""Resources: a document, a template, and a log that clients can watch.

noizu-mcp list --all docs/examples/resources.py
noizu-mcp read docs/examples/resources.py config://app
noizu-mcp read docs/examples/resources.py notes://2026/groceries
noizu-mcp complete docs/examples/resources.py 'notes://{year}/{title}' title t --context year=2026
"""

from collections.abc import Sequence

from noizu_mcp import Context, Resource, ResourceNotFound, ResourceTemplate, Schema, Server, Tool
from noizu_mcp.types import ResourceDefinition

NOTES = {
    (2025, "trip"): "Pack the tent.",
    (2026, "groceries"): "Bread and milk.",
    (2026, "tax"): "Due in May.",
}


class AppConfig(Resource, uri="config://app", mime_type="application/json"):
    """Settings of the application."""

    def read(self) -> dict[str, object]:
        return {"theme": "dark", "beta": False}


class Notes(ResourceTemplate, uri_template="notes://{year}/{title}", mime_type="text/plain"):
    """A note, by year and title."""

    class Arguments(Schema):
        year: int
        title: str

    def read(self, uri: str, args: Arguments) -> str:
        if (args.year, args.title) not in NOTES:
            raise ResourceNotFound(uri)
        return NOTES[args.year, args.title]

    def complete(self, variable: str, prefix: str, ctx: Context) -> Sequence[str]:
        year = ctx.completion_arguments.get("year")
        titles = [title for y, title in NOTES if year in (None, str(y))]
        values = titles if variable == "title" else sorted({str(y) for y, _ in NOTES})
        return [value for value in values if value.startswith(prefix)]

    def list(self) -> Sequence[ResourceDefinition]:
        return [ResourceDefinition(f"notes://{y}/{title}", title) for y, title in NOTES]


class Log(Resource, uri="log://today", mime_type="text/plain", subscribable=True):
    """The log of today. Clients can watch it."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def read(self) -> str:
        return "\n".join(self.lines)


class Note(Tool):
    """Write a line to the log."""

    class Input(Schema):
        text: str

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def call(self, args: Input, ctx: Context) -> str:
        self.lines.append(args.text)
        ctx.notify.resource_updated("log://today")
        return f"{len(self.lines)} lines"


LINES: list[str] = []


class Library(Server, name="library", version="1.0.0"):
    tools = [Note(LINES)]
    resources = [AppConfig, Notes, Log(LINES)]
