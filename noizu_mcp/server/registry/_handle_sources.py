"""The tools that return handles: the tools that take such a handle name them."""

from collections.abc import Iterable, Mapping

from ...components import ToolSpec, describe_handles


def concerns_handles(specs: Iterable[ToolSpec]) -> bool:
    """Tell whether a tool takes or returns handles."""
    return any(spec.handles or (spec.output and spec.output.handles) for spec in specs)


def name_sources(specs: Mapping[str, ToolSpec]) -> dict[str, ToolSpec]:
    """Write into each tool that takes a handle which tools return one.

    Hidden tools are not named, and tools that not everyone may use only by tools with the same
    `available`. Tools that return a handle without taking one come first: they make new ones.

    Args:
        specs: The tools by name.

    Returns:
        The same tools in the same order; those that take handles in new objects where the names
        have changed.
    """
    found: dict[type, list[ToolSpec]] = {}
    for spec in specs.values():
        for cls in spec.output.handles if spec.output and not spec.hidden else ():
            found.setdefault(cls, []).append(spec)
    return {name: _named(spec, found) if spec.handles else spec for name, spec in specs.items()}


def _named(spec: ToolSpec, found: Mapping[type, list[ToolSpec]]) -> ToolSpec:
    sources: dict[type, tuple[str, ...]] = {}
    for cls in spec.handles.values():
        open_ = (each for each in found.get(cls, ()) if each.available in (None, spec.available))
        makers_first = sorted(open_, key=lambda each: cls in each.handles.values())
        sources[cls] = tuple(each.name for each in makers_first)
    if sources == spec.sources:
        return spec
    # The schema of the definition may be that of an earlier set of tools.
    schema = describe_handles(spec.input.schema, spec.handles, sources)
    definition = {**spec.definition, "inputSchema": schema}
    return ToolSpec(**{**vars(spec), "definition": definition, "sources": sources})
