"""The registrations of a server, a collection for each kind, and the features they offer."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ... import types
from ..._value import JSONMapping, JSONObject
from ...components import Context, PromptSpec, ResourceSpec, TemplateSpec, ToolSpec
from ...jsonrpc import Request
from ...protocol import NAMED_BY, STATELESS, adapt_definition, adapt_tool
from ...types import SKILLS as SKILLS_EXTENSION
from ...types import TASKS, Page, ToolDefinition
from ..threads._fair_limiter import FairLimiter
from ._availability import is_available
from ._collection import Collection, CollectionKind
from ._directories import make_tree
from ._handle_sources import concerns_handles, name_sources
from ._pages import PAGE_SIZE
from ._provided import Provided

if TYPE_CHECKING:
    from ...skills import SkillSpec
    from ...types import RequireScopes

TOOLS: Final = CollectionKind(
    "tool",
    "tools",
    "name",
    adapt_tool,
    lambda: ToolDefinition,
    concerns_handles,
    name_sources,
)
RESOURCES: Final = CollectionKind(
    "resource", "resources", "uri", adapt_definition, lambda: types.ResourceDefinition
)
TEMPLATES: Final = CollectionKind(
    "resource template",
    "resourceTemplates",
    "uriTemplate",
    adapt_definition,
    lambda: types.ResourceTemplateDefinition,
)
PROMPTS: Final = CollectionKind(
    "prompt", "prompts", "name", adapt_definition, lambda: types.PromptDefinition
)
SKILLS: Final = CollectionKind(
    "skill", "skills", "uri", adapt_definition, lambda: types.SkillDefinition
)

#: The methods of a server whose override offers a feature, even without registrations.
_OFFERED_BY: Final = {
    "tools": ("list_tools", "call_tool"),
    "resources": ("list_resources", "list_resource_templates", "read_resource"),
    "prompts": ("list_prompts", "get_prompt"),
    "completions": ("complete",),
    "skills": (),
}

#: The param with the name of the component of a request.
_NAMED_BY: Final = {**NAMED_BY, "skills/get": "uri", "completion/complete": "uri"}

#: The spec that serves a URI, and the values of a template's variables.
FoundResource = tuple[ResourceSpec | TemplateSpec, Any]


class Registry:
    """The registrations of one server.

    Args:
        tools: The tools, in order.
        page_size: Entries per page of a list.
        resources: The resources, in order.
        templates: The resource templates, in order.
        prompts: The prompts, in order.
        skills: The skills, in order. Their files are appended to the resources.
        declared: The features whose lists the server declares, even if they are empty: `tools`,
            `resources`, `prompts`. Templates belong to `resources`.
        overridden: The methods that the class of the server overrides.

    Attributes:
        tools: The tools.
        resources: The resources.
        templates: The resource templates.
        prompts: The prompts.
        skills: The skills.
        parts: The collections of each feature.
        directories: The contents of each directory of the skills.
        overridden: The methods that the class of the server overrides.
        offered: The features that the server offers: `tools`, `resources`, `prompts`,
            `completions`, `skills`, and always `logging`. A feature is offered if the class
            declares its list, even an empty one, or overrides its methods; or if a component was
            ever registered, even if it is hidden or was removed.
        scoped: True if a registration, or a component of a provider, requires scopes.
        gated: True if a resource or template has an `available` function, or may come from a
            provider.
        providers: The providers of the server; None until the first one is added.
    """

    providers: Provided | None = None
    offered: frozenset[str]
    scoped: bool
    gated: bool

    def __init__(
        self,
        tools: Iterable[ToolSpec] = (),
        page_size: int = PAGE_SIZE,
        *,
        resources: Iterable[ResourceSpec] = (),
        templates: Iterable[TemplateSpec] = (),
        prompts: Iterable[PromptSpec] = (),
        skills: Sequence["SkillSpec"] = (),
        declared: AbstractSet[str] = frozenset(),
        overridden: AbstractSet[str] = frozenset(),
    ) -> None:
        self.overridden = overridden
        self._slots: dict[tuple[str, int, int], FairLimiter] = {}
        files = [file for skill in skills for file in skill.files.values()]
        # One lock for all: `refresh` reads all of them. Readers take no lock, since changes replace
        # maps.
        lock = threading.RLock()
        make: Any = partial(Collection, page_size=page_size, lock=lock, on_change=self.refresh)
        self.tools: Collection[ToolSpec] = make(TOOLS, tools, declared="tools" in declared)
        self.resources: Collection[ResourceSpec] = make(
            RESOURCES, [*resources, *files], declared="resources" in declared
        )
        # A list of resources does not declare templates, which would offer completions as well.
        self.templates: Collection[TemplateSpec] = make(TEMPLATES, templates)
        self.prompts: Collection[PromptSpec] = make(
            PROMPTS, prompts, declared="prompts" in declared
        )
        self.skills: Collection[SkillSpec] = make(SKILLS, skills)
        self.directories = make_tree(skills)
        self.parts: dict[str, tuple[Collection[Any], ...]] = {
            "tools": (self.tools,),
            "resources": (self.resources, self.templates),
            "prompts": (self.prompts,),
            "completions": (self.prompts, self.templates),
            "skills": (self.skills,),
        }
        self.refresh()

    def refresh(self) -> None:
        """Compute the flags that every request reads. Called after each change."""
        providers = self.providers
        if providers is not None:
            # Merged lists of callers contain registrations, too.
            providers.raise_generation()
        parts = self.parts.items()
        self.offered = frozenset(
            feature
            for feature, found in parts
            if any(each.offered for each in found)
            or self.overrides(*_OFFERED_BY[feature])
            or (providers is not None and providers.offer(feature))
        ) | {"logging"}
        provides = providers is not None and providers.have_scopes
        self.scoped = provides or any(
            each.scoped for each in (self.tools, self.resources, self.templates, self.prompts)
        )
        provides = providers is not None and providers.offer("resources")
        self.gated = self.resources.gated or self.templates.gated or provides

    @property
    def has_tasks(self) -> bool:
        """True if a tool supports tasks."""
        provided = self.providers is not None and self.providers.have_tasks
        return provided or any(spec.task is not None for spec in self.tools.specs.values())

    @property
    def can_be_watched(self) -> bool:
        """True if a resource is or was subscribable, or the server overrides the decision."""
        registered = self.resources.watchable or self.templates.watchable
        return registered or self.overrides("can_watch", "subscribe")

    @property
    def takes_subscriptions(self) -> bool:
        """True if a method of the server, or a provider, is called when a client subscribes."""
        return self.providers is not None or self.overrides("can_watch", "subscribe")

    @property
    def takes_ends(self) -> bool:
        """True if a method of the server, or a provider, is called when a client unsubscribes."""
        return self.providers is not None or self.overrides("unsubscribe")

    def overrides(self, *methods: str) -> bool:
        """Tell whether the class overrides one of the methods."""
        return not self.overridden.isdisjoint(methods)

    def capabilities(self) -> JSONObject:
        """Return the capabilities of the server: the features that it offers."""
        settings: dict[str, JSONObject] = {
            "logging": {},
            "tools": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": self.can_be_watched},
            "prompts": {"listChanged": True},
            "completions": {},
        }
        return {name: each for name, each in settings.items() if name in self.offered}

    def extensions(self) -> JSONObject:
        """Return the extensions of 2026-07-28 that the server offers, by id, with settings.

        Providers add to them; see `BaseProvider.introduce`.
        """
        extensions: JSONObject = {}
        if self.skills.offered:
            extensions[SKILLS_EXTENSION] = {"directoryRead": True}
        if self.has_tasks:
            extensions[TASKS] = {}
        return extensions

    def slots(self, spec: ToolSpec, queue: int) -> FairLimiter:
        """Return the limiter of a tool with `max_concurrency`.

        Args:
            spec: The tool.
            queue: Calls that may wait, unless the tool has `max_queue`.
        """
        count = spec.max_concurrency or 1
        queue = queue if spec.max_queue is None else spec.max_queue
        # By name and counts: a replaced tool with another limit gets another limiter.
        return self._slots.setdefault((spec.name, count, queue), FairLimiter(count, queue))

    def find_tool(self, name: str, context: Context | None = None) -> ToolSpec | None:
        """Find a tool by its wire name, including hidden ones; see `Collection.find`."""
        return self.tools.find(name, context)

    def find_prompt(self, name: str, context: Context | None = None) -> PromptSpec | None:
        """Find a prompt by its wire name, including hidden ones; see `Collection.find`."""
        return self.prompts.find(name, context)

    def find_resource(
        self, uri: str, context: Context | None = None, *, usable: bool = True
    ) -> FoundResource | None:
        """Find the spec that serves a URI: the resource itself, else the first matching template.

        Args:
            uri: The URI.
            context: The request, for the lists of its caller; None for the registrations only.
            usable: True to ignore components that the caller may not use.

        Returns:
            The spec, and the variables of a template; None if no spec was found.
        """
        asked_for = context if usable else None
        resource = self.resources.look_up(uri, context)
        if resource is not None and is_available(resource, asked_for):
            return resource, None
        # In order of registration, so the author decides between overlapping templates.
        for template in self.templates.seen_by(context).specs.values():
            variables = template.match(uri)
            if variables is None or not is_available(template, asked_for):
                continue
            # Such a URI may have the prefix of another provider.
            providers = None if context is None else self.providers
            if providers is None or providers.may_serve(template, uri, context):
                return template, variables
        return None

    def canonical(self, uri: str, context: Context) -> str:
        """Return the spelling of a URI that policies, overrides and handlers see.

        Args:
            uri: The URI, as a client sent it.
            context: The request, for the lists of its caller.

        Returns:
            The URI of a registered resource unchanged; any other URI in its normal form, so that no
            spelling evades a rule for the URI.
        """
        if self.resources.look_up(uri, context) is not None:
            return uri
        from ...uri import normalize  # loaded on first use

        return normalize(uri)

    def subject_of(
        self, request: Request, context: Context | None = None, *, usable: bool = True
    ) -> tuple[str | None, Any]:
        """Find the component that a request names.

        Args:
            request: The request.
            context: The same request, for the lists of its caller.
            usable: True to ignore components that the caller may not use.

        Returns:
            Its name or URI as sent, and its spec; each is None if missing.
        """
        method: str = request.method
        params: JSONMapping = request.params or {}
        if method == "completion/complete":
            ref = params.get("ref")
            params = ref if isinstance(ref, Mapping) else {}
            if params.get("type") == "ref/prompt" or "uri" not in params:
                method = "prompts/get"
        # Called before the features check the params: each value may have any type. Nothing is
        # found for a malformed one, and its feature raises an error with a better text.
        name = params.get(_NAMED_BY.get(method, ""))
        if not isinstance(name, str):
            return None, None
        collection: Collection[Any]
        match method:
            case "tools/call":
                collection = self.tools
            case "prompts/get":
                collection = self.prompts
            case "skills/get":
                collection = self.skills
            case "completion/complete":
                collection = self.templates
            case _:
                found = self.find_resource(name, context, usable=usable)
                return name, None if found is None else found[0]
        spec = collection.look_up(name, context)
        available = spec is not None and is_available(spec, context if usable else None)
        return name, spec if available else None

    async def prepare(self, context: Context, feature: str, name: str | None = None) -> None:
        """Fetch the lists of providers that a caller needs, if they are out of date.

        `find_tool` and the other searches use these lists. They are up to date when a method of a
        server is called by a client; a handler that searches something else calls this first.

        Args:
            context: The request.
            feature: `tools`, `prompts` or `resources`, with the templates.
            name: The name or URI to look up. A registration has precedence: then no provider is
                asked. None for the whole list.
        """
        registered = any(name in collection for collection in self.parts[feature])
        if self.providers is not None and not registered:
            await self.providers.prepare(context, feature)

    def required_for(self, uri: str, context: Context) -> "RequireScopes | None":
        """Return the scopes that a caller needs to read or watch a resource; None for no scopes."""
        found = self.find_resource(uri, context) if self.scoped else None
        return None if found is None else found[0].requires

    def hides(self, uri: str, context: Context) -> bool:
        """Tell whether a resource is registered, but not available to a caller.

        Args:
            uri: Its URI. A URI without a registration may belong to an override.
            context: The request or session.
        """
        if not self.gated or self.find_resource(uri, context, usable=False) is None:
            return False
        return self.find_resource(uri, context) is None

    def is_subscribable(self, uri: str, context: Context | None = None) -> bool:
        """Tell whether the resource or template of a URI is subscribable and not hidden.

        Args:
            uri: The URI.
            context: The request, whose caller must be able to use it; None for no such check.
        """
        found = self.find_resource(uri, context)
        return found is not None and found[0].subscribable and not found[0].hidden

    def read_directory(self, uri: str, cursor: object) -> JSONObject | None:
        """Read a page of a directory of the skills; None if there is no such directory.

        Raises:
            McpError: The cursor is invalid (-32602).
        """
        children = self.directories.get(uri)
        if children is None:
            return None
        page = self.resources.cut([*children.values()], cursor)
        # The methods of the extension exist in the newest revision only.
        return self.resources.write(page, STATELESS)

    def list(self) -> Sequence[JSONMapping]:
        """Return the wire definitions of the tools that are not hidden."""
        return [spec.definition for spec in self.tools.shown]

    def expand(self) -> Sequence[ToolSpec]:
        """Return the specs of all tools, with the overrides of their registrations applied."""
        return tuple(self.tools.specs.values())

    def entries(
        self, kind: str, context: Context | None = None
    ) -> Iterator[tuple[JSONObject, bool]]:
        """Iterate over all components of a kind, each with its `hidden` flag.

        Args:
            kind: `tools`, `resources`, `resource_templates` or `prompts`.
            context: The request; components that its caller may not use are left out. None for all.
        """
        collections: dict[str, Collection[Any]] = {
            "tools": self.tools,
            "resources": self.resources,
            "resource_templates": self.templates,
            "prompts": self.prompts,
        }
        for spec in collections[kind].seen_by(context).specs.values():
            if is_available(spec, context):
                yield dict(spec.definition), spec.hidden

    def list_tools(
        self,
        cursor: str | None = None,
        context: Context | None = None,
        *,
        include_hidden: bool = False,
    ) -> Page[ToolSpec]:
        """Return one page of the list of tools.

        Args:
            cursor: The start of the page; None for the first page.
            context: The request, whose caller's list is used; None for all tools.
            include_hidden: True to include hidden tools.

        Raises:
            McpError: The cursor is invalid (-32602).
        """
        return self.tools.page(cursor, context, include_hidden=include_hidden)

    def list_resources(
        self,
        cursor: str | None = None,
        context: Context | None = None,
        *,
        include_hidden: bool = False,
    ) -> Page[ResourceSpec]:
        """Return one page of the list of resources, without instances of templates."""
        return self.resources.page(cursor, context, include_hidden=include_hidden)

    def list_resource_templates(
        self,
        cursor: str | None = None,
        context: Context | None = None,
        *,
        include_hidden: bool = False,
    ) -> Page[TemplateSpec]:
        """Return one page of the list of resource templates; see `list_tools`."""
        return self.templates.page(cursor, context, include_hidden=include_hidden)

    def list_prompts(
        self,
        cursor: str | None = None,
        context: Context | None = None,
        *,
        include_hidden: bool = False,
    ) -> Page[PromptSpec]:
        """Return one page of the list of prompts; see `list_tools`."""
        return self.prompts.page(cursor, context, include_hidden=include_hidden)
