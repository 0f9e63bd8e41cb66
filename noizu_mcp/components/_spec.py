"""A tool, ready to be listed and called: everything settled, nothing left to look up.

A class statement leaves a `ToolPlan`; a registration binds it to an instance: a `ToolSpec`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from .._util import UNSET, Unset, final
from ..schema import Shape
from ..types import Annotations, Icon
from ._handler import Handler, Mode
from ._options import hidden_by


# Specs, plans and handlers are compared by identity: equality made by attrs would only cost time at
# import, and a repr of a whole spec would say too much.
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
        max_concurrency: Calls at one time; None for no limit.
        mode: `async`, `thread` (sync, may block) or `inline` (sync and short).
        takes_context: Whether the handler wants the context.
        invoke: Calls the handler with what it takes of `(args, ctx)`.
        definition: The tool as `tools/list` of 2026-07-28 describes it. Not to be changed.
        source: Where the handler stands, for logs: `app.Utilities.read_file`.
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
    max_concurrency: int | None
    mode: Mode
    takes_context: bool
    invoke: Callable[[Any, Any], Any]
    definition: dict[str, Any]
    source: str

    def __repr__(self) -> str:
        return f"ToolSpec({self.name!r}, {self.source})"


@final
@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolPlan:
    """What a class statement settles about one tool; everything but the instance.

    Attributes:
        options: The options of the tool, checked; `name` is always among them.
        input: The declared arguments.
        output: The declared structured content, if any.
        handler: The method that answers.
        source: Where the method stands.
    """

    options: Mapping[str, Any]
    input: Shape
    output: Shape | None
    handler: Handler
    source: str

    def definition(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Describe the tool as `tools/list` of 2026-07-28 does (server/tools, Tool).

        Args:
            overrides: Options of a registration; they replace the plan's own.

        Returns:
            A JSON-ready dict without null keys.
        """
        options = {**self.options, **(overrides or {})}
        annotations = options.get("annotations")
        wire = {
            "name": options["name"],
            "title": options.get("title"),
            "description": options.get("description"),
            "inputSchema": self.input.schema,
            "outputSchema": self.output.schema if self.output else None,
            "annotations": None if annotations is None else annotations.to_wire(),
            "icons": [icon.to_wire() for icon in options.get("icons", ())] or None,
            "_meta": _meta(options),
        }
        return {key: value for key, value in wire.items() if value is not None}

    def bind(self, instance: object, overrides: Mapping[str, Any]) -> ToolSpec:
        """Make the spec that a server calls.

        Args:
            instance: The tool or toolkit that has the method.
            overrides: Options of the registration; they replace the plan's own.

        Returns:
            The spec, its handler bound to the instance.
        """
        options = {**self.options, **overrides}
        hidden = hidden_by(overrides)
        return ToolSpec(
            name=options["name"],
            title=options.get("title"),
            description=options.get("description"),
            category=options.get("category"),
            annotations=options.get("annotations"),
            icons=options.get("icons", ()),
            meta=_meta(options),
            hidden=bool(hidden_by(self.options) if hidden is None else hidden),
            input=self.input,
            output=self.output,
            timeout=options.get("timeout", UNSET),
            max_concurrency=options.get("max_concurrency"),
            mode=self.handler.mode,
            takes_context=self.handler.takes_context,
            invoke=self.handler.bind(instance),
            definition=self.definition(overrides),
            source=self.source,
        )


def _meta(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merge the category into a copy of `meta`; the class's own mapping stays as it is."""
    meta, category = options.get("meta"), options.get("category")
    if category is None:
        return None if meta is None else dict(meta)
    return {**(meta or {}), "category": category}
