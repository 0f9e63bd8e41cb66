"""`HandleStore`: loads and stores the handles of calls.

Theory of operation. A tool with parameters that take handles runs through `run`. Read-only tools
load their handles. Other tools first hold the lock of each handle, in the order of the keys, so
that no two calls wait for each other; the locks are held until the answer is made. The handler gets
a new object each time that it is run. After it has returned, its result is converted, then each
handle that differs from what is stored is stored under the version that was loaded, and then the
call is answered. A call that fails, in whatever way, stores nothing.

A new handle gets its id while a result is converted: the class asks `COLLECT` for a record. Most
tools return none, and pay nothing: a conversion that meets a new handle raises `UnsavedHandle`, and
`answer` converts once more.

A nested call of a tool with the same handle would wait for its own caller. It works on a copy of
the caller's object instead, and gives it back when it succeeds; the outermost call stores it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import attrs
import trio

from ..._errors import ToolError
from ...backends import Backend, BackendUnavailable, Conflict, Full
from ...components import COLLECT, Handle
from ...engine import SpawnTask
from ...types import InputRequired, ToolResult
from ._backing import HandleBacking
from ._locks import Locks
from ._records import HandleRecord, StoredState, class_of, digest, key_of, new_id, pack, unpack

if TYPE_CHECKING:
    from ...components import ToolSpec
    from .._contracts import AsyncioSide
    from .._server_context import ServerContext
    from ..calls._answers import Answer
    from ..calls._call import ToolCall
    from ..registry._server_options import ServerOptions


#: The group of all handles of a server; groups of principals begin with it.
_GROUP: Final = "handles"


class HeldHandle:
    """A handle that a call has loaded.

    Args:
        cls: Its class.
        record: Its record.
        outer: The same handle in a call around this one, if that may change it; else None.

    Attributes:
        record: See Args.
        outer: See Args.
        handle: The object that the handler has.
        nested: Held by a nested call that may change it.
    """

    def __init__(self, cls: type, record: HandleRecord, outer: "HeldHandle | None") -> None:
        self._cls = cls
        self.record = record
        self.outer = outer
        self.handle: Any = None
        self.nested = trio.Lock()

    def make(self) -> Any:
        """Make the object for a run of the handler."""
        data = self.record.state.data if self.outer is None else pack(self.outer.handle)
        self.handle = unpack(self._cls, data)
        self.handle.__mcp_record__ = self.record
        return self.handle

    def give_back(self) -> None:
        """Show the changes of a nested call to the handler around it."""
        if self.outer is not None:
            for attribute in attrs.fields(self._cls):
                value = getattr(self.handle, attribute.name)
                setattr(self.outer.handle, attribute.name, value)


class LoadedHandles:
    """The handles that a call has loaded.

    Args:
        outer: The handles of the call around it; None for none.

    Attributes:
        held: The handles by their keys.
    """

    def __init__(self, outer: "LoadedHandles | None") -> None:
        self._outer = outer
        self.held: dict[str, HeldHandle] = {}

    def find_writable(self, key: str) -> HeldHandle | None:
        """Find a handle that this call, or one around it, may change."""
        found = self.held.get(key)
        if found is not None and not found.record.is_read_only:
            return found
        return None if self._outer is None else self._outer.find_writable(key)

    def use_side(self, side: "AsyncioSide") -> None:
        """Let the handler call the methods of the objects on asyncio."""
        for each in self.held.values():
            each.record.side = side

    def end(self) -> None:
        """Let the objects be of no use any longer: the locks are given back."""
        for each in self.held.values():
            each.record.is_settled, each.record.is_over = False, True


class HandleStore:
    """The handles of a server while it is served.

    Args:
        backing: Where they are kept.
        options: The options of the server.
        spawn: Runs the task that renews the locks.
    """

    def __init__(self, backing: HandleBacking, options: "ServerOptions", spawn: SpawnTask) -> None:
        self._backing = backing
        self._server = options.name
        self._limits = options.limits
        self._spawn = spawn
        self._locks = Locks()
        self._backend: Backend | None = None
        self._opened: trio.Event | None = None

    async def _open(self) -> Backend:
        """Return the backend, which the first call opens for as long as the server is served."""
        if self._opened is None:
            self._opened = trio.Event()
            self._spawn(self._serve)
        if self._backend is None:
            await self._opened.wait()
        return cast("Backend", self._backend)

    async def _serve(self) -> None:
        opened: Any = self._opened
        async with self._backing.opened() as self._backend:
            opened.set()
            await self._locks.renew(self._backend)

    # Calls

    async def run(self, call: "ToolCall", spec: "ToolSpec") -> "Answer":
        """Run the handler of a tool that takes handles, and store what it has changed.

        Raises:
            ToolError: A handle is unknown, or cannot be stored now.
        """
        outer = call.context
        handles = LoadedHandles(cast("LoadedHandles | None", outer.handles))
        async with AsyncExitStack() as stack:
            keys = await self._hold_all(call, spec, handles, stack)
            ctx = outer.with_handles(handles)

            def invoke() -> Any:
                made = {key: each.make() for key, each in handles.held.items()}
                args = {**call.args, **{name: made[key] for name, key in keys.items()}}
                # Also for a handler without ctx: on asyncio, the objects need the side of the call.
                return spec.invoke(args, ctx)

            try:
                value = await call.invoke(spec, invoke)
                return await self._finish(call, value, handles.held.values())
            finally:
                handles.end()

    async def answer(self, call: "ToolCall", value: object) -> "Answer":
        """Answer with a value that has new handles.

        Raises:
            ToolError: They cannot be stored now.
        """
        return await self._finish(call, value, ())

    async def _hold_all(
        self, call: "ToolCall", spec: "ToolSpec", handles: LoadedHandles, stack: AsyncExitStack
    ) -> Mapping[str, str]:
        """Lock and load the handles of a call.

        Returns:
            The key of each handle, by its parameter.
        """
        keys: dict[str, str] = {}
        owner = _owner_of(call.context)
        for name, cls in spec.handles.items():
            id_ = call.args.get(name)
            if id_ is not None:
                key = key_of(self._server, cls, owner, id_)
                if key is None:
                    raise _unknown(spec, name)
                keys[name] = key
        # In one order for all calls: two that want the same two handles do not block each other.
        for key, name in sorted((key, name) for name, key in keys.items()):
            if key not in handles.held:
                state = StoredState(call.args[name], key, owner)
                held = await self._hold(spec, spec.handles[name], state, handles, stack)
                if held is None:
                    raise _unknown(spec, name)
                handles.held[key] = held
        return keys

    async def _hold(
        self,
        spec: "ToolSpec",
        cls: type,
        state: StoredState,
        handles: LoadedHandles,
        stack: AsyncExitStack,
    ) -> HeldHandle | None:
        """Lock and load one handle; None if it does not exist."""
        outer = handles.find_writable(state.key)
        if outer is not None:
            if not spec.is_read_only:
                await stack.enter_async_context(outer.nested)
            if outer.record.state.is_deleted:
                return None
            state = outer.record.state
        elif not await self._load(cls, state, stack, is_read_only=spec.is_read_only):
            return None
        record = HandleRecord(self.delete, cls, state, is_read_only=spec.is_read_only)
        record.is_settled = True
        return HeldHandle(cls, record, outer)

    async def _load(
        self, cls: type, state: StoredState, stack: AsyncExitStack, *, is_read_only: bool
    ) -> bool:
        """Lock a handle unless the call is read-only, and load it; False if it does not exist."""
        with _reachable():
            backend = await self._open()
            if not is_read_only:
                holding = self._locks.hold(backend, state.key)
                state.lock = await stack.enter_async_context(holding)
            stored = await backend.get(state.key, ttl=class_of(cls).ttl)
        data = None if stored is None else self._backing.unseal(state.key, stored.value)
        # Fields that do not fit the class any longer are as good as none.
        if stored is None or data is None or unpack(cls, data) is None:
            return False
        state.data, state.version, state.expires_at = data, stored.version, stored.expires_at
        self._backing.bytes.extend(state.key, stored.expires_at)
        return True

    async def _finish(
        self, call: "ToolCall", value: object, held: Iterable[HeldHandle]
    ) -> "Answer":
        """Convert the value of a handler, and store what has changed."""
        if isinstance(value, InputRequired):
            return call.convert(value)  # the handler runs again, with what is stored
        new: dict[str, Handle] = {}
        made: list[Any] = []

        def collect(handle: Handle) -> HandleRecord:
            record: HandleRecord | None = handle.__mcp_record__
            if record is None:
                record = self._new_record(call.context, type(handle))
                # On a handle that a failure then leaves without a record again.
                vars(handle)["__mcp_record__"] = record
                made.append(handle)
            record.check("return")
            if not record.state.is_deleted:
                new[record.id] = handle
            return record

        token = COLLECT.set(collect)
        try:
            answer = call.limit_size(call.convert(value))
        finally:
            COLLECT.reset(token)
        try:
            if not (isinstance(answer, ToolResult) and answer.is_error):
                await self._store([*held], new.values())
                made.clear()
        finally:
            for handle in made:
                del vars(handle)["__mcp_record__"]
        return answer

    async def _store(self, held: Iterable[HeldHandle], new: Iterable[Handle]) -> None:
        """Store the handles of a call that has succeeded."""
        changed: list[tuple[StoredState, type, bytes]] = []
        loaded = [each for each in held if not each.record.is_read_only]
        # All are checked before the first one is stored.
        for handle in (*(each.handle for each in loaded), *new):
            state: StoredState = handle.__mcp_record__.state
            if not state.is_deleted:
                changed.append((state, type(handle), pack(handle)))
        nested = {id(each.record.state) for each in loaded if each.outer is not None}
        for state, cls, data in changed:
            # The outermost call stores what a nested one has changed.
            if data != state.data and id(state) not in nested:
                await self._put(state, cls, data)
        for each in loaded:
            each.give_back()

    def _new_record(self, ctx: "ServerContext", cls: type) -> HandleRecord:
        owner, id_ = _owner_of(ctx), new_id()
        key = key_of(self._server, cls, owner, id_) or ""
        state = StoredState(id_, key, owner)
        record = HandleRecord(self.delete, cls, state, is_read_only=_is_read_only(ctx))
        record.side = ctx.side
        return record

    # Handles

    async def save(self, ctx: "ServerContext", handle: object) -> None:
        """Store a handle at once; see `Context`.

        Raises:
            TypeError: It is no handle, it was deleted, or the tool is read-only.
            ToolError: It cannot be stored now.
        """
        if not isinstance(handle, Handle):
            raise TypeError(f"save takes a Handle, not {handle!r}")
        record: HandleRecord = handle.__mcp_record__ or self._new_record(ctx, type(handle))
        record.check("save")
        if record.state.is_deleted:
            raise TypeError("the handle was deleted; make a new one")
        await self._put(record.state, type(handle), pack(handle))
        vars(handle)["__mcp_record__"] = record

    async def delete(self, cls: type, state: StoredState) -> None:
        """Delete a handle.

        Raises:
            ToolError: Another call may be changing it, or it cannot be deleted now.
        """
        if state.is_deleted:
            await trio.lowlevel.checkpoint()
            return
        if state.lock is not None and state.lock.is_lost:
            raise _changed(cls)
        with _reachable():
            backend = await self._open()
            await backend.delete(state.key)
        state.is_deleted = True
        self._backing.bytes.discard(state.key)

    async def _put(self, state: StoredState, cls: type, data: bytes) -> None:
        """Write the fields of a handle.

        Raises:
            ToolError: There is no room, another call has changed it, or it cannot be stored now.
        """
        with _reachable():
            backend = await self._open()
        if not self._backing.bytes.has_room(state.key, state.owner, len(data), backend.now()):
            raise ToolError("Handles hold too many bytes; delete one, or try again later")
        groups: dict[str, int] = {}
        if not state.version:
            groups[_GROUP] = self._limits.handles
            if state.owner is not None:
                groups[f"{_GROUP}:{digest(state.owner)}"] = self._limits.handles_per_principal
        if state.lock is not None and state.lock.is_lost:
            raise _changed(cls)
        ttl, sealed = class_of(cls).ttl, self._backing.seal(state.key, data)
        try:
            with _reachable():
                state.version = await backend.put(
                    state.key, sealed, ttl=ttl, version=state.version, groups=groups
                )
        except Full as full:
            whose = "are kept" if full.group == _GROUP else "of yours are kept"
            raise ToolError(f"Too many handles {whose}; delete one, or try again later") from None
        except Conflict as conflict:
            # It expired while the handler ran, and is stored as a new one.
            expired = not conflict.version and backend.now() >= state.expires_at
            if not expired or state.lock is None:
                raise _changed(cls) from None
            state.version = 0
            await self._put(state, cls, data)
            return
        state.data, state.expires_at = data, backend.now() + ttl
        self._backing.bytes.set(state.key, state.owner, len(data), state.expires_at)


def _owner_of(ctx: "ServerContext") -> str | None:
    return None if ctx.auth is None else ctx.auth.key


def _is_read_only(ctx: "ServerContext") -> bool:
    """Tell whether a context belongs to the call of a read-only tool."""
    tools = ctx.request.running.server.registry.tools
    spec = None if ctx.tool is None else tools.look_up(ctx.tool, ctx)
    return spec is not None and spec.is_read_only


def _unknown(spec: "ToolSpec", name: str) -> ToolError:
    """Make the one answer to every id that is not good for this caller and this parameter."""
    cls = spec.handles[name]
    text = f"No such {cls.__name__}: {name} is unknown, has expired, or was deleted"
    sources = spec.sources.get(cls, ())
    return ToolError(f"{text}. Tools that return one: {', '.join(sources)}" if sources else text)


def _changed(cls: type) -> ToolError:
    return ToolError(f"The {cls.__name__} was changed by another call meanwhile; try again")


@contextmanager
def _reachable() -> Iterator[None]:
    """Turn the failure of the backend into an answer that the model can act on."""
    try:
        yield
    except BackendUnavailable:
        raise ToolError("Handles cannot be reached now; try again later") from None
