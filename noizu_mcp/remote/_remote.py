"""`Remote`: another server, on any transport and of either era, as a part of this one."""

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

import attrs
import trio

from .._errors import (
    ConnectionClosed,
    McpError,
    ProtocolError,
    ResourceNotFound,
    ToolError,
)
from .._log import SHOWN, ThrottledLog
from .._value import JSONObject
from ..client import TIMEOUT, Target, bound_name, check_options, read_kept, read_several
from ..components import (
    Bound,
    Changes,
    Context,
    Introduction,
    Provider,
    Renaming,
    SkillProvider,
    bind_definition,
    read_requires,
    read_seconds,
)
from ..jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND
from ..schema import header_faults
from ..server import ServerContext
from ..transports import Http, Stdio
from ..types import (
    SKILLS,
    TASKS,
    Completion,
    InputRequired,
    PromptDefinition,
    PromptResult,
    ReadResult,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolResult,
)
from ._answers import AnswerType, read_answer
from ._shared_connection import Unavailable
from ._skills import find_skill, list_skills, read_directory
from ._tasks import call_with_tasks
from ._upstream import AnyDefinition, Upstream

if TYPE_CHECKING:
    from ..types import RequireScopes

#: Seconds that the lists of a server may take when a client lists something: from its first
#: connection on they are there.
LIST_TIMEOUT: Final = 10.0
#: Seconds from the beginning of this server for which clients that connect wait until a server is
#: connected. Many clients give up, or take the server for an older one, after five.
INTRODUCTION_TIMEOUT: Final = 3.0
#: Connections to a server that asks questions up to 2025-11-25, one for each caller at a time.
CONNECTIONS: Final = 8
#: Characters of a name of a server that a prefix does not have, and the length of a prefix.
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
_PREFIX_LENGTH: Final = 64
#: Options of `connect` that a `Remote` sets itself.
_OWN: Final = frozenset({"target", "handler", "timeout", "roots", "capabilities"})
#: Members of a result that are for one connection (2026-07-28 `server/utilities/caching`).
_CACHING: Final = frozenset({"ttlMs", "cacheScope"})


#: The class of the definitions in one list.
ListedType = TypeVar("ListedType", bound=AnyDefinition)


class Remote(Provider, SkillProvider, shared=True, timeout=LIST_TIMEOUT):
    """Another server as a part of this one: its tools, prompts, resources, templates and skills.

    Everything of the protocol passes in both directions, between clients and servers of either
    era: results and definitions as they are, progress, log messages, cancellation, completion,
    subscriptions, notices of changed lists, tasks, instructions, and the questions of the server
    (elicitation, sampling, roots) to the caller whose request it works on.

    The connection is opened when this server begins to serve, and again with growing pauses
    whenever it ends. Meanwhile its components are not listed, and a call ends in one clear error.
    A call that was in flight is not sent again. All callers share the connection, so a server
    that keeps state for each session is not for several users. The credentials of callers are never
    passed on: the server sees the credentials of `auth`.

    Args:
        target: The server, in any form that `connect` takes.
        prefix: Put before the names of tools and prompts, `github_search`, and before URIs,
            `github+repo://…`; both ways. Empty for none.
        label: The name of the server in errors and logs; by default the prefix, or the target.
        call_timeout: Seconds that a call may take; progress starts them again, and they stand
            still while a caller is asked something.
        list_timeout: Seconds that a client waits for the first connection when it lists.
        connections: The number of connections to a server that asks questions up to 2025-11-25:
            each caller gets one to itself while it has requests in flight. All others have one.
        requires: Scopes that a caller must hold to use anything of the server: `RequireScopes`, or
            names.
        **options: Options of `connect`, such as `auth`, `version`, `limits` and `telemetry`.

    Raises:
        TypeError: An option is unknown.
        ValueError: The prefix has characters that names of tools must not have, `requires` names
            no scopes, or a number is not above 0.
    """

    def __init__(
        self,
        target: Target,
        *,
        prefix: str = "",
        label: str | None = None,
        call_timeout: float = TIMEOUT,
        list_timeout: float = LIST_TIMEOUT,
        connections: int = CONNECTIONS,
        requires: "RequireScopes | str | Sequence[str] | None" = None,
        **options: object,
    ) -> None:
        self._names = Renaming(prefix)
        check_options("Remote", options, _OWN)
        for name, value in (("call_timeout", call_timeout), ("list_timeout", list_timeout)):
            try:
                read_seconds(value)
            except ValueError as error:
                raise ValueError(f"{name} {error}") from None
        if type(connections) is not int or connections < 1:
            raise ValueError(f"connections must be a whole number above 0, got {connections!r}")
        self.timeout = list_timeout
        self._connections = connections
        self._requires = read_requires(requires)
        # Without a timeout: the connection has timeouts, which progress extends.
        self._bind: Callable[..., Bound] = partial(
            bind_definition, timeout=None, requires=self._requires
        )
        self._options = {"strictness": "off", **options, "timeout": call_timeout}
        self._target = read_kept(target, label or prefix or "the target")
        self._label = label or prefix or _label_of(self._target)
        # One for each served server that has this provider: it ends with that server.
        self._upstreams: dict[object, Upstream] = {}
        self._made: dict[str, tuple[Sequence[object], list[Bound]]] = {}
        self._log = ThrottledLog(shown=SHOWN)
        self._anything = self._bind_anything()

    @classmethod
    def from_config(
        cls,
        config: str | os.PathLike[str] | Mapping[str, object],
        *,
        per_server: Mapping[str, Mapping[str, object]] | None = None,
        **options: object,
    ) -> "list[Remote]":
        """Make a `Remote` for each server of a file of the `mcpServers` form.

        Their prefixes are the names of the servers. A malformed entry is logged when it is
        served, and does not affect the others.

        Args:
            config: The path of the file, or its content as a mapping.
            per_server: Options for some servers, by name; `prefix` among them.
            **options: Options for all of them, except `auth`, which would send the credentials of
                one server to all.

        Raises:
            TransportError: The file cannot be read, or names no servers.
            TypeError: An option is unknown, or `auth` is given for all.
            ValueError: `per_server` names no server, or a prefix is not valid.
        """
        servers = read_several(config, options, per_server)
        make: Callable[..., Remote] = cls
        return [
            make(entry, **{"prefix": _prefix_of(name), "label": name, **given})
            for name, (entry, given) in servers.items()
        ]

    @property
    def name(self) -> str:
        """The name of the provider in logs and metrics."""
        return f"Remote {self._label}"

    def namespace(self, key: str) -> str:
        """Return the prefix of the names or URIs; see `BaseProvider`."""
        return self._names.start(key)

    def unknown(self, name: str) -> str | None:
        """Word the error for a name of this server while it is not connected."""
        upstream = next(iter(self._upstreams.values()), None)
        mine = self._names.prefix and self._names.restore("name", name) is not None
        if upstream is None or not mine or upstream.connection.client is not None:
            return None
        return str(upstream.connection.unavailable())

    async def watch(self, changed: Changes) -> None:
        """Keep the connection for as long as this server is served; see `BaseProvider`."""

        def updated(uri: str) -> None:
            changed.resource_updated(self._names.rename_uri(uri))

        options = self._options
        upstream = Upstream(
            self._label,
            self._target,
            options,
            most=self._connections,
            patience=self.timeout,
            changed=changed,
            updated=updated,
        )
        self._upstreams[changed.server] = upstream
        changed()
        try:
            await upstream.run()
            # The connection has failed for good; requests report it.
            await trio.sleep_forever()
        finally:
            # By its value: the server may be served elsewhere by now, with another one.
            left = self._upstreams.items()
            self._upstreams = {key: each for key, each in left if each is not upstream}

    # Lists

    async def tools(self, ctx: Context) -> Iterable[Bound]:
        """List the tools; see `ToolProvider`."""
        return await self._list("tools", self._bind_tool, ctx)

    async def prompts(self, ctx: Context) -> Iterable[Bound]:
        """List the prompts; see `PromptProvider`."""
        return await self._list("prompts", self._bind_prompt, ctx)

    async def resources(self, ctx: Context) -> Iterable[Bound]:
        """List the resources; see `ResourceProvider`."""
        return await self._list("resources", self._bind_resource, ctx)

    async def templates(self, ctx: Context) -> Iterable[Bound]:
        """List the templates, and a hidden one for URIs that are not listed."""
        found = await self._list("resource_templates", self._bind_template, ctx)
        return found if self._anything is None else [*found, self._anything]

    async def _list(
        self, kind: str, bind: Callable[[Upstream, ListedType], Bound], ctx: Context
    ) -> list[Bound]:
        upstream = self._upstream_of(ctx)
        listed = cast(Sequence[ListedType], await upstream.list(kind))
        # The same objects while the list is the same: they are not bound again.
        before = self._made.get(kind)
        if before is None or before[0] is not listed:
            bound = [self._try(bind, upstream, each) for each in listed]
            before = self._made[kind] = (listed, [each for each in bound if each is not None])
        return before[1]

    def _try(
        self,
        bind: Callable[[Upstream, ListedType], Bound],
        upstream: Upstream,
        definition: ListedType,
    ) -> Bound | None:
        """Bind a definition; None if clients must not get it."""
        try:
            return bind(upstream, definition)
        except ValueError as error:
            # The server chooses the names, and their number.
            self._log.warning("", "left out %.200r of %s: %s", definition.name, self._label, error)
            return None

    def _upstream_of(self, ctx: Context) -> Upstream:
        upstream = self._upstreams.get(ctx.server)
        if upstream is None:
            raise ConnectionClosed(f"{self._label} is not connected: the server is not served")
        return upstream

    def _name(self, name: str) -> str:
        return bound_name(self._names.rename("name", name)) if self._names.prefix else name

    # Components

    def _bind_tool(self, upstream: Upstream, definition: ToolDefinition) -> Bound:
        fault = next(header_faults(definition.input_schema), None)
        if fault is not None:
            raise ValueError(fault.text)
        # The experimental tasks of 2025-11-25 do not pass, so no tool may promise them.
        listed = attrs.evolve(definition, name=self._name(definition.name), execution=None)
        # On 2026-07-28 no definition tells which calls go on as tasks: any of them may.
        has_tasks = _has(upstream, f"extensions.{TASKS}")
        return self._bind(
            listed,
            partial(self._call_tool, definition.name, has_tasks),
            source=self._source(listed.name),
            task="optional" if has_tasks else None,
            starts_task=has_tasks,
        )

    def _bind_prompt(self, _: Upstream, definition: PromptDefinition) -> Bound:
        listed = attrs.evolve(definition, name=self._name(definition.name))
        return self._bind(
            listed,
            partial(self._get_prompt, definition.name),
            partial(self._complete, {"type": "ref/prompt", "name": definition.name}),
            source=self._source(listed.name),
            # A result without a description stays without: here it would get that of the list.
            description=None,
        )

    def _bind_resource(self, upstream: Upstream, definition: ResourceDefinition) -> Bound:
        listed = attrs.evolve(definition, uri=self._names.rename_uri(definition.uri))
        source, subscribable = self._source(listed.uri), _has(upstream, "resources.subscribe")
        return self._bind(listed, self._read, source=source, subscribable=subscribable)

    def _bind_template(self, upstream: Upstream, definition: ResourceTemplateDefinition) -> Bound:
        renamed = self._names.rename_uri(definition.uri_template)
        listed = attrs.evolve(definition, uri_template=renamed)
        return self._bind(
            listed,
            self._read_matched,
            partial(self._complete, {"type": "ref/resource", "uri": definition.uri_template}),
            source=self._source(listed.uri_template),
            subscribable=_has(upstream, "resources.subscribe"),
        )

    def _bind_anything(self) -> Bound | None:
        """Make a hidden template for URIs that the server has, and does not list."""
        if not self._names.prefix:
            return None  # the server cannot be told from others by its URIs
        template = self._names.rename_uri("{+uri}")
        definition = ResourceTemplateDefinition(template, "any resource")
        source = self._source(template)
        return self._bind(definition, self._read_matched, hidden=True, source=source)

    def _source(self, name: str) -> str:
        return f"{name!r} of {self._label}"

    # Requests

    async def _call_tool(
        self, name: str, has_tasks: bool, arguments: JSONObject, ctx: ServerContext
    ) -> ToolResult | InputRequired:
        params: JSONObject = {"name": name, "arguments": arguments}
        read = cast("Callable[[JSONObject], ToolResult]", ToolResult.from_wire)
        try:
            if has_tasks:
                send = partial(self._request, "tools/call", params, ctx)
                result = await call_with_tasks(send, self._upstream_of(ctx), ctx)
            else:
                result = await self._request("tools/call", params, ctx)
            return self._answer(result, read)
        except (ProtocolError, TypeError) as error:
            text = f"{self._label} gave a malformed task: {error}"
            raise McpError(INTERNAL_ERROR, text) from error
        except Unavailable as error:
            # A model reads the result of a tool, and can go on without it.
            raise ToolError(str(error)) from error

    async def _get_prompt(
        self, name: str, arguments: JSONObject, ctx: ServerContext
    ) -> PromptResult | InputRequired:
        params = {"name": name, "arguments": arguments}
        with_errors = self._with_errors(self._request("prompts/get", params, ctx))
        return self._answer(await with_errors, PromptResult.from_wire)

    async def _read_matched(
        self, uri: str, _: object, ctx: ServerContext
    ) -> ReadResult | InputRequired:
        return await self._read(uri, ctx)

    async def _read(self, uri: str, ctx: ServerContext) -> ReadResult | InputRequired:
        params = {"uri": uri.removeprefix(self.namespace("uri"))}
        try:
            result = await self._with_errors(self._request("resources/read", params, ctx))
        except McpError as error:
            # 2026-07-28 has no code of its own for it (`server/resources`, "Error Handling").
            unknown = error.code == INVALID_PARAMS and error.data == {"uri": params["uri"]}
            if unknown or error.code == RESOURCE_NOT_FOUND:
                raise ResourceNotFound(uri) from error
            raise
        # Hints for the caches of one connection: this server gives its own.
        result = {key: value for key, value in result.items() if key not in _CACHING}
        return self._answer(result, ReadResult.from_wire)

    async def _complete(
        self, ref: JSONObject, name: str, prefix: str, ctx: ServerContext
    ) -> Completion:
        params: JSONObject = {"ref": ref, "argument": {"name": name, "value": prefix}}
        if ctx.completion_arguments:
            params["context"] = {"arguments": dict(ctx.completion_arguments)}
        upstream = self._upstream_of(ctx)
        return Completion.from_wire(
            await self._with_errors(upstream.request("completion/complete", params, ctx))
        )

    async def _request(
        self, method: str, params: JSONObject, ctx: ServerContext, extensions: Sequence[str] = ()
    ) -> JSONObject:
        """Send a request that the server may answer with questions (2026-07-28)."""
        if ctx.input_responses:
            params["inputResponses"] = dict(ctx.input_responses)
        if ctx.request_state is not None:
            params["requestState"] = ctx.request_state
        return await self._upstream_of(ctx).request(method, params, ctx, extensions)

    async def _with_errors(self, work: Awaitable[AnswerType]) -> AnswerType:
        try:
            return await work
        except Unavailable as error:
            raise McpError(INTERNAL_ERROR, str(error)) from error

    def _answer(
        self, result: JSONObject, read: Callable[[JSONObject], AnswerType]
    ) -> AnswerType | InputRequired:
        return read_answer(self._label, result, read, self._names)

    # Introduction and skills

    async def introduce(self, ctx: Context) -> Introduction:
        """Return the instructions and extensions of the server, as far as it is connected.

        Clients wait for its first connection until `INTRODUCTION_TIMEOUT` seconds after this server
        began to serve, and for no other.
        """
        upstream = self._upstreams.get(ctx.server)
        client = None if upstream is None else await upstream.first_client(INTRODUCTION_TIMEOUT)
        if client is None:
            return Introduction()
        offered = client.capabilities.extensions or {}
        extensions: JSONObject = {
            id_: dict(offered[id_] or {}) for id_ in (SKILLS, TASKS) if id_ in offered
        }
        text = client.instructions
        return Introduction(text and self._names.head_instructions(self._label, text), extensions)

    async def skills(self, ctx: Context) -> Sequence[JSONObject]:
        """List the skills; see `SkillProvider`."""
        return await self._with_errors(list_skills(self._upstream_of(ctx), self._names))

    async def skill(self, uri: str, ctx: Context) -> JSONObject | None:
        """Return the entry of a skill, which the server is asked for; see `SkillProvider`."""
        return await self._find(find_skill, uri, ctx)

    async def directory(self, uri: str, cursor: object, ctx: Context) -> JSONObject | None:
        """Return a page of a directory; see `SkillProvider`."""
        return await self._find(partial(read_directory, cursor=cursor), uri, ctx)

    async def _find(
        self, find: Callable[..., Awaitable[JSONObject | None]], uri: str, ctx: Context
    ) -> JSONObject | None:
        own = self._names.restore("uri", uri)
        if own is None:
            return None
        found = await self._with_errors(find(self._upstream_of(ctx), self._names, own))
        if found is not None and self._requires is not None:
            ctx.require(self._requires)
        return found

    # Subscriptions

    async def subscribe(self, uri: str, ctx: Context) -> None:
        """Watch a resource of the server; see `ResourceProvider`."""
        try:
            await self._upstream_of(ctx).watch(uri.removeprefix(self.namespace("uri")))
        except Unavailable as error:
            raise McpError(INTERNAL_ERROR, str(error)) from error

    async def unsubscribe(self, uri: str, ctx: Context) -> None:
        """End a subscription; see `ResourceProvider`."""
        own = self._names.restore("uri", uri)
        upstream = self._upstreams.get(ctx.server)
        if upstream is not None and own is not None:
            # The client has unsubscribed, also if the server reports an error.
            with suppress(Unavailable, McpError):
                await upstream.unwatch(own)


def _prefix_of(server: str) -> str:
    """Return the prefix for the name of a server in a file, which may have any characters."""
    text = _UNFIT.sub("_", server)
    return (text if text[:1].isalpha() else f"x{text}")[:_PREFIX_LENGTH]


def _label_of(target: object) -> str:
    """Name a server without a prefix; arguments and queries may be secret, and are left out."""
    if isinstance(target, Http):
        return target.shown
    if isinstance(target, Stdio):
        return target.command
    options = getattr(target, "options", None)
    return type(target).__name__ if options is None else str(options.name)


def _has(upstream: Upstream, capability: str) -> bool:
    client = upstream.connection.client
    return client is not None and client.capabilities.has(capability)
