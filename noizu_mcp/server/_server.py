"""`Server`: tools, resources, prompts and options as a class; it holds no connection."""

import inspect
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from .._errors import DefinitionError, McpError
from .._foreign import METHODS
from .._source import calling_frame, problem_at
from .._value import JSONObject
from ..components import (
    ComponentKind,
    ComponentMeta,
    Context,
    Declaration,
    ResourceSpec,
    TemplateSpec,
    is_abstract,
    unfinished,
)
from ..engine import MOST_CRASHES, SHOWN, ThrottledLog
from ..events import Telemetry
from ..jsonrpc import INVALID_REQUEST, render
from ..protocol import CHANGES
from ..skills import expand_skills
from ..types import META_SERVER_INFO, Implementation
from .asking._seal import Sealer
from .calls._loops import bind_all, bind_methods, bind_policy, on_trio
from .calls._registered import (
    call_registered,
    complete_registered,
    get_registered,
    read_registered,
)
from .calls._unknown import not_found
from .changes._bus import Bus
from .policies._policy_set import PolicySet
from .registry._class_checks import ASYNC_MANAGER, OVERRIDABLE, check_statement, positional
from .registry._collection import RunningSet
from .registry._registry import Registry
from .registry._server_options import SERVER_OPTIONS, STATEMENT_ONLY, ServerOptions
from .threads._abandoned import AbandonedThreads
from .threads._fair_limiter import FairLimiter

if TYPE_CHECKING:
    from ..types import Reference
    from .handles._backing import LocalBacking
    from .policies._capability import CapabilityIssuer


#: The lists in the body of a server class.
_LISTS: Final = ("tools", "resources", "prompts", "providers", "skills", "telemetry", "policies")

#: The options that make the registrations.
_OF_STATEMENT: Final = ("page_size", "loop", "schema_engine", *STATEMENT_ONLY)
_IN_CLASS: Final = "write the list in the body of the class"
#: How to change a list of an instance.
_LATER: Final = {
    **dict.fromkeys(("tools", "resources", "prompts"), "use its add, remove and replace"),
    **dict.fromkeys(("providers", "telemetry"), "use its add and remove"),
    "policies": "use its replace",
}


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _is_override(name: str, value: object) -> bool:
    """Tell whether a method could override one of a server."""
    wanted = inspect.signature(getattr(Server, name)).parameters
    return inspect.iscoroutinefunction(value) and positional(value) == len(wanted)


def _is_lifespan(value: object) -> bool:
    """Tell whether a method could be meant to be the lifespan: `asynccontextmanager` made it."""
    return getattr(value, "__code__", None) is ASYNC_MANAGER


class Server(metaclass=ComponentMeta):
    """The features of a server; `noizu_mcp.Server` adds the methods that serve it.

    Users see one class, `noizu_mcp.Server`, which documents both.

    Attributes:
        options: The options, checked.
        registry: The registrations.
        tools: The running set of tools.
        resources: The running set of resources and templates.
        prompts: The running set of prompts.
        telemetry: The listeners to its requests.
        policies: The policies, which can be replaced.
        skills: The skills that were read.
        bus: The bus of changes.
        info: `Implementation` as it goes over the wire.
        result_tail: The end of a rendered result of 2026-07-28: `_meta` with serverInfo, as JSON.
        threads: The threads of sync handlers.
        task_threads: The threads of sync handlers in tasks.
        abandoned: The threads of sync handlers that still run after their calls ended.
        sealer: Seals the state that clients carry.
        crash_log: Logs failures of handlers and hooks, each at a limited rate per minute.
        providers: The running set of providers.

    Raises:
        DefinitionError: When the class statement runs: everything that is wrong with it.
    DefinitionError: Raised by the class statement. It lists every error in the class.
    """

    __mcp_kind__ = ComponentKind(
        "servers",
        options=SERVER_OPTIONS,
        members={
            **dict.fromkeys(_LISTS, _is_list),
            **{name: partial(_is_override, name) for name in OVERRIDABLE},
            "lifespan": _is_lifespan,
        },
    )

    options: ServerOptions
    # Lists of registrations in a class body, a `RunningSet` each on an instance.
    tools: Any = ()
    resources: Any = ()
    prompts: Any = ()
    telemetry: Any = ()  # listeners in a class body, a `Telemetry` on an instance
    policies: Any = ()  # policies in a class body, a `PolicySet` on an instance
    skills: Any = ()  # of folders in a class body
    # A list of providers in a class body, a running set on an instance. It has no value here: most
    # servers have no providers, so `__getattr__` makes an empty set on first use.
    providers: Any

    registry: Registry
    bus: Bus
    info: JSONObject
    result_tail: bytes
    threads: FairLimiter
    task_threads: FairLimiter
    abandoned: AbandonedThreads
    sealer: Sealer
    crash_log: ThrottledLog
    _overridden: ClassVar[frozenset[str]] = frozenset()  # of `OVERRIDABLE`
    _declared: ClassVar[frozenset[str]] = frozenset()  # of `CHANGES`, the lists of the class

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make the server usable here, so that a subclass may have an `__init__` of its own."""
        if is_abstract(cls) or not hasattr(cls, "options"):
            text = unfinished(cls) or (
                "is a base class; subclass it with name= and version=:"
                f' class App({cls.__name__}, name="…", version="…")'
            )
            raise DefinitionError([problem_at(cls.__name__, text, calling_frame())])
        if (args or kwargs) and cls.__init__ is object.__init__:
            text = (
                "takes no arguments; options stand in the class statement:"
                f' class {cls.__name__}(Server, name="…", version="…")'
            )
            raise DefinitionError([problem_at(f"{cls.__name__}(…)", text, calling_frame())])
        server = super().__new__(cls)
        options = cls.options
        server.bus = Bus()
        # Bypasses `__setattr__`, which refuses lists.
        fields = vars(server)
        fields["telemetry"] = Telemetry(cls.telemetry)
        fields["policies"] = PolicySet(cls.policies, partial(bind_policy, loop=options.loop))
        resources = bind_all(cls.resources, "resources", options)
        server.registry = registry = Registry(
            bind_all(cls.tools, "tools", options),
            options.page_size,
            resources=[spec for spec in resources if isinstance(spec, ResourceSpec)],
            templates=[spec for spec in resources if isinstance(spec, TemplateSpec)],
            prompts=bind_all(cls.prompts, "prompts", options),
            skills=expand_skills(cls.skills),
            declared=cls._declared,
            overridden=cls._overridden,
        )
        fields["skills"] = tuple(registry.skills.specs.values())
        for feature in CHANGES:
            changed = partial(server.bus.publish, feature)
            bind = partial(bind_all, feature=feature, options=options)
            fields[feature] = RunningSet(registry.parts[feature], changed, bind)
        server._use_options(options)
        server.crash_log = ThrottledLog(shown=SHOWN, most=MOST_CRASHES)
        if hasattr(cls, "providers"):
            server._provide(cls.providers)
        if options.loop == "asyncio":
            bind_methods(server, cls._overridden)
        return server

    def _provide(self, items: Sequence[Any]) -> Any:
        from .providers._providers import Providers

        provided = vars(self)["providers"] = Providers(self, items)
        return provided

    def _use_options(self, options: ServerOptions) -> None:
        """Make the objects that depend on the options."""
        vars(self)["options"] = options
        self.info = _implementation(options).to_wire()
        self.result_tail = b',"_meta":%b}' % render({META_SERVER_INFO: self.info})
        self.threads = FairLimiter(options.limits.threads)
        self.task_threads = FairLimiter(options.limits.task_threads)
        self.abandoned = AbandonedThreads(options.limits.abandoned_threads)
        self.sealer = Sealer(options.state_keys, options.state_ttl)
        vars(self).pop("capability_issuer", None)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute. An option is checked, and takes effect at once.

        Raises:
            DefinitionError: The value is not valid; or the option or list is read once, by the
                class statement; or the server is being served.
        """
        text = None
        if name in _LISTS:
            text = f"is read when the class statement runs; {_LATER.get(name, _IN_CLASS)}"
        elif name in _OF_STATEMENT:
            text = (
                "is read when the class statement runs; write"
                f" class {type(self).__name__}(Server, {name}=…)"
            )
        elif name in SERVER_OPTIONS and self.bus.running:
            text = "cannot change while the server is served; set it in __init__"
        elif name in SERVER_OPTIONS:
            try:
                checked = SERVER_OPTIONS[name](value)
            except ValueError as error:
                text = str(error)
            else:
                self._use_options(self.options._replace(**{name: checked}))
        if text is not None:
            where = f"{type(self).__name__}.{name}"
            raise DefinitionError([problem_at(where, text, calling_frame())])
        super().__setattr__(name, value)

    @cached_property
    def capability_issuer(self) -> "CapabilityIssuer":
        """Issues the capabilities of calls. Loaded on first use."""
        from .policies._capability import CapabilityIssuer

        keys, ttl = self.options.state_keys, self.options.state_ttl
        sealer = Sealer(keys, ttl, purpose=b"noizu_mcp capability v1", noun="a capability")
        return CapabilityIssuer(self.options.name, sealer, ttl)

    def local_handles(self) -> "LocalBacking":
        """Return where its handles are kept in this process; one store for each loop at a time."""
        from .handles._backing import LocalBacking

        found = vars(self).get("_handles")
        if found is None or found.is_elsewhere():
            found = LocalBacking(self.options.name, self.options.limits)
            vars(self)["_handles"] = found
        return found

    if TYPE_CHECKING:
        pass  # a type checker refuses an unknown name by itself
    else:

        def __getattr__(self, name: str) -> Any:
            """Name the replacement of a method that servers of other packages have."""
            if name == "providers":
                return self._provide(())
            if name in METHODS:
                text = f"{type(self).__name__!r} object has no attribute {name!r}; {METHODS[name]}"
                raise AttributeError(text, name=name, obj=self)
            # Repeated for the original error: a property may have raised it.
            return object.__getattribute__(self, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.options.name} {self.options.version}>"

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        check_statement(declaration, Server)
        if declaration.problems or declaration.abstract:
            return
        kept = {k: v for k, v in declaration.options.items() if k not in STATEMENT_ONLY}
        cls.options = ServerOptions(**kept)
        cls._overridden = frozenset(
            name for name in OVERRIDABLE if getattr(cls, name) is not getattr(Server, name)
        )
        # By name, not by value: every empty tuple is the same object.
        bases = cls.__mro__[: cls.__mro__.index(Server)]
        cls._declared = frozenset(
            kind for kind in CHANGES if any(kind in vars(base) for base in bases)
        )

    # Methods that a subclass may override

    def lifespan(self) -> AbstractAsyncContextManager[Any]:
        """Set up resources for as long as the server is served; yields `ctx.state`.

        Entered once for each `run` or `serve`, and for each connection in memory. A subclass
        writes `@asynccontextmanager async def lifespan(self)`, or returns a context manager.
        """
        return nullcontext()

    async def init(self, ctx: Context) -> None:
        """Set a session up once its handshake is complete. Requests wait for it.

        Sessions exist up to 2025-11-25. `ctx.put_session` stores values for later requests. An
        exception ends the session. The `init` of mounted servers runs afterwards.
        """

    async def list_tools(self, cursor: str | None, ctx: Context) -> Any:
        """List the tools that the caller may see.

        Args:
            cursor: The cursor of the page, from the previous page; None for the first page.
            ctx: The request.

        Returns:
            A `Page`, or a list if there is only one page, of tool specs, `ToolDefinition`s or
            mappings in wire format.
        """
        return self.registry.list_tools(cursor, ctx)

    async def call_tool(self, name: str, args: dict[str, Any], ctx: Context) -> Any:
        """Call a tool; the default calls a registered one.

        Args:
            name: The name of the tool.
            args: The arguments as sent, not validated.
            ctx: The request.

        Returns:
            Any value that a tool may return.

        Raises:
            McpError: The tool is unknown (-32602).
        """
        return await on_trio(call_registered, self, name, args, ctx)

    async def list_resources(self, cursor: str | None, ctx: Context) -> Any:
        """List the resources that the caller may see; as `list_tools`, of resources."""
        return self.registry.list_resources(cursor, ctx)

    async def list_resource_templates(self, cursor: str | None, ctx: Context) -> Any:
        """List the resource templates that the caller may see; as `list_tools`, of templates."""
        return self.registry.list_resource_templates(cursor, ctx)

    async def read_resource(self, uri: str, ctx: Context) -> Any:
        """Read a resource; the default reads a registered one.

        Args:
            uri: Its URI.
            ctx: The request.

        Returns:
            Any value that `Resource.read` may return, or a `ReadResult`.

        Raises:
            McpError: The resource is unknown.
        """
        return await on_trio(read_registered, self, uri, ctx)

    async def can_watch(self, uri: str, ctx: Context) -> bool:
        """Decide whether the caller may subscribe to a resource.

        Args:
            uri: Its URI.
            ctx: The request.

        Returns:
            By default True for registered resources that are `subscribable`, not hidden and
            available to the caller; a mounted server decides about its own resources.
        """
        providers = self.registry.providers
        if providers is not None:
            decided = await on_trio(providers.can_watch, uri, ctx)
            if decided is not None:
                return decided
        return self.registry.is_subscribable(uri, ctx)

    async def subscribe(self, uri: str, ctx: Context) -> None:
        """Accept a subscription, of either era; the default asks `can_watch`.

        The resources of a mounted server are passed to its `subscribe`.

        It may start a watcher, which `unsubscribe` stops: each subscription ends exactly once.

        Args:
            uri: The URI of the resource.
            ctx: The request.

        Raises:
            McpError: The resource is unknown (-32002), or cannot be watched (-32600). A listen
                request of 2026-07-28 goes on without the resource.
        """
        providers = self.registry.providers
        # A mounted server that overrides `subscribe` decides about its resources there.
        alone = (
            providers is not None
            and not self.registry.overrides("can_watch")
            and await on_trio(providers.takes_alone, uri, ctx)
        )
        if not alone and not await self.can_watch(uri, ctx):
            if (
                not self.registry.overrides("read_resource")
                and self.registry.find_resource(uri, ctx) is None
            ):
                raise not_found(uri, ctx)
            raise McpError(INVALID_REQUEST, f"Resource is not subscribable: {uri}")
        if providers is not None:
            await on_trio(providers.subscribe, uri, ctx)

    async def unsubscribe(self, uri: str, ctx: Context) -> None:
        """Handle the end of a subscription. The default does nothing.

        Called once for each accepted `subscribe`: when the client unsubscribes, when its listen
        request ends, or when the connection closes for any reason. In the last case it is cancelled
        after two seconds. Exceptions are logged.

        Args:
            uri: The URI of the resource.
            ctx: The request that ends it, or the listen request. At the end of a session there is
                no request, so `request_id` is not available.
        """
        providers = self.registry.providers
        if providers is not None:
            await on_trio(providers.unsubscribe, uri, ctx)

    async def list_prompts(self, cursor: str | None, ctx: Context) -> Any:
        """List the prompts that the caller may see; as `list_tools`, of prompts."""
        return self.registry.list_prompts(cursor, ctx)

    async def get_prompt(self, name: str, args: dict[str, Any], ctx: Context) -> Any:
        """Get a prompt; the default gets a registered one.

        Args:
            name: Its name.
            args: Its arguments as sent, not validated.
            ctx: The request.

        Returns:
            Any value that `Prompt.get` may return.

        Raises:
            McpError: The prompt is unknown, or an argument is missing (-32602).
        """
        return await on_trio(get_registered, self, name, args, ctx)

    async def complete(self, ref: "Reference", argument: str, prefix: str, ctx: Context) -> Any:
        """Complete an argument of a prompt or a variable of a template.

        Args:
            ref: The prompt or template.
            argument: The name of the argument or variable.
            prefix: The text typed so far.
            ctx: The request; `ctx.completion_arguments` has the arguments that are already filled
                in.

        Returns:
            A list of texts, or a `Completion`.
        """
        return await on_trio(complete_registered, self, ref, argument, prefix, ctx)

    # The running server

    def notify_changed(self, kind: str) -> None:
        """Send every subscribed client a list change, from any task or thread.

        One call reaches sessions with a handshake and `subscriptions/listen` streams. A single
        change is sent at once; later ones within a short time are merged into one notification.

        Args:
            kind: `tools`, `prompts` or `resources`.

        Raises:
            ValueError: `kind` is something else.
        """
        if kind not in CHANGES:
            raise ValueError(f"no list {kind!r}; there are: {', '.join(CHANGES)}")
        if self.registry.providers is not None:
            self.registry.providers.expire(kind)
        self.bus.publish(kind)

    def notify_resource_updated(self, uri: str) -> None:
        """Send every client that watches a resource a notification, from any task or thread.

        Args:
            uri: Its URI.
        """
        # A tuple, so that a URI is never equal to the name of a list.
        self.bus.publish((uri,))


def _implementation(options: ServerOptions) -> Implementation:
    return Implementation(
        options.name,
        options.version,
        title=options.title,
        description=options.description,
        website_url=options.website_url,
        icons=options.icons,
    )
