"""`run --reload` on stdin and stdout: a server that is started anew behind one connection.

Theory of operation. The client speaks to this process for as long as it likes; the server is a
child, and messages are passed on byte for byte. When a file changes, requests of the client are
held back, those that run get `PATIENCE` to end, the child is ended, and another one is started. It
gets what the session of the client consists of: the handshake, the log level, the subscriptions and
the open listen requests. Then it gets the requests that were held, and the client is notified that
the lists have changed. A child that ends by itself, because a file is broken, answers nothing: each
request gets an error until the next change.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from .._value import JSON
from ..engine import single_failure
from ..jsonrpc import (
    INTERNAL_ERROR,
    Batch,
    Decoded,
    ErrorResponse,
    Id,
    Malformed,
    Notification,
    Received,
    Request,
    Response,
    encode,
    encode_error,
)
from ..protocol import ACKNOWLEDGED, CHANGES
from ..transports import LineStream, Stdio, ending_on_signals, open_process, take_stdio
from ..types import META_SUBSCRIPTION_ID
from ._errors import OK
from ._reload import PYTHON, snapshot, wait_for_change, watched_folders
from ._say import note

#: Seconds that running requests get before the server is ended.
PATIENCE: Final = 5.0
#: Requests that change what a server knows of the session.
_KEPT: Final = ("logging/setLevel", "resources/subscribe")
_LISTEN: Final = "subscriptions/listen"
_BROKEN: Final = (
    "the server has ended by itself; its stderr says why. It starts with the next change"
)


def run_relay(target: str) -> int:
    """Serve on stdin and stdout, and start the server again when a file changes.

    Args:
        target: The server; its folder is watched beside the current one.

    Returns:
        The exit status, once the client or a signal has ended it.
    """
    folders = watched_folders(target)
    note(f"watching {', '.join(map(str, folders))}")
    server = Stdio(*PYTHON, "run", target, env=dict(os.environ))
    read_fd, write_fd = take_stdio()
    trio.run(partial(_serve, server, folders, read_fd, write_fd))
    return OK


async def _serve(server: Stdio, folders: Sequence[Path], read_fd: int, write_fd: int) -> None:
    client = LineStream(read_fd, write_fd)
    everything = trio.CancelScope()
    with single_failure(), ending_on_signals(everything.cancel), everything:
        async with trio.open_nursery() as nursery:
            relay = ServerRelay(client, server)
            nursery.start_soon(relay.serve_client, nursery.cancel_scope)
            while True:
                # Before the start: a file that changes while the program loads must count.
                before = snapshot(folders)
                async with trio.open_nursery() as generation:
                    generation.start_soon(relay.run_server)
                    changed = await wait_for_change(before, folders)
                    note(f"{changed} has changed")
                    await relay.settle()
                    generation.cancel_scope.cancel()


class ServerRelay:
    """Passes messages between one client and one server after the other.

    Args:
        client: The client.
        command: Starts a server.
    """

    def __init__(self, client: LineStream, command: Stdio) -> None:
        self._client = client
        self._command = command
        self._writing_back, self._writing = trio.Lock(), trio.Lock()
        self._server: LineStream | None = None
        self._holding = True  # from the end of a server to the introduction of the next
        self._broken = False  # the server has ended by itself
        self._is_first = True
        self._held: list[Received] = []
        self._running: set[Id] = set()  # requests without an answer, except listen requests
        self._idle = trio.Event()
        # The state of the session.
        self._handshake: Request | None = None
        self._is_initialized = False
        self._kept: dict[tuple[str, Id | None], Request] = {}
        self._listens: dict[Id, Request] = {}
        self._capabilities: Mapping[str, JSON] = {}
        # Requests that are repeated for a new server: the client has their answers already.
        self._repeated: dict[Id, trio.Event] = {}

    async def serve_client(self, everything: trio.CancelScope) -> None:
        """Pass on the messages of the client until it ends the connection; then end everything."""
        with suppress(trio.BrokenResourceError):
            while messages := await self._client.receive():
                for each in messages:
                    await self._take(each)
        # Its requests still get their answers.
        await self._wait_idle(also_held=True)
        everything.cancel()

    async def run_server(self) -> None:
        """Start a server, repeat the session for it, and pass on its messages until it ends."""
        self._broken, self._repeated = False, {}
        try:
            async with open_process(self._command) as (stream, _), trio.open_nursery() as tasks:
                self._server = stream
                tasks.start_soon(self._introduce)
                with suppress(trio.BrokenResourceError):
                    while messages := await stream.receive():
                        for each in messages:
                            await self._pass_back(each)
                tasks.cancel_scope.cancel()
        finally:
            self._server, self._holding = None, True
        # By itself; when a file has changed, the task is cancelled instead.
        self._broken = True
        note("the server has ended; waiting for a file to change")
        held, self._held = self._held, []
        await self._refuse([*self._running, *_requests_of(held)], _BROKEN)

    async def settle(self) -> None:
        """Hold back new requests, and wait for running ones, for a limited time."""
        self._holding = True
        await self._wait_idle()
        await self._refuse([*self._running], "the server was started again")

    async def _wait_idle(self, *, also_held: bool = False) -> None:
        """Wait for the answers of the server, for a limited time."""
        with trio.move_on_after(PATIENCE):
            while self._running or (also_held and self._held):
                self._idle = trio.Event()
                await self._idle.wait()

    async def _introduce(self) -> None:
        """Repeat the session for a new server, then let requests through."""
        if self._handshake is not None:
            await self._repeat(self._handshake)
            if self._is_initialized:
                await self._send_to_server(encode(Notification("notifications/initialized", None)))
            for request in tuple(self._kept.values()):
                await self._repeat(request)
        for listen in tuple(self._listens.values()):
            await self._repeat(listen)
        self._holding = False
        while self._held:
            await self._take(self._held.pop(0))
        if not self._is_first:
            await self._announce()
        self._is_first = False

    async def _repeat(self, request: Request) -> None:
        answered = self._repeated[request.id] = trio.Event()
        await self._send_to_server(encode(request))
        await answered.wait()

    async def _announce(self) -> None:
        """Notify the client that the lists have changed, in the form of its revision."""
        for kind, (method, key) in CHANGES.items():
            about = self._capabilities.get(kind)
            if self._is_initialized and isinstance(about, Mapping) and about.get("listChanged"):
                await self._send_to_client(encode(Notification(method, None)))
            for id_, listen in tuple(self._listens.items()):
                wanted = (listen.params or {}).get("notifications")
                if isinstance(wanted, Mapping) and wanted.get(key) is True:
                    params = {"_meta": {META_SUBSCRIPTION_ID: id_}}
                    await self._send_to_client(encode(Notification(method, params)))

    async def _take(self, received: Received) -> None:
        """Take a message of the client: pass it on, hold it, or answer it."""
        message = received.message
        if isinstance(message, Malformed):
            # Answered here: of a line that is too long, only the beginning is left.
            if message.answer:
                await self._send_to_client(encode_error(message.error))
            return
        ids = _requests_of([received])
        if ids and self._broken:
            await self._refuse(ids, _BROKEN)
        elif self._holding and (ids or self._held):
            # Also what comes behind a request: `initialized` must not overtake `initialize`.
            self._held.append(received)
        else:
            for each in _parts(message):
                self._note(each)
            await self._send_to_server(received.data)

    def _note(self, message: Decoded) -> None:
        """Record the state of the session that the next server needs."""
        if isinstance(message, Notification):
            self._is_initialized |= message.method == "notifications/initialized"
            if message.method == "notifications/cancelled":
                # The server no longer answers it.
                id_ = _id_in(message.params, "requestId")
                self._listens.pop("" if id_ is None else id_, None)
                self._end(id_)
        elif isinstance(message, Request):
            if message.method == _LISTEN:
                self._listens[message.id] = message
                return
            self._running.add(message.id)
            if message.method == "initialize":
                self._handshake = message
            elif message.method in _KEPT:
                # One log level counts, but each subscription.
                self._kept[message.method, _id_in(message.params, "uri")] = message
            elif message.method == "resources/unsubscribe":
                self._kept.pop(("resources/subscribe", _id_in(message.params, "uri")), None)

    def _end(self, id_: Id | None) -> None:
        if id_ is not None:
            if not self._holding:  # else the next server goes on with it
                self._listens.pop(id_, None)
            self._running.discard(id_)
        if not self._running:
            self._idle.set()

    async def _pass_back(self, received: Received) -> None:
        """Take a message of the server: pass it back, unless the client knows it already."""
        answers = [m for m in _parts(received.message) if isinstance(m, Response | ErrorResponse)]
        for each in answers:
            if self._handshake is not None and each.id == self._handshake.id:
                self._read_capabilities(each)
        if not any(map(self._is_known, _parts(received.message))):
            await self._send_to_client(received.data)
        # Afterwards: with the last answer this server may be ended.
        for each in answers:
            self._end(each.id)

    def _is_known(self, message: Decoded) -> bool:
        if isinstance(message, Response | ErrorResponse):
            # A server that ends closes its listen requests; for the client they stay open.
            is_kept = message.id in self._listens and self._holding
            return self._answered(message.id) or is_kept
        if isinstance(message, Notification) and message.method == ACKNOWLEDGED:
            return self._answered(_id_in((message.params or {}).get("_meta"), META_SUBSCRIPTION_ID))
        return isinstance(message, Malformed)

    def _answered(self, id_: Id | None) -> bool:
        event = None if id_ is None else self._repeated.pop(id_, None)
        if event is not None:
            event.set()
        return event is not None

    def _read_capabilities(self, answer: Response | ErrorResponse) -> None:
        result = answer.result if isinstance(answer, Response) else {}
        found = result.get("capabilities") if isinstance(result, Mapping) else None
        self._capabilities = found if isinstance(found, Mapping) else {}

    async def _refuse(self, ids: Sequence[Id], text: str) -> None:
        self._running.clear()
        self._idle.set()
        for id_ in ids:
            await self._send_to_client(encode_error(ErrorResponse(id_, INTERNAL_ERROR, text)))

    async def _send_to_server(self, data: bytes) -> None:
        """Send to the server; a message that it no longer reads is lost."""
        async with self._writing:
            if self._server is not None:
                with suppress(trio.BrokenResourceError):
                    await self._server.send([data])

    async def _send_to_client(self, data: bytes) -> None:
        """Send to the client; once it is gone, stdin ends, too."""
        async with self._writing_back:
            with suppress(trio.BrokenResourceError):
                await self._client.send([data])


def _id_in(values: JSON, key: str) -> Id | None:
    """Read an id or a text; the server reports an error for anything else."""
    found = values.get(key) if isinstance(values, Mapping) else None
    return found if isinstance(found, str | int) else None


def _parts(message: Decoded) -> Sequence[Decoded]:
    return message.messages if isinstance(message, Batch) else (message,)


def _requests_of(messages: Sequence[Received]) -> list[Id]:
    parts = [part for each in messages for part in _parts(each.message)]
    return [part.id for part in parts if isinstance(part, Request)]
