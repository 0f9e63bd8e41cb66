"""A tool, ready to be listed and called: everything settled, nothing left to look up.

A class statement leaves a `ToolPlan`; a registration binds it to an instance: a `ToolSpec`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from .._util import Unset, final
from ..schema import Shape, header_paths
from ..types import Annotations, Icon, RequireScopes
from ._plan import Plan
from ._signature import Mode


# Compared by identity: equality made by attrs would only cost time at import, and a repr of a whole
# spec would say too much.
@final
@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolSpec:
    """A registered tool.

    Attributes:
        name: What `tools/call` calls it.
        title: The name for people.
        description: What the model should know before it calls the tool.
        category: The category, also in `meta`.
        annotations: Hints for the client.
        icons: Pictures of it.
        meta: `_meta` of the definition, with the category in it.
        hidden: Left out of `tools/list`, still callable.
        input: The declared arguments; `{"type": "object"}` if none are.
        output: The declared structured content, if any.
        timeout: Seconds a call may take; None for no limit, UNSET for the one of the server.
        requires: Scopes that a caller must hold; None for none.
        max_concurrency: Calls at one time; None for no limit.
        mode: `async`, `thread` (sync, may block) or `inline` (sync and short).
        task: Whether calls go on as tasks: `optional`, `required`; None for never.
        starts_task: Whether the handler begins the task by itself.
        takes_context: Whether the handler wants the context.
        invoke: Calls the handler with what it takes of `(args, ctx)`.
        definition: The tool as `tools/list` of 2026-07-28 describes it. Not to be changed.
        source: Where the handler stands, for logs: `app.Utilities.read_file`.
        mirrored: The path of each property that an HTTP header mirrors, by the header.
    """

    name: str
    title: str | None
    description: str | None
    category: str | None
    annotations: Annotations | None
    icons: tuple[Icon, ...]
    meta: dict[str, Any] | None
    hidden: bool
    input: Shape
    output: Shape | None
    timeout: float | Unset | None
    requires: RequireScopes | None
    max_concurrency: int | None
    mode: Mode
    task: str | None
    starts_task: bool
    takes_context: bool
    invoke: Callable[[Any, Any], Any]
    definition: dict[str, Any]
    source: str
    mirrored: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        return f"ToolSpec({self.name!r}, {self.source})"


@final
class ToolPlan(Plan):
    """What a class statement settles about one tool; everything but the instance.

    Attributes:
        input: The declared arguments.
        output: The declared structured content, if any.
    """

    input: Shape
    output: Shape | None

    def own(self) -> dict[str, Any]:
        """Give the schemas."""
        return {
            "inputSchema": self.input.schema,
            "outputSchema": self.output.schema if self.output else None,
        }

    def bind(self, instance: object, overrides: Mapping[str, Any]) -> ToolSpec:
        """Make the spec that a server calls.

        Args:
            instance: The tool or toolkit that has the method.
            overrides: Options of the registration; they replace the plan's own.

        Returns:
            The spec, its handler bound to the instance.
        """
        options = {**self.options, **overrides}
        shared = self.shared(instance, overrides)
        return ToolSpec(
            name=options["name"],
            title=options.get("title"),
            description=options.get("description"),
            category=options.get("category"),
            annotations=options.get("annotations"),
            icons=options.get("icons", ()),
            meta=shared["definition"].get("_meta"),
            input=self.input,
            output=self.output,
            max_concurrency=options.get("max_concurrency"),
            task=options.get("task"),
            starts_task=options.get("starts_task", False),
            mirrored=header_paths(self.input.schema),
            **shared,
        )
