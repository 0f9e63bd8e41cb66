"""Providers: classes that compute tools, prompts and resources while a server runs.

A provider stands in `providers = […]` of a server. The server asks it for a list when a client
lists something, or names something that no registration has; it keeps the list until the provider
says that it changed. How a server asks and keeps lists is in `server/providers/`.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import trio

from .._class_body import BODY, BodyMeta, replacements, statement_frame
from .._errors import DefinitionError, Problem
from .._nearest import hint_at
from .._source import problem_at
from .._util import called, got, is_number, takes
from .._value import JSONObject
from ..types import SKILLS
from ._context import Context

#: Seconds that a provider may take to list. Clients wait for it with their request.
TIMEOUT: Final = 5.0
_OPTIONS: Final = ("timeout", "stale", "shared")
#: The methods that list, each with the list of the server that they add to.
LISTS: Final = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "templates": "resources",
}


class Introduction(NamedTuple):
    """The part of a provider in the answer that a client gets when it connects.

    Attributes:
        instructions: Instructions for models; None for none.
        extensions: The extensions of 2026-07-28 that it offers, by id, with their settings.
    """

    instructions: str | None = None
    extensions: Mapping[str, JSONObject] = {}


class Changes(Protocol):
    """Tells a server that a provider has changed; callable from any task or thread."""

    @property
    def server(self) -> Any:
        """The server; `ctx.server` of its requests."""

    def __call__(self, kind: str | None = None, /) -> None:
        """Say that a list changed: the server asks for it again, and tells its clients.

        Args:
            kind: `tools`, `prompts` or `resources` (with templates); None for all lists that the
                provider has.
        """

    def resource_updated(self, uri: str, /) -> None:
        """Say that the contents of a resource changed: the server notifies its subscribers.

        Args:
            uri: The URI, as the provider lists it.
        """


class ServedProvider(Protocol):
    """A provider that has work, or contexts, of its own while a server is served.

    Attributes:
        settled: Set once it is ready, or has failed to become so; clients wait until then, for
            `timeout` of the provider.
    """

    settled: trio.Event

    def end(self, grace: float | None = None) -> None:
        """Begin to end; running calls are completed.

        Args:
            grace: Seconds for this; None for no limit.
        """

    def context(self, ctx: Context) -> Any:
        """Make the context of its own server for a request; None while it is not served."""

    def expires(self, ctx: object, feature: str) -> float:
        """Return the time when a list that it just gave must be asked for again."""

    async def can_watch(self, uri: str, ctx: Context) -> bool:
        """Tell whether a caller may watch one of its resources."""

    async def takes_alone(self, uri: str, ctx: Context) -> bool:
        """Tell whether it accepts subscriptions of a resource without a call of `can_watch`."""


def _written(cls: type, name: str) -> object:
    """Return the method of a subclass; None if only the classes of this module have it."""
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return None if _is_ours(found) else found


def _is_ours(method: object) -> bool:
    return getattr(method, "__module__", None) == __name__


def _options(cls: Any) -> Iterator[tuple[str, str]]:
    """Yield the options with wrong values, each with its problem; a property is the author's."""
    for name, least in (("timeout", "above 0"), ("stale", "0 or more")):
        value = getattr(cls, name)
        right = is_number(value) and (value > 0 or (value == 0 and name == "stale"))
        if not right and not isinstance(value, property):
            yield name, f"must be seconds, {least}, {got(value)}"
    # Policies and handlers have this option, and would run on the loop that it names.
    if getattr(cls, "loop", None) in ("asyncio", "trio"):
        yield "loop", "a provider runs on trio; write `await noizu_mcp.aio.run(function, …)`"
    if not isinstance(cls.shared, bool | property):
        yield "shared", f"must be True or False, {got(cls.shared)}"


def _methods(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the methods that a server could not call, each with its problem."""
    wanted = (*((name, "ctx") for name in LISTS), ("introduce", "ctx"), ("watch", "changed"))
    for name, parameter in wanted:
        method = _written(cls, name)
        if method is None:
            continue
        if not any(_is_ours(vars(base).get(name)) for base in cls.__mro__):
            text = f"is not read; make it a {LISTS[name].removesuffix('s').title()}Provider"
            yield name, text
        elif not inspect.iscoroutinefunction(method) or not takes(method, None, None):
            yield name, f"must be `async def {name}(self, {parameter})`"
    unknown = _written(cls, "unknown")
    wrong = inspect.iscoroutinefunction(unknown) or not takes(unknown, None, None)
    if unknown is not None and wrong:
        yield "unknown", "must be `def unknown(self, name)`"


class BaseProvider(metaclass=BodyMeta):
    """The common part of providers.

    Options are keywords of the class statement, or attributes of the class or of an instance.

    Attributes:
        timeout: Seconds that it may take to list.
        stale: Seconds for which its last list is served once it fails; 0: it offers nothing then.
        shared: True if every caller gets the same lists: they are asked for once for all.
        mounted_server: The server in this process that it offers; None for most providers.
    """

    mounted_server: Any = None  # of `Server`, a class of a layer above

    timeout: float = TIMEOUT
    stale: float = 0.0
    shared: bool = False

    _offers: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(
        cls,
        *,
        timeout: float | None = None,
        stale: float | None = None,
        shared: bool | None = None,
        **unknown: object,
    ) -> None:
        super().__init_subclass__()
        for name, value in (("timeout", timeout), ("stale", stale), ("shared", shared)):
            if value is not None:
                setattr(cls, name, value)
        found = [(name, f"unknown option; {hint_at(name, _OPTIONS)}") for name in unknown]
        found += [*_options(cls), *_methods(cls)]
        frame = statement_frame()
        problems = replacements(vars(cls)[BODY], cls.__qualname__, (*LISTS, *_OPTIONS))
        problems += [problem_at(f"{cls.__qualname__}.{name}", text, frame) for name, text in found]
        if problems:
            raise DefinitionError(problems)
        cls._offers = frozenset(LISTS[name] for name in LISTS if _written(cls, name) is not None)

    @property
    def name(self) -> str:
        """The name of the provider in logs and metrics; by default the name of its class."""
        return type(self).__name__

    @property
    def offers(self) -> frozenset[str]:
        """The lists of a server that it adds to: `tools`, `prompts`, `resources`."""
        return self._offers

    def fixed_names(self) -> Iterable[tuple[str, str]]:
        """Return what it will surely list: pairs of a list of the server, and a name or URI.

        A server that has one of these names already is refused when its class is made.
        """
        return ()

    async def watch(self, changed: Changes) -> None:
        """Wait for changes, and report each of them with `changed()`.

        A server runs it once, for as long as it is served. It is started again, with growing
        pauses, if it raises; it may also return. By default there is nothing to wait for.

        Args:
            changed: Tells the server.
        """

    async def introduce(self, ctx: Context) -> Introduction:
        """Return the part of the provider in the answer to a client that connects.

        Clients wait for it, for `timeout` seconds at most: what is not known yet is left out.

        Args:
            ctx: The request: `initialize` or `server/discover`.
        """
        return Introduction()

    def begin_serving(self, running: object, changed: Changes) -> ServedProvider | None:
        """Begin what the provider needs wherever its server is served; by default nothing.

        `watch` is enough for most providers: it runs once for each server.

        Args:
            running: The server while it is served, a `RunningServer`.
            changed: Tells the server of changes.
        """
        return None

    def namespace(self, key: str) -> str:
        """Return the text with which all its names or URIs begin, such as a prefix; empty for none.

        A name or URI that begins so is of this provider. A provider with a shorter text cannot
        offer it, also while this one has failed: the log tells that it is left out.

        Args:
            key: `name` or `uri`.
        """
        return ""

    def unknown(self, name: str) -> str | None:
        """Word the error for a name that nothing has.

        Args:
            name: The name of a tool or a prompt, as the client sent it.

        Returns:
            The text; None if the name is not one of this provider's.
        """
        return None


class ToolProvider(BaseProvider):
    """A provider of tools: subclass it and write `tools`.

    Its lists may differ by caller. On 2026-07-28 only `ctx.auth` may decide (2026-07-28
    `server/tools`); in a session also `ctx.session`. Options are keywords of the class statement,
    or attributes: `timeout` (seconds that it may take to list, 5 by default), `stale` (seconds for
    which its last list is served once it fails, 0 by default), `shared` (every caller gets the same
    lists, which are asked for once for all).

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    async def tools(self, ctx: Context) -> Iterable[Any]:
        """List the tools for a caller.

        Args:
            ctx: The request.

        Returns:
            What `tools = […]` of a server takes: `tool(…)` registrations, instances, functions. Of
            two with one name the first is used; invalid ones are logged and left out. Objects
            that were in the list before are not read again.
        """
        return ()


class PromptProvider(BaseProvider):
    """A provider of prompts: subclass it and write `prompts`.

    Its options are `timeout`, `stale` and `shared`; see `ToolProvider`.
    """

    async def prompts(self, ctx: Context) -> Iterable[Any]:
        """List the prompts for a caller; see `ToolProvider.tools`."""
        return ()


class ResourceProvider(BaseProvider):
    """A provider of resources: subclass it and write `resources`, or `templates`, or both.

    Its options are `timeout`, `stale` and `shared`; see `ToolProvider`.
    """

    async def resources(self, ctx: Context) -> Iterable[Any]:
        """List the resources for a caller; see `ToolProvider.tools`."""
        return ()

    async def templates(self, ctx: Context) -> Iterable[Any]:
        """List the resource templates for a caller; see `ToolProvider.tools`."""
        return ()

    async def subscribe(self, uri: str, ctx: Context) -> None:
        """Take a subscription of one of its resources; by default there is nothing to do.

        Args:
            uri: The URI of the resource.
            ctx: The request.

        Raises:
            McpError: The resource cannot be watched.
        """

    async def unsubscribe(self, uri: str, ctx: Context) -> None:
        """Take the end of a subscription; called once for each that `subscribe` took.

        Args:
            uri: The URI; of any provider, since the resource may be gone by now.
            ctx: See `Server.unsubscribe`.
        """


class SkillProvider(BaseProvider):
    """A provider of skills (SEP-2640), whose files are resources.

    Nothing is kept: the extension has no notice of changed skills.
    """

    async def introduce(self, ctx: Context) -> Introduction:
        """Offer the extension."""
        return Introduction(extensions={SKILLS: {}})

    async def skills(self, ctx: Context) -> Sequence[JSONObject]:
        """List the entries of the skills, in the form of the wire."""
        return ()

    async def skill(self, uri: str, ctx: Context) -> JSONObject | None:
        """Return the entry of a skill, listed or not.

        Args:
            uri: The URI of its `SKILL.md`, as a client sent it.
            ctx: The request.

        Returns:
            The entry, in the form of the wire; None if the provider has no such skill.

        Raises:
            McpError: The skill cannot be had now.
            InsufficientScope: The caller may not have it.
        """
        return None

    async def directory(self, uri: str, cursor: object, ctx: Context) -> JSONObject | None:
        """Return a page of the direct children of a directory.

        Args:
            uri: The URI of the directory, as a client sent it.
            cursor: `cursor` of the request, unchecked.
            ctx: The request.

        Returns:
            `resources` and `nextCursor`, in the form of the wire; None if the provider has no such
            directory.

        Raises:
            McpError: The cursor is invalid (-32602), or the directory cannot be had now.
            InsufficientScope: The caller may not have it.
        """
        return None


class Provider(ToolProvider, PromptProvider, ResourceProvider):
    """A provider of everything; it offers the lists whose methods a subclass writes.

    Its options are `timeout`, `stale` and `shared`; see `ToolProvider`.
    """


def check_providers(items: Iterable[object]) -> list[Problem]:
    """Find the problems of the `providers` of a server: items that are no instances of one."""
    problems = []
    seen: list[object] = []
    for index, item in enumerate(items):
        if isinstance(item, BaseProvider):
            if any(item is each for each in seen):
                text = f"{item.name} is in the list already"
            elif not (
                item.offers or isinstance(item, SkillProvider) or _written(type(item), "introduce")
            ):
                text = f"{item.name} lists nothing; write {_methods_for(item)}"
            else:
                seen.append(item)
                continue
        elif isinstance(item, type) and issubclass(item, BaseProvider):
            text = f"is a class; write an instance: {item.__name__}(…)"
        else:
            text = f"{called(item)} is not a provider; write class …(ToolProvider)"
        problems.append(Problem(f"providers[{index}]", text))
    return problems


def _methods_for(provider: BaseProvider) -> str:
    """Word the methods that a provider may list something with."""
    names = [name for name in LISTS if hasattr(provider, name)]
    return (
        " or ".join(f"`async def {name}(self, ctx)`" for name in names) or "class …(ToolProvider)"
    )
