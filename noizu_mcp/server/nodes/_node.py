"""One of several processes that serve one server together: its lease, and its messages to others.

Theory of operation. What a later request may need is a record of the backend (`_records`). What
happened is an entry of a stream that other nodes read: `ALL`, which every node reads, or the inbox
of one node. Nodes never connect to each other, and none of them leads.

A node is known by a record, and alive while it renews its lease; `_renew` does both. A node that is
known and not alive is dead. The node that deletes its record acts on its death, so exactly one does
(`on_death`). A node judges others only after it has renewed its own lease in time for the length of
one lease: after an outage of the backend all leases have expired. A node whose own record
is gone was declared dead by another one (`on_declared_dead`), unless the epoch of the backend has
changed: then the backend has lost its data, and each node writes again what it holds
(`on_emptied`).

`tell` never waits. It queues a message for a stream, and a task appends what is queued as one
entry. A change that is queued already is not queued again. An entry that cannot be appended stays
until the backend answers again. The queues are bounded: when changes fill one, they become one
message, "anything may have changed". `_receive` reads the streams on from the last position. After
a gap, anything may have changed as well; and when a node dies, or leaves, that may have had unsent
changes. So each change arrives at least once, and nothing waits for another node.
"""

import math
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

import trio

from ..._value import JSON
from ...backends import Backend, BackendUnavailable, Conflict, LogEntry
from ...engine import SpawnTask, ThrottledLog, crashes_logged, logger
from ...events import BackendUse
from ...jsonrpc import render
from .._cipher import Cipher, process_secret
from ._queue import CHANGED, MessageQueue
from ._records import Records, digest_of

#: The stream that every node reads.
ALL: Final = "log"
#: Entries that streams keep for nodes that are behind.
KEEP_ALL: Final = 10_000
KEEP_INBOX: Final = 1_000
#: Seconds for which streams keep them, and after which a node is forgotten.
KEEP_SECONDS: Final = 3600.0
#: Seconds between two entries of `ALL`, for each node: all of them append at most 200 in a second.
SPACING: Final = 0.005
#: Most seconds between two renewals: the loss of the data is found at a renewal.
RENEWAL: Final = 1.0
#: Seconds between two attempts while the backend cannot be reached.
RETRY: Final = 0.25
#: Seconds that one read of the streams waits for entries.
WAIT: Final = 5.0
#: Seconds within which all nodes have written again what they hold, after a loss of the data.
EMPTIED: Final = 3.0
#: Members of the groups of nodes.
MAX_NODES: Final = 10_000
#: The kind of a message about a change of a task. Its body is the key of the record.
TASK_CHANGED: Final = "task"
#: Leases after a failure of the backend in which a dead node may have had unsent changes.
TROUBLED: Final = 3.0
#: The record of a node that has left before its last messages were sent.
_UNSENT: Final = b"unsent"
_PURPOSE: Final = b"noizu_mcp backend v1 "
_KNOWN: Final = "known"
_ALIVE: Final = "alive"

#: Acts on a message of another node: called with the sender and the arguments of `tell`.
Receiver = Callable[..., object]


class Node:
    """One process of many; see the docstring of the module.

    Args:
        name: The name of the server.
        backend: An open backend.
        secrets: The state keys of the server; empty for a random one of this process.
        spawn: Runs a task until the node ends.

    Attributes:
        id: Names the node; random.
        backend: See Args.
        records: The records of the server.
        use: What this node has asked the backend.
        alive: The ids of the nodes that were alive at the last renewal.
        receivers: What is done with a message, by its kind.
        on_gap: Called when changes may have been missed.
        on_emptied: Called when the backend has lost its data.
        on_death: Called with the id of a node that is dead, at one node.
        on_declared_dead: Called when another node has declared this one dead.
        on_flush: Called before it leaves, to write what is not written.
        has_work: Tell whether work is left that others do once they take this node for dead.
        spawn: See Args.
    """

    def __init__(self, name: str, backend: Backend, secrets: list[bytes], spawn: SpawnTask) -> None:
        self.id = os.urandom(8).hex()
        self.backend = backend
        # With the name: servers with equal keys cannot open each other's records.
        cipher = Cipher(secrets or [process_secret()], _PURPOSE + name.encode())
        self.records = Records(backend, cipher, self.note_failure)
        self.use = BackendUse()
        self.alive: frozenset[str] = frozenset()
        self.receivers: dict[str, Receiver] = {}
        self.on_gap: list[Callable[[], object]] = []
        self.on_emptied: list[Callable[[], Awaitable[object]]] = []
        self.on_death: list[Callable[[str], Awaitable[object]]] = []
        self.on_declared_dead: list[Callable[[], object]] = []
        self.on_flush: list[Callable[[], Awaitable[object]]] = []
        self.has_work: list[Callable[[], bool]] = []
        self.spawn = spawn
        self._log = ThrottledLog()
        self._queues: dict[str, MessageQueue] = {}  # with the tasks that send them
        self._sent = trio.Event()  # set when a queue is empty
        self._is_unsent = False  # at its end
        self._inbox = inbox_of(self.id)
        self._positions: dict[str, str] = {}
        self._epoch = ""
        self._failed_at = -math.inf  # when the backend failed last, on trio's clock
        self._emptied_at = -math.inf  # when the loss of the data was found, on trio's clock
        self._version = 0  # of the record of this node
        self._renewed_at = -math.inf  # on trio's clock
        self._steady_since = 0.0  # the lease was renewed in time since then

    @property
    def is_up(self) -> bool:
        """False from a failure of the backend until the next renewal that succeeds."""
        return self.use.is_up

    @property
    def position(self) -> str:
        """The position in `ALL` up to which messages were received."""
        return self._positions[ALL]

    @property
    def unrenewed(self) -> float:
        """Seconds since the lease was renewed. After `backend.lease` the node counts as dead."""
        return trio.current_time() - self._renewed_at

    # Begin and end

    async def begin(self) -> None:
        """Enter the node, and start its tasks.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        self._epoch = self.backend.epoch
        # Before anything is read that other nodes may change. The inbox comes first: what a client
        # may rely on is sent there before a change that follows it.
        self._positions = {
            self._inbox: await self.backend.end_of(self._inbox),
            ALL: await self.backend.end_of(ALL),
        }
        await self._enter()
        await self._look()
        self.spawn(partial(self._repeat, self._renew))
        self.spawn(partial(self._repeat, self._receive))

    async def flush(self) -> None:
        """Wait until everything is written, and all messages are sent."""
        for act in self.on_flush:
            await act()
        # If the time for it is over, it stays True.
        self._is_unsent = bool(self._queues)
        while self._queues:
            self._sent = trio.Event()
            await self._sent.wait()
        self._is_unsent = False

    async def end(self) -> None:
        """Leave: the other nodes must not take this one for dead. Does not raise."""
        known = f"{_KNOWN}:{self.id}"
        try:
            if self._is_unsent:
                # It stays known, so that the node that buries it sees this.
                await self.backend.put(known, _UNSENT, ttl=KEEP_SECONDS, groups={_KNOWN: MAX_NODES})
            elif not any(has() for has in self.has_work):
                await self.backend.delete(known)
            await self.backend.delete(f"{_ALIVE}:{self.id}")
        except BackendUnavailable as error:
            self.note_failure(error)

    # Messages

    def tell(self, kind: str, *body: JSON, to: str | None = None) -> None:
        """Send a message to other nodes. Does not wait.

        Args:
            kind: Names its receiver at the other nodes.
            body: The other arguments of the receiver, JSON values.
            to: The id of a node; None for all others.
        """
        stream = ALL if to is None else inbox_of(to)
        queue = self._queues.get(stream)
        if queue is None:
            queue = self._queues[stream] = MessageQueue()
            self.spawn(partial(self._send, stream, queue))
        queue.add(render([kind, *body]), is_change=kind in (CHANGED, TASK_CHANGED))

    async def send(self, kind: str, *body: JSON, to: str) -> None:
        """Send a message to another node, and wait until it is sent, if the backend can answer.

        Args:
            kind: See `tell`.
            body: See `tell`.
            to: The id of the node.
        """
        try:
            await self._append(inbox_of(to), [render([kind, *body])])
        except BackendUnavailable as error:
            self.note_failure(error)
            self.tell(kind, *body, to=to)

    async def _send(self, stream: str, queue: MessageQueue) -> None:
        try:
            while queue.messages:
                taken = queue.take()
                try:
                    await self._append(stream, taken)
                except BackendUnavailable as error:
                    queue.put_back(taken)
                    self.note_failure(error)
                    await trio.sleep(RETRY)
        finally:
            # No checkpoint since the queue was seen empty.
            del self._queues[stream]
            self._sent.set()

    async def _append(self, stream: str, messages: Iterable[bytes]) -> None:
        text = b'["%b",[%b]]' % (self.id.encode(), b",".join(messages))
        entry = self.records.seal(stream, text)
        if stream == ALL:
            await self.backend.append(stream, entry, keep=KEEP_ALL, ttl=KEEP_SECONDS)
            # The first of a burst is sent at once, the rest together.
            await trio.sleep(SPACING * max(1, len(self.alive)))
        else:
            await self.backend.append(stream, entry, keep=KEEP_INBOX, ttl=KEEP_SECONDS)

    async def _receive(self) -> None:
        """Wait for messages, and act on them."""
        for entry in await self.backend.read(self._positions, wait=WAIT):
            if isinstance(entry, LogEntry):
                self._dispatch(entry)
                continue
            self._positions[entry.stream] = entry.position
            if entry.stream == ALL:
                self.note_gap()

    def note_gap(self) -> None:
        """Act on changes that were missed: anything may have changed."""
        self._call(self.on_gap)

    def _dispatch(self, entry: LogEntry) -> None:
        messages = self.messages_of(entry)
        for message in messages[:-1]:
            self._act_on(*message)
        # Before the last one, whose receivers may tell a client where it can go on.
        self._positions[entry.stream] = entry.position
        for message in messages[-1:]:
            self._act_on(*message)

    def _act_on(self, sender: str, kind: str, *body: JSON) -> None:
        receiver = self.receivers.get(kind)
        if receiver is not None and sender != self.id:
            # A message of a newer version may have another body.
            with crashes_logged("a message of another node failed"):
                receiver(sender, *body)

    def messages_of(self, entry: LogEntry) -> list[list[Any]]:
        """Open the messages of an entry: each is a list of its sender, kind and body."""
        opened = self.records.open(entry.stream, entry.entry)
        if opened is None:
            return []
        sender, messages = opened
        return [[sender, *message] for message in messages]

    async def claim(self, key: str, ttl: float) -> bool | None:
        """Take something that only one node may take.

        Args:
            key: Names it.
            ttl: Seconds for which it stays taken.

        Returns:
            True for the first caller of all nodes; None if the backend cannot answer now.
        """
        try:
            await self.records.put(key, self.id, ttl=ttl, version=0)
        except Conflict:
            return False
        except BackendUnavailable:
            return None
        return True

    async def count(self, name: str, *, limit: int, period: float) -> float | None:
        """Count one use of all nodes against a rate limit.

        Args:
            name: What is limited; the backend learns its digest.
            limit: Uses in a period.
            period: Seconds.

        Returns:
            0.0 if it is within the limit, or the seconds to wait; None if the backend cannot
            answer now.
        """
        try:
            return await self.records.take(f"rate:{digest_of(name)}", limit=limit, period=period)
        except BackendUnavailable:
            return None

    # The lease

    async def _enter(self) -> None:
        """Write the record of this node, unless another node has deleted it.

        Raises:
            Conflict: Another node has deleted it.
        """
        # First alive, then known: other nodes may look in between.
        await self.backend.put(
            f"{_ALIVE}:{self.id}", b"", ttl=self.backend.lease, groups={_ALIVE: MAX_NODES}
        )
        self._version = await self.backend.put(
            f"{_KNOWN}:{self.id}",
            b"",
            ttl=KEEP_SECONDS,
            version=self._version,
            groups={_KNOWN: MAX_NODES},
        )
        if self.unrenewed > self.backend.lease / 2:
            self._steady_since = trio.current_time()
        self._renewed_at = trio.current_time()

    async def _look(self) -> list[str]:
        """Look which nodes are alive; return the ids of dead ones."""
        known = await self._members(_KNOWN)
        self.alive = await self._members(_ALIVE)
        return sorted(known - self.alive - {self.id})

    async def is_gone(self, node: str) -> bool:
        """Tell whether a node has left, or was declared dead.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        if node in self.alive:
            return False
        record = await self.backend.get(f"{_KNOWN}:{node}")
        # After a loss of the data, a node that is alive may not have entered again yet.
        return record is None and not self.note_loss()

    async def _members(self, group: str) -> frozenset[str]:
        return frozenset(key.partition(":")[2] for key in await self.backend.members(group))

    async def _repeat(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do something again and again, whatever the backend raises."""
        while True:
            with crashes_logged("the backend failed", log=self._log):
                try:
                    await work()
                    continue
                except BackendUnavailable as error:
                    self.note_failure(error)
            await trio.sleep(RETRY)

    async def _renew(self) -> None:
        """Renew the lease, and look for nodes that have not renewed theirs."""
        self.note_loss()
        try:
            await self._enter()
        except Conflict as conflict:
            # With a version it is the own record: the answer to the last renewal was lost. Without
            # one, the data may have been lost since the epoch was read.
            if conflict.version == 0 and not self.note_loss():
                logger.warning("another node took this one for dead: its tasks are given up")
                self._renewed_at = -math.inf  # until it has entered again
                self._call(self.on_declared_dead)
            self._version = conflict.version
            await self._enter()
        dead = await self._look()
        if not self.use.is_up:
            self.use.is_up = True
            logger.info("the backend can be reached again")
        if trio.current_time() - self._steady_since >= self.backend.lease:
            for node in dead:
                self.spawn(partial(self._bury, node))
        await trio.sleep(min(RENEWAL, self.backend.lease / 4))

    async def is_dead(self, node: str) -> bool:
        """Tell whether another node is dead; False while that cannot be judged.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        is_steady = trio.current_time() - self._steady_since >= self.backend.lease
        return is_steady and node != self.id and not await self._has_lease(node)

    async def is_alive(self, node: str) -> bool:
        """Tell whether a node is alive, or was at the last renewal.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        # It may have begun since then.
        return node in self.alive or await self._has_lease(node)

    async def _has_lease(self, node: str) -> bool:
        return await self.backend.get(f"{_ALIVE}:{node}") is not None

    async def is_forgotten(self) -> bool:
        """Tell whether the backend has lost its data, which a changed epoch may show later.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        return self.note_loss() or await self.backend.get(f"{_KNOWN}:{self.id}") is None

    async def _bury(self, node: str) -> None:
        """Act on the death of a node, unless another one does."""
        try:
            record = await self.backend.get(f"{_KNOWN}:{node}")
            is_first = await self.backend.delete(f"{_KNOWN}:{node}")
        except BackendUnavailable as error:
            self.note_failure(error)
            return
        if is_first:
            logger.warning("node %s is gone", node)
            is_unsent = record is not None and record.value == _UNSENT
            if is_unsent or trio.current_time() - self._failed_at < TROUBLED * self.backend.lease:
                # Changes may have waited there for the backend.
                self.note_gap()
                self.tell(CHANGED, None)
            for act in self.on_death:
                with crashes_logged("acting on the death of a node failed"):
                    await act(node)

    # Trouble

    def note_loss(self) -> bool:
        """Begin to write again what this node holds, if the backend has lost its data.

        Returns:
            True for a while after the loss. Other nodes may not have written their part yet.
        """
        if self.backend.epoch != self._epoch:
            self._epoch = self.backend.epoch
            self._version = 0
            self._emptied_at = self._steady_since = trio.current_time()
            logger.warning("the backend has lost its data; this node writes again what it holds")
            self.spawn(self._write_again)
        return trio.current_time() - self._emptied_at < EMPTIED

    async def _write_again(self) -> None:
        self.note_gap()
        for act in self.on_emptied:
            with crashes_logged("data could not be written to the backend again"):
                await act()

    def note_failure(self, error: BackendUnavailable) -> None:
        """Record that the backend cannot answer. It is logged once."""
        self._failed_at = trio.current_time()
        if self.use.is_up:
            self.use.is_up = False
            logger.warning("the backend cannot be reached: %s", error)

    def _call(self, hooks: list[Callable[[], object]]) -> None:
        for hook in hooks:
            with crashes_logged("a change of other nodes could not be sent"):
                hook()


def inbox_of(node: str) -> str:
    """Return the stream of messages to one node."""
    return f"in:{node}"
