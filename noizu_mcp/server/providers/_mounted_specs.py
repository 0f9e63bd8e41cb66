"""The components of a mounted server under their new names, bound to its contexts.

Each is a component of the mounted server with another name or URI, and with the defaults of that
server. Its handler gets a context of the mounted server. If its answer has the URI of a resource of
the mounted server, it is replaced by the URI that clients see.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ... import components, types
from ..._errors import DeniedHidden
from ..._util import Unset
from ..._value import JSONObject
from ...components import (
    Bound,
    Context,
    PromptSpec,
    ResourceSpec,
    TemplateSpec,
    ToolSpec,
    bind_definition,
    open_object,
)
from ...engine import run_user_code
from ...types import Principal, RequireScopes
from ...uri import UriTemplate
from .._server_context import ServerContext
from ..registry._availability import is_available
from ..registry._collection import Collection
from ._mounted_contexts import MountedContexts

if TYPE_CHECKING:
    from ..policies._policy import CallKind

#: Maximum pages of a list that a mounted server computes, in case its cursors never end.
MOST_PAGES: Final = 1000
#: The method that computes each list, and the method that serves an item of it.
_METHODS: Final = {
    "tools": ("list_tools", "call_tool"),
    "prompts": ("list_prompts", "get_prompt"),
    "resources": ("list_resources", "read_resource"),
    "resourceTemplates": ("list_resource_templates", "read_resource"),
}
_LISTED: Final = {
    ToolSpec: "tools",
    PromptSpec: "prompts",
    ResourceSpec: "resources",
    TemplateSpec: "resourceTemplates",
}


class _BothScopes(RequireScopes):
    """The scopes of a mounted server and of one of its components, each with its own hierarchy."""

    def __init__(self, first: RequireScopes, second: RequireScopes) -> None:
        super().__init__(*dict.fromkeys(first.scopes + second.scopes))
        object.__setattr__(self, "_parts", (first, second))

    def admits(self, principal: Principal | None) -> bool:
        """Tell whether the caller has the scopes of both."""
        parts: tuple[RequireScopes, ...] = self.__dict__["_parts"]
        return all(each.admits(principal) for each in parts)


class MountedGuard:
    """The policies of a mounted server, for one of its components.

    Args:
        calls: The calls of the mounted server.
        spec: The component in the mounted server.
    """

    __slots__ = ("_calls", "_spec")

    def __init__(self, calls: MountedContexts, spec: Bound) -> None:
        self._calls = calls
        self._spec = spec

    @property
    def chains(self) -> Mapping[str, Any]:
        """The policies, including policies of servers that the mounted server mounts."""
        own = self._calls.server.policies.chains
        return own or ({} if self._spec.guard is None else self._spec.guard.chains)

    async def admit(
        self, kind: "CallKind", name: str, arguments: Mapping[str, Any], ctx: Any
    ) -> None:
        """Check the policies of a call, by its name in the mounted server.

        Raises:
            Denied: The call is denied.
            DeniedHidden: The call is denied, and the caller must not learn that the component
                exists.
        """
        from ..calls._policy_checks import admit, refusal

        inner: Any = self._calls.need_context(ctx)
        own = name.removeprefix(self._calls.names.start(self._spec.key))
        try:
            rest = admit(kind, own, arguments, self._spec, inner)
            if rest is not None:
                await rest
        except DeniedHidden as denied:
            # With the name that the caller used.
            raise refusal(kind, name, self._spec, denied, ctx) from None


class MountedSpecs:
    """Lists the components of a mounted server.

    Args:
        calls: The calls of the server.
    """

    def __init__(self, calls: MountedContexts) -> None:
        self._calls = calls
        self._server = calls.server
        self._names = calls.names
        # The renamed component of each component of the last list, so that it stays the same object
        # while others change.
        self._made: dict[str, dict[Bound, Bound]] = {}

    async def list_all(self, feature: str, ctx: ServerContext) -> list[Bound]:
        """List the components of a feature, including hidden ones.

        Args:
            feature: `tools`, `prompts` or `resources`.
            ctx: The context of the mounted server, whose lists are prepared.
        """
        registry = self._server.registry
        found: list[Bound] = []
        for collection in registry.parts[feature]:
            method = _METHODS[collection.kind.listed][0]
            if registry.overrides(method):
                found += await self._computed(collection, method, ctx)
                continue
            made = self._made.get(method, {})
            self._made[method] = now = {
                spec: made.get(spec) or self._remake(spec)
                for spec in collection.seen_by(ctx).specs.values()
            }
            found += now.values()
        if feature == "resources" and registry.overrides("read_resource"):
            found.append(self._any_resource())
        return found

    async def _computed(
        self, collection: Collection[Bound], method: str, ctx: ServerContext
    ) -> list[Bound]:
        """List the items of an override. Other registrations are hidden, as in the server."""
        specs = dict(collection.seen_by(ctx).specs)
        found: list[Bound] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            answer = await run_user_code(getattr(self._server, method)(cursor, ctx))
            page = collection.read(answer, ctx)
            for item in page.items:
                definition = collection.definition_of(item)
                spec = specs.pop(str(definition[collection.kind.key]), None)
                if spec is None:
                    wire: Any = collection.kind.definition().from_wire(definition, "definition")
                    handler = self._through(collection.kind.listed, definition)
                    spec = bind_definition(wire, handler)
                found.append(self._remake(spec, hidden=False, definition=dict(definition)))
            cursor = page.next_cursor
            if cursor is None:
                break
        return found + [self._remake(spec, hidden=True) for spec in specs.values()]

    def _remake(self, spec: Bound, **changes: object) -> Bound:
        """Make the component that clients see: name, defaults and handler."""
        fields: dict[str, Any] = {**vars(spec), **self._defaults(spec), **changes}
        definition: JSONObject = dict(fields["definition"])
        old = str(definition[spec.key])
        new = definition[spec.key] = self._names.rename(spec.key, old)
        if fields["name"] == old:  # resources also have display names
            fields["name"] = definition["name"] = new
        fields["definition"] = definition
        if spec.available is not None:
            fields["available"] = partial(self._is_available, spec)
        fields["guard"] = MountedGuard(self._calls, spec)
        inner = self._inner(spec, fields)
        fields["invoke"] = self._handler(fields["mode"], inner)
        if isinstance(spec, PromptSpec | TemplateSpec):
            fields["complete"] = partial(self._completer, spec)
        if isinstance(spec, ResourceSpec):
            fields["uri"] = new
        elif isinstance(spec, TemplateSpec):
            template = UriTemplate(new, traversal=spec.uri_template.traversal)
            fields["uri_template"] = template
            if spec.list is not None:
                fields["list"] = self._instances(spec)
        return type(spec)(**fields)

    def _defaults(self, spec: Bound) -> dict[str, object]:
        """Return the options that a component inherits from the mounted server."""
        options, found = self._server.options, dict[str, object]()
        if isinstance(spec.timeout, Unset):
            found["timeout"] = options.tool_timeout
        if options.requires is not None:
            both = spec.requires and _BothScopes(options.requires, spec.requires)
            found["requires"] = both or options.requires
        if isinstance(spec, ToolSpec):
            found["coerce"] = options.coerce if spec.coerce is None else spec.coerce
            if spec.max_result_bytes is None:
                found["max_result_bytes"] = options.max_result_bytes
        return found

    def _inner(self, spec: Bound, fields: dict[str, Any]) -> Callable[..., Any]:
        """Return a function that takes values and the inner context, and returns the answer."""
        listed = _LISTED[type(spec)]
        if self._server.registry.overrides(_METHODS[listed][1]):
            # The method takes arguments as sent.
            if isinstance(spec, ToolSpec):
                fields["input"] = open_object()
            elif isinstance(spec, PromptSpec):
                fields["texts"] = None
            fields["mode"], fields["takes_context"] = "async", True
            return self._through(listed, spec.definition)
        if isinstance(spec, ResourceSpec):
            return lambda _, ctx: spec.invoke(spec.uri, ctx)
        if isinstance(spec, TemplateSpec):
            return lambda uri, args, ctx: spec.invoke(self._old_uri(uri), args, ctx)
        return spec.invoke

    def _through(self, listed: str, definition: Mapping[str, Any]) -> Callable[..., Any]:
        """Return a function that gets the answer from a method of the mounted server."""
        method: Callable[..., Awaitable[object]] = getattr(self._server, _METHODS[listed][1])
        if _METHODS[listed][1] == "read_resource":

            def read(uri: str, *rest: Any) -> Awaitable[object]:
                uri, ctx = self._old_uri(uri), rest[-1]
                ctx.let_through("resource", uri, {})
                return method(uri, ctx)

            return read
        kind: CallKind = "tool" if listed == "tools" else "prompt"
        name = definition["name"]

        def call(args: Mapping[str, Any], ctx: ServerContext) -> Awaitable[object]:
            ctx.let_through(kind, name, args)
            return method(name, args, ctx)

        return call

    def _any_resource(self) -> TemplateSpec:
        """Make a hidden template for all URIs: an override may read URIs without a registration."""
        template = types.ResourceTemplateDefinition(self._names.rename_uri("{+uri}"), "any")
        read = self._handler("async", self._through("resources", {}))
        made = bind_definition(template, read, hidden=True)
        guard = MountedGuard(self._calls, made)
        return TemplateSpec(**{**vars(made), "guard": guard})

    def _old_uri(self, uri: str) -> str:
        return uri.removeprefix(self._names.start("uri"))

    def _is_available(self, spec: Bound, ctx: Context) -> bool:
        context = self._calls.context(ctx)
        return context is not None and is_available(spec, context)

    def _handler(self, mode: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a handler for contexts of the mounted server in a handler for requests."""
        calls, rename = self._calls, self._rename_uris

        async def invoke(*values: object) -> object:
            *given, outer = values
            ctx = calls.enter(outer)
            try:
                answer = await inner(*given, ctx)
                return answer if answer.__class__ is str else rename(answer, ctx)
            finally:
                calls.leave(ctx)

        def call(*values: object) -> object:
            *given, outer = values
            ctx = calls.enter(outer)
            try:
                answer = inner(*given, ctx)
                return answer if answer.__class__ is str else rename(answer, ctx)
            finally:
                calls.leave(ctx)

        return invoke if mode == "async" else call

    def _completer(self, spec: PromptSpec | TemplateSpec, name: str) -> "components.Source | None":
        if self._server.registry.overrides("complete"):
            is_prompt = isinstance(spec, PromptSpec)
            given = {"name": spec.name} if is_prompt else {"uri": spec.definition[spec.key]}
            reference = types.Reference("ref/prompt" if is_prompt else "ref/resource", **given)
            target = str(spec.definition[spec.key])

            def complete(prefix: str, ctx: ServerContext) -> Awaitable[object]:
                given = {"argument": name, "value": prefix}
                ctx.let_through("completion", target, given)
                return self._server.complete(reference, name, prefix, ctx)

            return components.Completer("async", self._handler("async", complete))
        source = spec.complete(name)
        if not isinstance(source, components.Completer):
            return source
        return source._replace(invoke=self._handler(source.mode, source.invoke))

    def _instances(self, spec: TemplateSpec) -> Callable[..., Any]:
        """Make the function that lists the instances of a template."""
        list_: Any = spec.list
        rename = self._names.rename_uri

        def renamed(value: object) -> list[JSONObject]:
            found = components.to_listed(spec, value)
            return [{**each, "uri": rename(each["uri"])} for each in found]

        async def wait(ctx: ServerContext) -> list[JSONObject]:
            return renamed(await list_(ctx))

        def call(ctx: ServerContext) -> list[JSONObject]:
            return renamed(list_(ctx))

        return self._handler(spec.list_mode, wait if spec.list_mode == "async" else call)

    def _rename_uris(self, answer: object, ctx: ServerContext) -> object:
        """Replace URIs of the mounted server's resources in an answer by the URIs clients see."""

        def is_served(uri: str) -> bool:
            return self._server.registry.find_resource(uri, ctx) is not None

        return self._names.rename_answer(answer, is_served)
