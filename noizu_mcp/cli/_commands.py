"""The commands that use a server: list, call, read, prompt and complete; `_describe` has one more.

Each connects to the server (`_use.use`), asks one thing, and prints the answer: text for people, or
with `--json` the result as the server sent it.
"""

import argparse
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from .._errors import McpError
from .._nearest import hint_at
from .._util import Returned, part_of
from .._value import JSONObject
from ..client import Client
from ..jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND
from ..server import Server
from ..types import (
    Completion,
    PromptDefinition,
    Reference,
    ResourceContents,
    ToolDefinition,
    ToolResult,
    camel_case,
)
from ..uri import UriTemplate
from ._arguments import read_arguments, read_texts
from ._errors import FAILED, OK, USAGE, CommandError
from ._output import json_of, print_json, print_table, print_text, show
from ._save import OutputPart, check_output, parts_of_blocks, parts_of_contents, save
from ._say import note, say
from ._use import Connected, use


class _ListedKind(NamedTuple):
    """One kind of things that servers list.

    Attributes:
        header: The columns of its table.
        key: The attribute that clients name it by.
        row: One row of its table.
        fetch: Lists all of them.
        capability: The capability of a server that has components of the kind.
        registered: Its name in the registry of a server.
    """

    header: tuple[str, ...]
    key: str
    row: Callable[[Any], tuple[str, ...]]
    fetch: Callable[[Client], Awaitable[Sequence[Any]]]
    capability: str
    registered: str


def _tool_row(tool: ToolDefinition) -> tuple[str, ...]:
    required = part_of(tool.input_schema, "required", list)
    names = part_of(tool.input_schema, "properties", dict)
    return tool.name, _words(names, required), _first_line(tool)


def _prompt_row(prompt: PromptDefinition) -> tuple[str, ...]:
    names = [each.name for each in prompt.arguments]
    required = [each.name for each in prompt.arguments if each.required]
    return prompt.name, _words(names, required), _first_line(prompt)


def _words(names: Iterable[str], required: Sequence[str]) -> str:
    return " ".join(name if name in required else f"[{name}]" for name in names)


def _first_line(listed: Any) -> str:
    return (listed.description or listed.title or "").partition("\n")[0]


_NAMED: Final = ("NAME", "ARGUMENTS", "DESCRIPTION")
KINDS: Final = {
    "tools": _ListedKind(_NAMED, "name", _tool_row, Client.list_tools, "tools", "tools"),
    "resources": _ListedKind(
        ("URI", "NAME", "DESCRIPTION"),
        "uri",
        lambda each: (each.uri, each.name, _first_line(each)),
        Client.list_resources,
        "resources",
        "resources",
    ),
    "templates": _ListedKind(
        ("URI TEMPLATE", "NAME", "DESCRIPTION"),
        "uri_template",
        lambda each: (each.uri_template, each.name, _first_line(each)),
        Client.list_resource_templates,
        "resources",
        "resource_templates",
    ),
    "prompts": _ListedKind(_NAMED, "name", _prompt_row, Client.list_prompts, "prompts", "prompts"),
}


def list_offers(args: argparse.Namespace) -> int:
    """Print the components of a server: its tools, unless other kinds are asked for."""
    asked = [kind for kind in KINDS if args.all or getattr(args, kind)] or ["tools"]
    found = use(args, partial(_fetch, asked, every=args.all))
    several = args.all or len(asked) > 1
    if args.json:
        wire = {kind: [each.to_wire() for each in items] for kind, (items, _) in found.items()}
        print_json(wire if several else wire[asked[0]])
        return OK
    for number, (kind, (listed, hidden)) in enumerate(found.items()):
        if several:
            if number:
                say()
            say(kind.upper())
        if listed:
            print_table(KINDS[kind].header, [KINDS[kind].row(each) for each in listed])
        else:
            say(f"the server lists no {kind}")
        if hidden:
            verb = "is" if hidden == 1 else "are"
            note(f"{hidden} more {verb} hidden")
    return OK


async def _fetch(
    kinds: Sequence[str], connected: Connected, *, every: bool
) -> dict[str, tuple[Sequence[Any], int]]:
    """List some kinds, with the number of their hidden components; of all kinds those it has."""
    client, found = connected.client, {}
    for kind in kinds:
        if every and not client.capabilities.has(KINDS[kind].capability):
            continue
        listed = await fetch_kind(client, kind)
        found[kind] = listed, len(hidden_of(kind, connected.server, listed))
    return found


async def fetch_kind(client: Client, kind: str) -> Sequence[Any]:
    """List the components of a kind.

    Args:
        client: A client of the server.
        kind: A key of `KINDS`.

    Returns:
        The components; none if the server does not know the method that lists them.
    """
    try:
        return await KINDS[kind].fetch(client)
    except McpError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return ()


def hidden_of(kind: str, server: Server | None, listed: Sequence[Any]) -> list[JSONObject]:
    """List the hidden definitions of a server in this process; empty for other servers.

    Args:
        kind: A key of `KINDS`.
        server: The server.
        listed: The components that it lists; it may list hidden ones, too.
    """
    if server is None:
        return []
    key = camel_case(KINDS[kind].key)
    names = {getattr(each, KINDS[kind].key) for each in listed}
    entries = server.registry.entries(KINDS[kind].registered)
    return [each for each, hidden in entries if hidden and each[key] not in names]


class _Offers:
    """The components of one kind that a server lists; the list is fetched once, if at all.

    Args:
        kind: A key of `KINDS`.
        connected: The connection to the server.
    """

    def __init__(self, kind: str, connected: Connected) -> None:
        self.client = connected.client
        self.report = connected.report
        self._kind = KINDS[kind]
        self._listed: Sequence[Any] | None = None

    async def fetch(self) -> dict[str, Any]:
        """Return the components by their names or URIs."""
        if self._listed is None:
            self._listed = await self._kind.fetch(self.client)
        return {getattr(each, self._kind.key): each for each in self._listed}


def _use_named(
    args: argparse.Namespace, kind: str, name: str, ask: Callable[[_Offers], Awaitable[Returned]]
) -> Returned:
    """Use one component of a server; if it has none of that name, suggest one.

    Raises:
        CommandError: The server has no component of that name, or none of that kind.
        McpError: It has one, or the error has another cause.
    """

    async def work(connected: Connected) -> Returned:
        offers = _Offers(kind, connected)
        try:
            return await ask(offers)
        except McpError as error:
            # These codes have other meanings, too, such as a wrong argument: only the list tells
            # whether the name is wrong.
            if error.code not in (METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND):
                raise
            try:
                names = list(await offers.fetch())
            except McpError as unlisted:
                if error.code == unlisted.code == METHOD_NOT_FOUND:
                    raise CommandError(f"the server has no {kind}") from error
                raise error from unlisted
            if name in names or (kind == "resources" and await _fits_template(offers.client, name)):
                raise
            text = f"no {kind.removesuffix('s')} {name}; {hint_at(name, names)}"
            raise CommandError(text, USAGE) from error

    return use(args, work)


async def _fits_template(client: Client, uri: str) -> bool:
    """Tell whether a URI fits a template of a server: then the server has looked for it."""
    try:
        templates = await client.list_resource_templates()
    except McpError:
        return False
    for each in templates:
        with suppress(ValueError):  # an invalid template matches nothing
            if UriTemplate(each.uri_template).match(uri) is not None:
                return True
    return False


def call_tool(args: argparse.Namespace) -> int:
    """Print the result of a tool, or write it to files."""
    check_output(args.output, force=args.force)
    result = _use_named(args, "tools", args.tool, partial(_call, args))
    if args.json:
        _give_json(result.to_wire(), args)
    elif result.is_error:
        for block in result.content:
            # The next program of a pipe must not take a failure for a result.
            show(block, sys.stderr)
    else:
        parts, others = parts_of_blocks(result.content)
        for block in result.content if args.output is None else others:
            show(block, sys.stdout)
        if args.output is not None:
            save(parts, args.output, force=args.force)
    return FAILED if result.is_error else OK


def _give_json(value: JSONObject, args: argparse.Namespace) -> None:
    """Print JSON, or write it to a file."""
    if args.output is None:
        print_json(value)
        return
    part = OutputPart(f"{json_of(value)}\n".encode(), "application/json")
    save([part], args.output, force=args.force)


async def _call(args: argparse.Namespace, offers: _Offers) -> ToolResult:
    # Only arguments of the form `name=value` need the schema.
    tool = (await offers.fetch()).get(args.tool) if args.arguments else None
    schema = {} if tool is None else tool.input_schema
    arguments = read_arguments(args.arguments, args.args, schema)
    return await offers.client.call_tool(args.tool, arguments, progress=offers.report)


def read_resource(args: argparse.Namespace) -> int:
    """Print a resource, readable on a terminal, elsewhere byte for byte; or write it to files."""
    check_output(args.output, force=args.force)
    uri = args.uri
    result = _use_named(args, "resources", uri, lambda offers: offers.client.read_resource(uri))
    if args.json:
        _give_json(result.to_wire(), args)
    elif args.output is not None:
        save(parts_of_contents(result.contents), args.output, force=args.force)
    else:
        for contents in result.contents:
            _show_contents(contents)
    return OK


def _show_contents(contents: ResourceContents) -> None:
    text, blob = contents.text, contents.blob
    if sys.stdout.isatty():
        kind = contents.mime_type or "no known type"
        if text is None:
            say(f"({len(blob or b'')} bytes of {kind}; --output FILE writes them)")
        else:
            print_text(text, sys.stdout)
        return
    # Bytes go to the buffer below, and would overtake text that waits in the layer above.
    sys.stdout.flush()
    sys.stdout.buffer.write(blob or b"" if text is None else text.encode("utf-8", "replace"))


def get_prompt(args: argparse.Namespace) -> int:
    """Print the messages of a prompt."""
    name, texts = args.name, read_texts(args.arguments)
    result = _use_named(args, "prompts", name, lambda offers: offers.client.get_prompt(name, texts))
    if args.json:
        print_json(result.to_wire())
    else:
        for message in result.messages:
            say(f"{message.role}:")
            show(message.content, sys.stdout)
    return OK


def complete(args: argparse.Namespace) -> int:
    """Print the completions of an argument, one on each line."""
    # The parser takes any number of them, so that options may stand before the prefix.
    if len(args.arguments) > 1:
        raise CommandError(f"give one prefix, not {' '.join(args.arguments)}", USAGE)
    kind = "templates" if "{" in args.ref or "://" in args.ref else "prompts"
    found = _use_named(args, kind, args.ref, partial(_complete, args, kind))
    if args.json:
        print_json(found.to_wire()["completion"])
        return OK
    for value in found.values:
        say(value)
    if found.has_more:
        many = "" if found.total is None else f", {found.total} in all"
        note(f"there are more{many}")
    return OK


async def _complete(args: argparse.Namespace, kind: str, offers: _Offers) -> Completion:
    ref = Reference.prompt(args.ref) if kind == "prompts" else Reference.resource(args.ref)
    prefix = "".join(args.arguments)
    context = read_texts(args.context) or None
    try:
        return await offers.client.complete(ref, args.argument, prefix, context)
    except McpError as error:
        if error.code == METHOD_NOT_FOUND:
            raise CommandError("the server completes nothing") from error
        raise
