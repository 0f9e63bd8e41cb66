"""`Server`: what is offered and how, as a class; it holds no connection."""

import inspect
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final, Self

import trio

from .._errors import DefinitionError, Problem
from ..components import Context, ToolSpec, check_registrations, expand
from ..components._declare import ComponentMeta, Declaration
from ..jsonrpc import render
from ..protocol import CHANGES
from ..types import META_SERVER_INFO, Implementation
from ._bus import Bus
from ._calls import call_registered
from ._options import SERVER_OPTIONS, STATEMENT_ONLY, ServerOptions
from ._registry import Registry, ToolSet
from ._seal import Sealer

#: Methods that a server may override; what is overridden counts as offered.
OVERRIDABLE: Final = ("init", "list_tools", "call_tool")


class Server(metaclass=ComponentMeta):
    """An MCP server: subclass it, say what it offers, and serve it.

    Options, as class keywords or attributes: `name` and `version` (both needed), `title`,
    `description`, `instructions`, `website_url`, `icons`, `tool_timeout` (seconds, 30 by default,
    None for no limit), `page_size`, `limits` (`Limits`), `cache` (`Cache`, or a mapping of kinds to
    it), `abstract`. What it offers: `tools`, a list of tool classes, instances, and
    `tool(…)` registrations; on an instance `tools` is the running set, with `add`, `remove` and
    `replace`.

    Attributes:
        options: The options, checked.
        registry: What is registered.
        tools: The running set of tools.
        bus: Where changes are reported.
        info: `Implementation` as it goes over the wire.
        result_tail: What ends every result of 2026-07-28: who answered, as JSON.
        threads: Bounds how many sync handlers run at once.
        sealer: Seals what travels through clients.

    Raises:
        DefinitionError: When the class statement runs: everything that is wrong with it.
    """

    __mcp_kind__ = "servers"
    __mcp_table__ = SERVER_OPTIONS

    options: ClassVar[ServerOptions]
    # A list of registrations in a class body, a `ToolSet` on an instance.
    tools: Any = ()

    registry: Registry
    bus: Bus
    info: dict[str, Any]
    result_tail: bytes
    threads: trio.CapacityLimiter
    sealer: Sealer
    _slots: dict[tuple[str, int], trio.CapacityLimiter]
    _overridden: ClassVar[frozenset[str]] = frozenset()

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make the server ready here, so that a subclass may have an `__init__` of its own."""
        if not hasattr(cls, "options"):
            text = "is a base class; subclass it with name= and version="
            raise DefinitionError([Problem(cls.__name__, text)])
        server = super().__new__(cls)
        options = cls.options
        server.bus = Bus()
        server.registry = Registry(expand(cls.tools), options.page_size)
        server.tools = ToolSet(server.registry, lambda: server.notify_changed("tools"))
        server.info = _implementation(options).to_wire()
        server.result_tail = b',"_meta":%b}' % render({META_SERVER_INFO: server.info})
        server.threads = trio.CapacityLimiter(options.limits.threads)
        server.sealer = Sealer(options.state_keys, options.state_ttl)
        server._slots = {}
        return server

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.options.name} {self.options.version}>"

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        if not declaration.abstract:
            _check_identity(declaration)
        _check_overrides(declaration, Server)
        _check_context_manager(declaration, "lifespan")
        for problem in check_registrations(_registrations(declaration)):
            declaration.problem(problem.where, problem.text, member="tools")
        if declaration.problems or declaration.abstract:
            return
        kept = {k: v for k, v in declaration.options.items() if k not in STATEMENT_ONLY}
        cls.options = ServerOptions(**kept)
        cls._overridden = frozenset(
            name for name in OVERRIDABLE if getattr(cls, name) is not getattr(Server, name)
        )

    # What a subclass may override

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[Any]:
        """Set up what the server needs, for as long as it is served; yields `ctx.state`.

        Entered once for each `run` or `serve`, and for each connection in memory.
        """
        yield None

    async def init(self, ctx: Context) -> None:
        """Set a session up, once its handshake is complete; requests wait for it.

        Sessions exist up to 2025-11-25. `ctx.put_session` stores what later requests need. An
        exception ends the session.
        """

    async def list_tools(self, cursor: str | None, ctx: Context) -> Any:
        """List the tools that the caller may see.

        Args:
            cursor: Where the page begins, as an earlier page said; None for the first.
            ctx: The request.

        Returns:
            A `Page`, or a list without further pages, of tool specs, `ToolDefinition`s or
            mappings in the shape of the wire.
        """
        return self.registry.list_tools(cursor)

    async def call_tool(self, name: str, args: dict[str, Any], ctx: Context) -> Any:
        """Call a tool; the default calls a registered one.

        Args:
            name: The name of the tool.
            args: The arguments as sent, not validated.
            ctx: The request.

        Returns:
            What a tool may return.

        Raises:
            McpError: There is no such tool (-32602).
        """
        return await call_registered(self, name, args, ctx)

    # Serving it

    def run(self) -> None:
        """Serve on stdin and stdout until the client ends it, or SIGINT or SIGTERM comes."""
        from .._run import run_stdio

        run_stdio(self)

    # The running server

    def notify_changed(self, kind: str) -> None:
        """Tell every client that asked that a list changed; from any task or thread.

        One call reaches sessions with a handshake and `subscriptions/listen` streams alike. A
        single change goes out at once; what follows shortly after is merged into one more notice.

        Args:
            kind: `tools`, `prompts` or `resources`.

        Raises:
            ValueError: There is no such list.
        """
        if kind not in CHANGES:
            raise ValueError(f"no list {kind!r}; there are: {', '.join(CHANGES)}")
        self.bus.publish(kind)

    def capabilities(self) -> dict[str, Any]:
        """Say what the server offers now: what is registered or overridden."""
        capabilities: dict[str, Any] = {"logging": {}}
        if self.offers_tools:
            capabilities["tools"] = {"listChanged": True}
        return capabilities

    @property
    def offers_tools(self) -> bool:
        """True if a tool is registered, hidden ones included, or computed by an override."""
        return bool(self.registry.tools) or self.overrides("list_tools", "call_tool")

    def slots(self, spec: ToolSpec) -> trio.CapacityLimiter:
        """Return what bounds the concurrent calls of a tool that has `max_concurrency`."""
        count = spec.max_concurrency or 1
        return self._slots.setdefault((spec.name, count), trio.CapacityLimiter(count))

    def overrides(self, *methods: str) -> bool:
        """Tell whether the class overrides one of the methods that do something by default."""
        return not self._overridden.isdisjoint(methods)


def _check_identity(declaration: Declaration) -> None:
    """A server that clients see needs a name and a version (`basic/lifecycle`, serverInfo)."""
    name = declaration.cls.__name__
    told = {problem.where for problem in declaration.problems}
    for option in ("name", "version"):
        if option not in declaration.options and f"{name}.{option}" not in told:
            text = f'is missing; write class {name}(Server, {option}="…", …)'
            declaration.problem(option, text)


def _check_overrides(declaration: Declaration, base: type) -> None:
    """An override takes what the engine passes; found here, not in front of a client."""
    for name in OVERRIDABLE:
        method, original = getattr(declaration.cls, name), getattr(base, name)
        wanted = list(inspect.signature(original).parameters)
        given = _positional(method)
        if not inspect.iscoroutinefunction(method) or given != len(wanted):
            text = f"must be `async def {name}({', '.join(wanted)})`"
            declaration.problem(name, text, member=name)


def _check_context_manager(declaration: Declaration, name: str) -> None:
    """What is no context manager would fail when the server is served, not before."""
    method = getattr(declaration.cls, name)
    bare = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
    if bare or _positional(method) != 1:
        text = f"must be `@asynccontextmanager async def {name}(self)`, and yield once"
        declaration.problem(name, text, member=name)


def _positional(method: Any) -> int | None:
    """Count the positional parameters; None if it cannot be called with positions alone."""
    if not inspect.isfunction(method):
        return None
    parameters = list(inspect.signature(method).parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind not in kinds and p.default is p.empty for p in parameters):
        return None
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)


def _registrations(declaration: Declaration) -> Sequence[Any]:
    tools = declaration.cls.tools  # type: ignore[attr-defined]
    if isinstance(tools, list | tuple):
        return tools
    declaration.problem("tools", f"must be a list of tools, got {tools!r}", member="tools")
    return ()


def _implementation(options: ServerOptions) -> Implementation:
    return Implementation(
        options.name,
        options.version,
        title=options.title,
        description=options.description,
        website_url=options.website_url,
        icons=options.icons,
    )
