"""Collections: the registrations of one kind of component, their pages and running sets."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from ..._errors import DefinitionError, Problem
from ..._value import JSONMapping, JSONObject
from ...components import Context
from ...jsonrpc import render
from ...protocol import Revision
from ...types import Page, Wire
from ._availability import is_available
from ._pages import find_start, write_cursor

if TYPE_CHECKING:
    from ...types import RequireScopes


class Spec(Protocol):
    """An entry of a collection."""

    @property
    def hidden(self) -> bool: ...
    @property
    def definition(self) -> JSONMapping: ...
    @property
    def requires(self) -> "RequireScopes | None": ...


SpecType = TypeVar("SpecType", bound=Spec)


class CollectionKind(NamedTuple):
    """A kind of component: its names on the wire, and its definitions.

    Attributes:
        name: A noun: `tool`.
        listed: The member of a list result: `tools`.
        key: The member of a definition with the name: `name` or `uri`.
        adapt: Converts a definition to the fields of a revision.
        definition: Returns the class of the definitions, loaded on first use.
        concerns: Tells whether entries are about each other, so that `connect` has work.
        connect: Returns the entries by name, with what they say about each other.
    """

    name: str
    listed: str
    key: str
    adapt: Callable[[JSONMapping, Revision], JSONObject]
    definition: Callable[[], type[Wire]]
    concerns: Callable[[Iterable[Any]], object] = lambda _: False
    connect: Callable[[Mapping[str, Any]], dict[str, Any]] = dict


class _ShownEntries(NamedTuple):
    """The entries that are not hidden, and the rendered pages of their list."""

    source: JSONMapping  # the registrations that it was made from
    specs: tuple[Any, ...]
    keys: tuple[str, ...]
    pages: dict[tuple[int, str], bytes]


class Collection(Generic[SpecType]):
    """The registrations of one kind.

    A map that was returned to a reader never changes: `add` copies it first, but only then, so
    adding many components one by one takes linear time. Other changes replace the map. The constant
    parts of the lists are rendered once per change and revision, not once per request.

    Args:
        kind: The kind.
        specs: The registrations, in order.
        page_size: Entries per page.
        declared: True if the server declares a list of this kind, which may be empty.
        lock: The lock for changes.
        on_change: Called after each change.

    Attributes:
        scoped: True if an entry requires scopes.
        gated: True if an entry has an `available` function: the list depends on the caller.
        offered: True from the start if the list is declared, else once anything was registered. It
            never becomes False again: clients were told at the handshake.
        watchable: True once a subscribable entry was registered. It stays True for the same reason.
    """

    scoped: bool
    gated: bool

    def __init__(
        self,
        kind: CollectionKind,
        specs: Iterable[SpecType],
        page_size: int,
        *,
        declared: bool = False,
        lock: AbstractContextManager[Any] | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.kind = kind
        self.offered = declared
        self.watchable = False
        self.scoped = self.gated = False
        self._page_size = page_size
        self._lock = threading.RLock() if lock is None else lock
        self._on_change = on_change
        self._set({self.key_of(spec): spec for spec in specs})

    def key_of(self, spec: SpecType) -> str:
        """Return the name or URI of a spec."""
        return str(spec.definition[self.kind.key])

    def _set(self, specs: dict[str, SpecType]) -> None:
        self._specs = self.kind.connect(specs) if self.kind.concerns(specs.values()) else specs
        self._is_read = False
        self._kept: _ShownEntries | None = None
        self.scoped = self.gated = False
        self._note(specs.values())

    def _note(self, specs: Iterable[SpecType]) -> None:
        """Update the flags for added registrations."""
        for spec in specs:
            self.offered = True
            self.scoped = self.scoped or spec.requires is not None
            # Skills have no such option.
            self.gated = self.gated or getattr(spec, "available", None) is not None
            # Only resources and templates have the option.
            self.watchable = self.watchable or getattr(spec, "subscribable", False)

    @property
    def specs(self) -> Mapping[str, SpecType]:
        """The registrations by name, in order, including hidden ones. The map does not change."""
        with self._lock:
            self._is_read = True
            return self._specs

    @property
    def _listed(self) -> _ShownEntries:
        # One object, replaced as a whole: a reader in another thread sees the old list with its
        # pages or the new one, never a mixture.
        specs, kept = self.specs, self._kept
        if kept is None or kept.source is not specs:
            shown = tuple(spec for spec in specs.values() if not spec.hidden)
            kept = self._kept = _ShownEntries(specs, shown, tuple(map(self.key_of, shown)), {})
        return kept

    @property
    def shown(self) -> Sequence[SpecType]:
        """The entries that are not hidden, in order."""
        return self._listed.specs

    def seen_by(self, context: Context | None) -> "Collection[SpecType]":
        """Return the collection that the caller of a request sees, with items of providers.

        Args:
            context: The request; None for the registrations only.
        """
        # Only contexts of a server have it. They are defined in a layer above.
        lists: JSONMapping | None = getattr(context, "provided", None)
        return self if lists is None else lists.get(self.kind.listed, self)

    def find(self, key: str, context: Context | None = None) -> SpecType | None:
        """Find a registration by its name or URI, including hidden ones.

        Args:
            key: The name or URI.
            context: The request, whose caller must be able to use it; None for no such check.
        """
        spec = self.look_up(key, context)
        return spec if spec is not None and is_available(spec, context) else None

    def look_up(self, key: str, context: Context | None) -> SpecType | None:
        """Find a registration without the check of `available`; see `find`."""
        # Registrations first: the lists of a caller may be older. From the map itself: looking up
        # one entry is no reason to copy the map on the next change.
        found, seen = self._specs.get(key), self.seen_by(context)
        return seen.specs.get(key) if found is None and seen is not self else found

    def __contains__(self, key: object) -> bool:
        return key in self._specs

    def shown_to(self, context: Context | None) -> Sequence[SpecType]:
        """List the entries that are not hidden and are available to the caller."""
        seen = self.seen_by(context)
        return seen.usable(seen.shown, context)

    def usable(self, specs: Sequence[SpecType], context: Context | None) -> Sequence[SpecType]:
        """Filter the entries that are available to the caller of a request."""
        if not self.gated:
            return specs
        return tuple(spec for spec in specs if is_available(spec, context))

    def page(
        self,
        cursor: str | None,
        context: Context | None = None,
        *,
        include_hidden: bool = False,
    ) -> Page[SpecType]:
        """Return one page of the list.

        Args:
            cursor: The start of the page; None for the first page.
            context: The request, whose caller's list is used; None for all entries.
            include_hidden: True to include hidden entries.

        Raises:
            McpError: The cursor is invalid (-32602).
        """
        seen = self.seen_by(context)
        specs = tuple(seen.specs.values()) if include_hidden else seen.shown
        # Filtered before the page is cut: a cursor names the last entry of its page.
        return seen.cut(seen.usable(specs, context), cursor)

    async def list_for(self, cursor: str | None, context: Context) -> Page[SpecType]:
        """Return one page of the list of a caller, like an override of the server."""
        return self.page(cursor, context)

    def cut(self, items: Sequence[Any], cursor: object) -> Page[Any]:
        """Return one page of a list of specs or definitions.

        Raises:
            McpError: The cursor is invalid (-32602).
        """
        keys = tuple(str(self.definition_of(item)[self.kind.key]) for item in items)
        return self._cut(items, keys, find_start(keys, cursor))

    def _cut(self, items: Sequence[Any], keys: Sequence[str], start: int) -> Page[Any]:
        end = start + self._page_size
        more = write_cursor(end, keys[end - 1]) if end < len(keys) else None
        return Page(items[start:end], more)

    def rendered(self, cursor: object, revision: Revision) -> bytes:
        """Return one page as JSON: the members of the result, cached until a change.

        Raises:
            McpError: The cursor is invalid (-32602).
        """
        # Read once: a change in another thread must not replace it between search and page.
        listed = self._listed
        start = find_start(listed.keys, cursor)
        page = listed.pages.get((start, revision.name))
        if page is None:
            cut = self._cut(listed.specs, listed.keys, start)
            page = listed.pages[start, revision.name] = render(self.write(cut, revision))[1:-1]
        return page

    def write(self, page: Page[Any], revision: Revision) -> JSONObject:
        """Convert a page to the result of its list method.

        Args:
            page: Specs, definitions, or mappings in the format of 2026-07-28.
            revision: The revision of the client.

        Raises:
            TypeError: An entry of the page has another type.
            ProtocolError: A mapping on the page is not a valid definition.
        """
        items = [self.kind.adapt(self.definition_of(item), revision) for item in page.items]
        result: JSONObject = {self.kind.listed: items}
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor
        return result

    def definition_of(self, item: object) -> JSONMapping:
        """Return the definition of a spec, or validate a definition or a mapping.

        Raises:
            TypeError: The item has another type.
            ProtocolError: A mapping is not a valid definition.
        """
        definition = getattr(item, "definition", None)
        if isinstance(definition, Mapping):
            return definition
        wire = self.kind.definition()
        if isinstance(item, wire):
            return item.to_wire()
        if isinstance(item, Mapping):
            # An invalid definition must not be sent to a client: parsing is the check.
            return wire.from_wire(item, self.kind.name).to_wire()
        raise TypeError(f"{item!r} is no {self.kind.name}: give specs, definitions or mappings")

    def read(self, answer: object, context: Context | None = None) -> Page[Any]:
        """Convert the return value of an override: a `Page`, or a list if there is only one page.

        Args:
            answer: The return value of the override.
            context: The request; registrations that its caller may not use are left out. None to
                leave out nothing.

        Raises:
            TypeError: It is something else.
        """
        if isinstance(answer, Page):
            return Page(self.usable(answer.items, context), answer.next_cursor)
        if isinstance(answer, list | tuple):
            return Page(self.usable(answer, context))
        raise TypeError(f"a list of {self.kind.name}s must be a Page or a list, not {answer!r}")

    def change(self, edit: Callable[[dict[str, SpecType]], dict[str, SpecType]]) -> None:
        """Replace the registrations by the result of `edit`. Atomic for readers."""
        with self._lock:
            self._set(edit(dict(self._specs)))
            self._on_change()

    def add(self, specs: Sequence[SpecType]) -> None:
        """Append specs.

        Raises:
            DefinitionError: A name is taken. Nothing is added then.
        """
        new = {self.key_of(spec): spec for spec in specs}
        with self._lock:
            taken = [key for key in new if key in self._specs]
            if taken:
                text = "is registered already; remove it first, or use replace"
                where = self.kind.name
                raise DefinitionError([Problem(f"{where} {key!r}", text) for key in taken])
            if self._is_read:
                self._specs = dict(self._specs)
                self._is_read = False
            self._specs.update(new)
            if self.kind.concerns(specs):
                self._specs = self.kind.connect(self._specs)
            self._note(specs)
            self._on_change()

    def remove(self, key: str) -> None:
        """Remove a spec.

        Raises:
            KeyError: The name is not registered.
        """

        def edit(current: dict[str, SpecType]) -> dict[str, SpecType]:
            del current[key]
            return current

        self.change(edit)

    def replace(self, specs: Sequence[SpecType]) -> None:
        """Replace the specs with the same names; append new names."""
        self.change(lambda current: current | {self.key_of(spec): spec for spec in specs})


class RunningSet:
    """The running set of a server. Its methods may be called from any task or thread.

    Each call notifies the clients that the list changed, both handshake sessions and
    `subscriptions/listen` streams. A burst of calls is merged into few notifications.

    Args:
        collections: The collections of the feature: `tools`, `resources` or `prompts`.
        changed: Notifies the clients.
        bind: Binds items of the feature to instances.
    """

    def __init__(
        self,
        collections: Sequence[Collection[Any]],
        changed: Callable[[], None],
        bind: Callable[[Iterable[Any]], list[Any]],
    ) -> None:
        self._collections = collections
        self._changed = changed
        self._bind = bind

    def _expand(self, items: Iterable[Any]) -> Iterator[tuple[Collection[Any], list[Any]]]:
        specs = self._bind(items)
        for collection in self._collections:
            yield collection, [spec for spec in specs if spec.key == collection.kind.key]

    def __iter__(self) -> Iterator[Any]:
        return (spec for collection in self._collections for spec in collection.specs.values())

    def __contains__(self, name: object) -> bool:
        return any(name in collection for collection in self._collections)

    def __len__(self) -> int:
        return sum(len(collection.specs) for collection in self._collections)

    def add(self, *items: object) -> None:
        """Append classes, instances, functions or registrations.

        Names made at run time may be any printable string.

        Raises:
            DefinitionError: An item has another type, or its name is taken.
        """
        for collection, specs in self._expand(items):
            collection.add(specs)
        self._changed()

    def remove(self, name: str) -> None:
        """Remove a component by its name or URI. Running requests are not affected.

        Raises:
            KeyError: The name is unknown.
        """
        # An unknown name: the first collection raises the KeyError.
        first, *_ = self._collections
        found = (each for each in self._collections if name in each)
        next(found, first).remove(name)
        self._changed()

    def replace(self, *items: object) -> None:
        """Replace the components with equal names by classes, instances, functions or others.

        Raises:
            DefinitionError: An item has another type. Nothing is replaced then.
        """
        for collection, specs in self._expand(items):
            collection.replace(specs)
        self._changed()
