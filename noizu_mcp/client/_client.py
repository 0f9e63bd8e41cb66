"""`Client`: typed calls to one server."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import overload

import trio

from .._errors import ConnectionClosed, ProtocolError
from .._schema_engine import EngineName
from .._value import JSONObject
from ..engine import single_failure
from ..protocol import CHANGES
from ..types import (
    SKILLS,
    Completion,
    Implementation,
    LogLevel,
    Page,
    PromptDefinition,
    PromptResult,
    ReadResult,
    Reference,
    ResourceContents,
    ResourceDefinition,
    ResourceTemplateDefinition,
    Root,
    ServerCapabilities,
    SkillDefinition,
    ToolDefinition,
    ToolResult,
)
from ._answers import answer_rounds, read_roots
from ._cache import CACHE_SIZE, READ, CacheKey, ResponseCache
from ._calls import Strictness, ToolCalls
from ._list_reader import (
    PROMPTS,
    RESOURCES,
    SKILL_LIST,
    TEMPLATES,
    TOOLS,
    Definition,
    ListKind,
    ListReader,
    note_headers,
)
from ._listening import listen
from ._session import ClientSession, Progress
from ._views import LiveList, watch_server

#: The result of a list method: everything, or the page that was asked for.
ListResult = list[Definition] | Page[Definition]


class Client:
    """A connection to one server; made by `connect`.

    Attributes:
        server_info: The name and version of the server.
        capabilities: The capabilities of the server.
        instructions: Its instructions for a model, or None.
        timeout: The default timeout of a request in seconds.
    """

    def __init__(
        self,
        session: ClientSession,
        timeout: float,
        *,
        strictness: Strictness = "warn",
        schema_engine: EngineName | None = None,
        cache: bool = True,
    ) -> None:
        self.server_info = Implementation("unknown", "")
        self.capabilities = ServerCapabilities()
        self.instructions: str | None = None
        self.timeout = timeout
        self._session = session
        self._cache = ResponseCache(session, CACHE_SIZE if cache else 0)

        self._calls = ToolCalls(session, self.request, self._read_tools, strictness, schema_engine)
        self._lists = ListReader(self.request, session.limits, self._cache, self._calls.learn)
        session.observers += (self._cache.note, self._calls.note)

    async def _read_tools(self) -> None:
        await self._lists.all(TOOLS, anew=True)

    @property
    def protocol_version(self) -> str:
        """The revision in use."""
        return self._session.peer.revision.name

    async def request(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        progress: Callable[[Progress], object] | None = None,
        extensions: Sequence[str] = (),
    ) -> JSONObject:
        """Send any request. The answer is neither checked nor cached.

        Args:
            method: The method.
            params: Its params; `_meta` of the revision is added.
            timeout: Seconds; the client's timeout by default. Progress restarts it.
            progress: Called with each progress notification.
            extensions: Ids of extensions that only this request declares (2026-07-28).

        Returns:
            The decoded result.

        Raises:
            McpError: The server answered with an error.
            RequestTimeout: The server did not answer in time. The request has been cancelled.
            ConnectionClosed: The connection ended first, or the session ended and was not renewed.
        """
        session = self._session
        result = await session.call(
            method,
            params,
            patience=self.timeout if timeout is None else timeout,
            progress=progress,
            extensions=extensions,
        )
        mirrored = session.mirrored
        if method == "tools/list" and mirrored is not None and session.peer.revision.stateless:
            return note_headers(result, mirrored)
        return dict(result)

    async def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Send any notification, and wait until the connection has room for more."""
        self._session.notify(method, params)
        await self._session.loop.outbox.room()

    @overload
    async def list_tools(self, *, page: None = None) -> list[ToolDefinition]: ...
    @overload
    async def list_tools(self, *, page: str) -> Page[ToolDefinition]: ...
    async def list_tools(self, *, page: str | None = None) -> ListResult[ToolDefinition]:
        """List the tools of the server.

        Args:
            page: The page to read: the first one if empty, else the page after the one with this
                `next_cursor`. None to read all pages.

        Returns:
            All tools, in a list; or a `Page` of them.

        Raises:
            McpError: The page is unknown (-32602).
            ProtocolError: A cursor was repeated, a definition is malformed, or a limit is exceeded.
        """
        return await self._list(TOOLS, page)

    @overload
    async def list_resources(self, *, page: None = None) -> list[ResourceDefinition]: ...
    @overload
    async def list_resources(self, *, page: str) -> Page[ResourceDefinition]: ...
    async def list_resources(self, *, page: str | None = None) -> ListResult[ResourceDefinition]:
        """List the resources of the server; see `list_tools`."""
        return await self._list(RESOURCES, page)

    @overload
    async def list_resource_templates(
        self, *, page: None = None
    ) -> list[ResourceTemplateDefinition]: ...
    @overload
    async def list_resource_templates(self, *, page: str) -> Page[ResourceTemplateDefinition]: ...
    async def list_resource_templates(
        self, *, page: str | None = None
    ) -> ListResult[ResourceTemplateDefinition]:
        """List the resource templates of the server; see `list_tools`."""
        return await self._list(TEMPLATES, page)

    @overload
    async def list_prompts(self, *, page: None = None) -> list[PromptDefinition]: ...
    @overload
    async def list_prompts(self, *, page: str) -> Page[PromptDefinition]: ...
    async def list_prompts(self, *, page: str | None = None) -> ListResult[PromptDefinition]:
        """List the prompts of the server; see `list_tools`."""
        return await self._list(PROMPTS, page)

    async def _list(self, kind: ListKind[Definition], page: str | None) -> ListResult[Definition]:
        if page is None:
            return await self._lists.all(kind)
        return await self._lists.page(kind, page)

    @property
    def tools(self) -> LiveList[ToolDefinition]:
        """The tools, as a list that follows changes: `async with client.tools as tools`."""
        return self._live(TOOLS)

    @property
    def prompts(self) -> LiveList[PromptDefinition]:
        """The prompts, as a list that follows changes; see `tools`."""
        return self._live(PROMPTS)

    @property
    def resources(self) -> LiveList[ResourceDefinition]:
        """The resources, as a list that follows changes; see `tools`."""
        return self._live(RESOURCES)

    @property
    def resource_templates(self) -> LiveList[ResourceTemplateDefinition]:
        """The resource templates, as a list that follows changes; see `tools`."""
        return self._live(TEMPLATES)

    def _live(self, kind: ListKind[Definition]) -> LiveList[Definition]:
        is_told = self.capabilities.has(f"{kind.change}.listChanged")
        read = partial(self._lists.all, kind, anew=True)
        return LiveList(kind, read, partial(watch_server, self._session, kind, is_told=is_told))

    async def read_resource(self, uri: str, *, timeout: float | None = None) -> ReadResult:
        """Read a resource. Its contents are cached as long as the server allows (2026-07-28).

        Args:
            uri: Its URI.
            timeout: Seconds; the client's timeout by default.

        Raises:
            McpError: The resource is unknown (-32602 on 2026-07-28, -32002 before).
        """

        async def send_round(params: JSONObject) -> JSONObject:
            if params.keys() != {"uri"}:
                # A result that depends on answers must not be cached (2026-07-28
                # `server/utilities/caching`): this drops it before it arrives.
                self._cache.drop(READ, lambda kept: kept == uri)
            return await self.request(READ, params, timeout=timeout)

        answerer = self._session.answerer
        send = partial(answer_rounds, send_round, {"uri": uri}, answerer)
        return await self._cache.answer(CacheKey(READ, uri), send, ReadResult.from_wire)

    async def list_skills(self) -> list[SkillDefinition]:
        """List the skills of the server (2026-07-28). Reads all pages, but no files.

        Returns:
            Their entries; empty if the server does not declare the extension.

        Raises:
            ProtocolError: A cursor was repeated, or an entry is malformed.
        """
        if not self.capabilities.has(f"extensions.{SKILLS}"):
            return []
        return await self._lists.all(SKILL_LIST)

    async def get_skill(self, uri: str) -> SkillDefinition:
        """Get the current entry of a skill, even if the server does not list it.

        Args:
            uri: The URI of its `SKILL.md`.

        Raises:
            McpError: The skill is unknown (-32602).
            ProtocolError: The server does not declare the extension, or the entry is malformed.
        """
        from ._skills import read_entry  # loaded on first use

        if not self.capabilities.has(f"extensions.{SKILLS}"):
            raise ProtocolError("the server has no skills: it does not declare the extension")
        return read_entry(uri, await self.request("skills/get", {"uri": uri}))

    async def read_skill(
        self, skill: SkillDefinition, path: str = "SKILL.md", *, timeout: float | None = None
    ) -> ResourceContents:
        """Read a file of a skill, and verify it against the entry.

        The file contains instructions from the server to a model: show its origin, and ask the user
        before anything in it is run (SEP-2640, "Security Considerations").

        Args:
            skill: Its entry, of this server.
            path: The path of the file in the folder of the skill.
            timeout: Seconds; the client's timeout by default.

        Returns:
            The contents.

        Raises:
            SkillError: The entry is not valid, or does not list the file, or the size, digest or
                frontmatter of the file differs from the entry.
            McpError: The server does not have the file (-32602).
        """
        from ._skills import locate_file, verify_file

        uri = locate_file(skill, path)
        # Always sent: a cached answer may be older than the entry.
        send = partial(self.request, "resources/read", timeout=timeout)
        result = await answer_rounds(send, {"uri": uri}, self._session.answerer)
        return verify_file(skill, uri, ReadResult.from_wire(result))

    async def subscribe(self, uri: str) -> None:
        """Subscribe to updates of a resource, up to 2025-11-25. On 2026-07-28 use `listen`."""
        await self.request("resources/subscribe", {"uri": uri})
        self._session.watched[uri] = None

    async def unsubscribe(self, uri: str) -> None:
        """End a subscription, up to 2025-11-25."""
        try:
            # Removed even if the server refuses: a renewed session must not subscribe again.
            await self.request("resources/unsubscribe", {"uri": uri})
        finally:
            self._session.watched.pop(uri, None)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> PromptResult:
        """Get a prompt.

        Args:
            name: Its name.
            arguments: Its arguments, texts.
            timeout: Seconds; the client's timeout by default.

        Raises:
            McpError: The prompt is unknown, or an argument is missing (-32602).
        """
        params = {"name": name, "arguments": dict(arguments or {})}
        send = partial(self.request, "prompts/get", timeout=timeout)
        result = await answer_rounds(send, params, self._session.answerer)
        return PromptResult.from_wire(result)

    async def complete(
        self,
        ref: Reference | Mapping[str, object],
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """Complete an argument of a prompt or a variable of a template.

        Args:
            ref: The prompt or resource template.
            argument: The name of the argument or variable.
            value: The text typed so far.
            context: Values of other arguments, by name (2025-06-18 and later).

        Raises:
            McpError: The prompt, template or argument is unknown (-32602).
        """
        params: JSONObject = {
            "ref": dict(ref) if isinstance(ref, Mapping) else ref.to_wire(),
            "argument": {"name": argument, "value": value},
        }
        if context is not None:
            params["context"] = {"arguments": dict(context)}
        return Completion.from_wire(await self.request("completion/complete", params))

    async def set_roots(self, roots: Sequence[Root | str | Mapping[str, object]]) -> None:
        """Change the roots of the client, and notify a server of up to 2025-11-25.

        Args:
            roots: Roots, `file://` URIs, or mappings in wire form.

        Raises:
            RuntimeError: The client has advertised no roots, or its handler lists them.
            TypeError: An element is not a root.
            ValueError: A root has no `file://` URI.
        """
        listed = read_roots(roots, "roots")
        answerer = self._session.answerer
        if answerer.roots is None:
            raise RuntimeError(
                "set_roots changes the roots of connect(roots=…); a handler that lists them sends "
                'client.notify("notifications/roots/list_changed")'
            )
        # Set before the notification: the server may request the list at once.
        answerer.roots = listed
        if not self._session.peer.revision.stateless:
            await self.notify("notifications/roots/list_changed")

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> ToolResult:
        """Call a tool.

        Args:
            name: Its name.
            arguments: Its arguments.
            timeout: Seconds; the client's timeout by default. Progress restarts it.
            progress: Called with each `Progress`.

        Returns:
            The result. A tool that fails returns a result with `is_error`; nothing is raised.

        Raises:
            McpError: The tool is unknown, or the server answered with a protocol error.
            TaskStarted: The call continues as a task; only if `connect` was given the tasks
                extension among the `capabilities`.
            RequestTimeout: The server did not answer in time. The request has been cancelled.
            ProtocolError: The result violates the output schema of the tool, with
                `connect(strictness="strict")`; the text has a line for each violation.
            ConnectionClosed: The connection ended first.
        """
        params = {"name": name, "arguments": dict(arguments or {})}
        return await self._calls.call(params, timeout=timeout, progress=progress)

    async def ping(self) -> None:
        """Check that the server answers; by `server/discover` on 2026-07-28, which has no ping."""
        stateless = self._session.peer.revision.stateless
        await self.request("server/discover" if stateless else "ping")

    async def set_log_level(self, level: LogLevel) -> None:
        """Request log messages of a level and above; on 2026-07-28 sent with each request."""
        peer = self._session.peer
        if not peer.revision.stateless:
            await self.request("logging/setLevel", {"level": level})
        peer.log_level = level

    async def aclose(self) -> None:
        """End the connection. Any task may call it, and more than once.

        Running and later requests raise `ConnectionClosed` in all tasks. The block of `connect`
        continues until it is left; only then does it end a child process that has not ended by
        itself.
        """
        await self._session.leave()

    async def wait_closed(self) -> None:
        """Wait until the connection has ended: by `aclose`, by the server, or with its block."""
        await self._session.wait_ended()

    @asynccontextmanager
    async def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Sequence[str] = (),
    ) -> AsyncIterator[Mapping[str, object]]:
        """Receive notifications of changes while the block runs (`subscriptions/listen`).

        The notifications are passed to the handler. If the server ends the request, or its stream
        breaks, it is sent again; the client then generates a notification of each kind, since
        changes in between were lost. Servers of earlier revisions send list changes without a
        request: nothing is sent to them, and their capabilities say which changes they send.

        Args:
            tools: True for changes of the list of tools.
            prompts: True for changes of the list of prompts.
            resources: True for changes of the list of resources.
            uris: URIs of resources to watch for updates.

        Yields:
            The kinds of notification that the server agreed to send.

        Raises:
            McpError: The server refused.
            ConnectionClosed: The connection ended.
            ProtocolError: The server ended the request without acknowledging it.
        """
        lists = (("tools", tools), ("prompts", prompts), ("resources", resources))
        kinds = [kind for kind, is_wanted in lists if is_wanted]
        session = self._session
        if not session.peer.revision.stateless:
            # Nothing to send: `listChanged` says that the server sends notifications by itself.
            has = self.capabilities.has
            yield {CHANGES[kind][1]: True for kind in kinds if has(f"{kind}.listChanged")}
            return
        with single_failure(ConnectionClosed):
            # Leaving the block cancels the request, which ends the subscription at the server.
            async with trio.open_nursery() as nursery:
                yield await nursery.start(listen, session, kinds, uris)
                nursery.cancel_scope.cancel()
