"""`noizu-mcp describe`: everything that a person needs to use one component of a server."""

import argparse
import shlex
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from .._nearest import hint_at
from .._value import JSON
from ..types import (
    Annotations,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from ..uri import UriTemplate
from ._commands import KINDS, fetch_kind, hidden_of
from ._errors import OK, USAGE, CommandError
from ._output import columns, print_json
from ._say import say
from ._schema_words import SchemaRow, fields_in_words, in_words, needed_fields, sample, shown
from ._use import Connected, use

#: The classes of definitions, by kind.
_CLASSES: Final[dict[str, Any]] = {
    "tools": ToolDefinition,
    "resources": ResourceDefinition,
    "templates": ResourceTemplateDefinition,
    "prompts": PromptDefinition,
}
_NOUNS: Final = {
    "tools": "tool",
    "resources": "resource",
    "templates": "resource template",
    "prompts": "prompt",
}
#: The hints of a tool in words, for True and for False.
_HINTS: Final = {
    "read_only_hint": ("changes nothing", "may change something"),
    "destructive_hint": ("may destroy something", "destroys nothing"),
    "idempotent_hint": ("a repeated call changes nothing more", "each call has an effect"),
    "open_world_hint": ("reaches other systems", "reaches no other system"),
}

#: Maximum fields in a description; recursive schemas are endless.
MAX_ROWS: Final = 200


class _NamedComponent(NamedTuple):
    """One component of the name that was asked for."""

    kind: str
    definition: Any
    hidden: bool


def describe(args: argparse.Namespace) -> int:
    """Print what there is to know about one component."""
    server, found = use(args, partial(_find, args.name))
    if args.json:
        print_json({_NOUNS[each.kind]: each.definition.to_wire() for each in found})
        return OK
    for number, each in enumerate(found):
        hidden = ", hidden" if each.hidden else ""
        lines = [f"{_name_of(each)}: a {_NOUNS[each.kind]} of {server}{hidden}", *_about(each)]
        lines += ["", "Example", f"  {shlex.join(_example(each, args))}"]
        for line in ([""] if number else []) + lines:
            say(line)
    return OK


async def _find(name: str, connected: Connected) -> tuple[str, list[_NamedComponent]]:
    """Find the components that have a name, or a URI.

    Raises:
        CommandError: It does not exist.
    """
    client, found = connected.client, list[_NamedComponent]()
    names: list[str] = []
    for kind, about in KINDS.items():
        has_any = client.capabilities.has(about.capability)
        listed = await fetch_kind(client, kind) if has_any else ()
        hidden = map(_CLASSES[kind].from_wire, hidden_of(kind, connected.server, listed))
        both = [(each, False) for each in listed] + [(each, True) for each in hidden]
        for each, is_hidden in both:
            words = {getattr(each, about.key), each.name}
            names += () if is_hidden else sorted(words)
            if name in words:
                found.append(_NamedComponent(kind, each, is_hidden))
    if not found:
        raise CommandError(f"nothing is called {name}; {hint_at(name, names)}", USAGE)
    info = client.server_info
    return f"{info.title or info.name} {info.version}".strip(), found


def _name_of(found: _NamedComponent) -> str:
    return str(getattr(found.definition, KINDS[found.kind].key))


def _about(found: _NamedComponent) -> Iterator[str]:
    """Write the description, the arguments, the output and the hints."""
    each = found.definition
    notes = None if isinstance(each, PromptDefinition) else each.annotations
    title = each.title or getattr(notes, "title", None)
    for text in filter(None, (title, each.description)):
        yield from (f"  {line}" for line in str(text).splitlines())
    if isinstance(each, ToolDefinition):
        yield from _section("Arguments", _tool_rows(each.input_schema, "needed"), "none are named")
        if each.output_schema is not None:
            yield from _section("Output", _tool_rows(each.output_schema, "always"), "an object")
        yield from _section("Hints", [("", text, "") for text in _hints(each.annotations)])
        return
    if isinstance(each, PromptDefinition):
        rows = [(a.name, "needed" if a.required else "optional", _line(a)) for a in each.arguments]
        yield from _section("Arguments", rows, "none")
        return
    if isinstance(each, ResourceTemplateDefinition):
        yield from _section("Variables", _variables(each.uri_template), "none")
    size = None if isinstance(each, ResourceTemplateDefinition) else each.size
    facts = [("name", each.name), ("media type", each.mime_type), ("bytes", size)]
    if notes is not None:
        facts += [("for", ", ".join(notes.audience)), ("priority", notes.priority)]
        facts.append(("last modified", notes.last_modified))
    rows = [(name, str(value), "") for name, value in facts if value not in (None, "")]
    yield from _section("Contents", rows)


def _line(argument: Any) -> str:
    return ": ".join(filter(None, (argument.title, argument.description)))


def _tool_rows(schema: JSON, needed: str) -> list[SchemaRow]:
    """Describe the fields of a schema, or its values if it has no fields."""
    rows = list(islice(fields_in_words(schema, schema, needed), MAX_ROWS))
    if rows or not isinstance(schema, dict):
        return rows
    return [] if schema.get("type") == "object" else [("", in_words(schema, schema), "")]


def _hints(annotations: Annotations | None) -> list[str]:
    values = ((getattr(annotations, name, None), words) for name, words in _HINTS.items())
    return [words[0] if value else words[1] for value, words in values if value is not None]


def _variables(template: str) -> list[SchemaRow]:
    try:
        read = UriTemplate(template)
    except ValueError:
        return []
    return [
        (
            name,
            ("list" if name in read.lists else "text")
            + (" (optional)" if name in read.optional else " (needed)"),
            "",
        )
        for name in read.variables
    ]


def _section(title: str, rows: Iterable[SchemaRow], otherwise: str = "") -> Iterator[str]:
    """Write a section: a row for each name, its description below; nothing for an empty one."""
    rows = list(rows) or ([("", otherwise, "")] if otherwise else [])
    if not rows:
        return
    yield from ("", title)
    width = max(columns(name) for name, _, _ in rows)
    for name, about, text in rows:
        margin = f"  {' ' * width}  " if width else "  "
        padded = f"  {name}{' ' * (width - columns(name))}  " if width else "  "
        yield f"{padded}{about}"
        yield from (f"{margin}{line}" for line in text.splitlines())


def _example(found: _NamedComponent, args: argparse.Namespace) -> list[str]:
    """Make a command line that uses a component: what is needed, and nothing else."""
    each = found.definition
    words: list[str]
    if isinstance(each, ToolDefinition):
        schema = each.input_schema
        values = {name: sample(field, schema, name) for name, field in needed_fields(schema)}
        verb, words = (
            "call",
            [
                each.name,
                *(f"{k}={v if isinstance(v, str) else shown(v)}" for k, v in values.items()),
            ],
        )
    elif isinstance(each, PromptDefinition):
        needed = [a.name for a in each.arguments if a.required]
        verb, words = "prompt", [each.name, *(f"{name}={name.upper()}" for name in needed)]
    else:
        verb, words = "read", [_uri(_name_of(found))]
    target = [] if args.process is not None else [args.target]
    rest = [] if args.process is None else ["--", *args.process]
    return ["noizu-mcp", verb, *target, *words, *rest]


def _uri(template: str) -> str:
    try:
        read = UriTemplate(template)
        needed = set(read.variables) - read.optional
        return read.expand({name: name.upper() for name in needed}) or template
    except ValueError:
        return template
