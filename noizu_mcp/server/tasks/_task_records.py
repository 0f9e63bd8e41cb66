"""The records of tasks in the backend: all that another node needs to serve them.

Theory of operation. The key of a record is the digest of the id of its task. Each record is in the
groups of its node, of its owner, and of all tasks; the limits of all nodes together are the limits
of these groups. When the owner has seen the end of a task, a small second record marks it. If a
group is full, `add` deletes a marked task, so no unread result is lost.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import attrs
import trio

from ..._errors import McpError
from ..._limits import Limits
from ..._util import utc_text
from ..._value import JSONObject
from ...backends import BackendUnavailable, Conflict, Full
from ...jsonrpc import INTERNAL_ERROR
from ...types import RequireScopes
from ..nodes._node import RETRY, Node
from ..nodes._records import digest_of
from ._known_task import KnownTask
from ._running_task import ENDED

Result = TypeVar("Result")

#: Operations in the background at one time.
PLACES: Final = 16
#: Members of a group without a limit.
_MANY: Final = 2**31
#: The group of all tasks, and of all tasks whose owners have seen the end.
_ALL: Final = "tasks"
_TOLD: Final = "told"


def unreachable() -> McpError:
    """Make the error for a task whose node or record cannot be reached now."""
    return McpError(INTERNAL_ERROR, "The tasks cannot be reached now; try again in a moment")


@attrs.frozen(eq=False, slots=False)
class TaskRecord(KnownTask):
    """A task as the backend has it.

    Attributes:
        id: The unguessable name of the task.
        owner: The key of its principal; None without authentication.
        scopes: The scopes that its call needed.
        wire: The task in wire format.
        node: The id of the node that runs it, or ran it to its end; "" if that node is gone.
        attempt: The number of this run, from 1.
        born: The time of its creation, by the clock of the backend.
        expires: The time at which it is forgotten.
        call: The call, for the next attempt; None if the task does not run again.
    """

    id: str
    owner: str | None
    scopes: Sequence[RequireScopes]
    wire: JSONObject
    node: str
    attempt: int
    born: float
    expires: float
    call: JSONObject | None = None

    @property
    def is_over(self) -> bool:
        """True in a final state."""
        return self.wire["status"] in ENDED

    @property
    def shown(self) -> JSONObject:
        """The task in wire format."""
        return self.wire

    @property
    def required(self) -> Sequence[RequireScopes]:
        """The scopes that its call needed."""
        return self.scopes

    def to_json(self) -> JSONObject:
        """Return the record as JSON."""
        scopes = [
            [each.scopes, {name: sorted(implied) for name, implied in each.hierarchy.items()}]
            for each in self.scopes
        ]
        return {**attrs.asdict(self, recurse=False), "scopes": scopes}

    def failed(self, message: str, expires: float) -> "TaskRecord":
        """Return the record of the same task with an error as its end.

        Args:
            message: The text of the error.
            expires: See Attributes.
        """
        wire = {key: value for key, value in self.wire.items() if key != "inputRequests"}
        wire |= {
            "status": "failed",
            "statusMessage": message,
            "lastUpdatedAt": utc_text(),
            "ttlMs": round((expires - self.born) * 1000),
            "error": {"code": INTERNAL_ERROR, "message": message},
        }
        return attrs.evolve(self, wire=wire, node="", expires=expires, call=None)


class TaskRecords:
    """The records of the tasks of all nodes.

    Args:
        node: This node.
        limits: The limits of all nodes together.
    """

    def __init__(self, node: Node, limits: Limits) -> None:
        self._node = node
        self._records = node.records
        self._limits = limits
        self._places = trio.Semaphore(PLACES)

    async def until_done(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat an operation until the backend answers. A few run at one time."""
        async with self._places:
            while True:
                try:
                    return await operation()
                except BackendUnavailable:
                    await trio.sleep(RETRY)

    # The other methods ask the backend once.

    async def get(self, key: str) -> tuple[TaskRecord | None, int]:
        """Return a record and its version; None and 0 if it is missing or cannot be read.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        stored = await self._records.get(key)
        record = None if stored is None else _read_record(stored.value)
        return (None, 0) if stored is None or record is None else (record, stored.version)

    async def add(self, record: TaskRecord) -> int:
        """Store the record of a new task, and return its version.

        If necessary, removes ended tasks whose owners have seen the end.

        Raises:
            Full: A limit is reached.
            BackendUnavailable: The backend cannot answer now.
        """
        limits = self._limits
        while True:
            try:
                return await self._put(record, 0, limits.tasks, limits.tasks_per_principal)
            except Full as full:
                if not await self._make_room(record.owner, full.group):
                    raise

    async def replace(self, record: TaskRecord, version: int) -> int:
        """Replace one version of a record, and return the new version.

        Raises:
            Conflict: Another version is there.
            BackendUnavailable: The backend cannot answer now.
        """
        return await self._put(record, version, _MANY, _MANY)

    async def _put(self, record: TaskRecord, version: int, tasks: int, owned: int) -> int:
        # A record without a node ends a task whose node is gone. It stays in its groups.
        groups = {}
        if record.node:
            groups = {_on(record.node): _MANY, _ALL: tasks}
            if record.owner is not None:
                groups[_of(_ALL, record.owner)] = owned
        ttl = max(1.0, record.expires - self._node.backend.now())
        return await self._records.put(
            key_of(record.id), record.to_json(), ttl=ttl, version=version, groups=groups
        )

    async def _make_room(self, owner: str | None, full: str) -> bool:
        """Remove an ended task whose owner has seen the end, from a group that is full."""
        groups = [_TOLD] if full == _ALL else []
        if owner is not None:
            groups.insert(0, _of(_TOLD, owner))
        for group in groups:
            for mark in await self._records.members(group):
                await self._records.delete(mark)
                if await self._records.delete(_key_at(mark)):
                    return True
        return False

    async def mark_delivered(self, id_: str, owner: str | None, ttl: float) -> None:
        """Record that the owner of an ended task has seen the end.

        Args:
            id_: The id of the task.
            owner: The key of its principal.
            ttl: Seconds until the task expires.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        groups = {_TOLD: _MANY}
        if owner is not None:
            groups[_of(_TOLD, owner)] = _MANY
        # A record of its own: the record of the task may be large.
        with suppress(Conflict):
            mark = f"d:{digest_of(id_)}"
            await self._records.put(mark, True, ttl=max(1.0, ttl), version=0, groups=groups)

    async def delete(self, key: str) -> None:
        """Delete a record.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        await self._records.delete(key)

    async def keys_at(self, node: str) -> list[str]:
        """Find the keys of the tasks that run at a node, or ended there.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        return await self._records.members(_on(node))


def _read_record(value: Any) -> TaskRecord | None:
    """Read a record from JSON; None if it is not of this version of the package."""
    try:
        scopes = tuple(
            RequireScopes(*scopes, hierarchy=hierarchy) for scopes, hierarchy in value["scopes"]
        )
        return TaskRecord(**{**value, "scopes": scopes})
    except (TypeError, ValueError, KeyError):
        return None


def key_of(id_: str) -> str:
    """Return the key of the record of a task."""
    return f"t:{digest_of(id_)}"


def _key_at(mark: str) -> str:
    """Return the key of the task of a mark."""
    return f"t:{mark.partition(':')[2]}"


def _on(node: str) -> str:
    return f"on:{node}"


def _of(group: str, owner: str) -> str:
    return f"{group}:{digest_of(owner)}"
