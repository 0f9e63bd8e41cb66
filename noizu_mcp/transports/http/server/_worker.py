"""A worker: a process that serves beside others on one socket, as its supervisor tells it.

Theory of operation. The supervisor of `noizu-mcp run --workers` opens the sockets, and starts this
process with their descriptors in an environment variable. Two socket pairs connect the two
processes. The *control* carries frames: first the worker sends the name of its server, which says
that it serves. Then the supervisor sends words: `RETIRE`, or `READY` and `METRICS`, which the
worker answers with a text. The end of the control is the end of the supervisor, and the worker
ends, too. The *hub* leads to the records and logs that all workers share.
"""

import json
import os
import signal
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs
import trio

from ....backends import Backend
from ....telemetry import Metrics
from ....workers import (
    MOST,
    READY,
    RETIRE,
    VARIABLE,
    Balance,
    FrameStream,
    Hub,
    Place,
    SharedSockets,
)
from ..._process_end import do_nothing
from ._app import HttpApp
from ._serve_http import Serving

if TYPE_CHECKING:
    from ....server import Server


@attrs.define(eq=False)
class Worker:
    """The supervisor as a worker sees it.

    Attributes:
        sockets: The sockets to accept from.
        secret: A secret that all workers of the supervisor share.
        is_ending: True once a signal has come.
    """

    sockets: SharedSockets
    secret: str
    _place: Place
    _metrics: Metrics | None = None
    is_ending: bool = False

    @classmethod
    def from_environment(cls) -> "Worker":
        """Return the supervisor of this process, which `VARIABLE` describes.

        The variable is removed: programs that this one starts are no workers.
        """
        place = Place(**json.loads(os.environ.pop(VARIABLE)))
        for each in (place.control, place.hub):
            os.set_inheritable(each, False)
        balance = Balance(place.balance, place.number - 1)
        os.close(place.balance)
        # A SIGHUP to all processes of a service is for the supervisor. It is not ignored, since the
        # programs that this one starts would ignore it as well.
        signal.signal(signal.SIGHUP, do_nothing)
        sockets = SharedSockets(place.listeners, balance)
        return cls(sockets, place.secret, place)

    @property
    def is_first(self) -> bool:
        """Whether it has the first place."""
        return self._place.number == 1

    def backend(self) -> Backend:
        """Return the backend of all workers of the supervisor; for one call."""
        return Hub(socket.socket(fileno=self._place.hub))

    def count(self, server: "Server") -> None:
        """Count the requests of a server for `METRICS`, if prometheus_client is installed."""
        try:
            self._metrics = Metrics(server)
        except ImportError:  # the supervisor says so to whoever asks
            self._metrics = None

    def note_signal(self) -> None:
        """Record that the process ends. A signal handler may call it."""
        self.is_ending = True

    async def attend(self, app: HttpApp, host: Serving) -> None:
        """Report that the server is ready, and do what the supervisor wants, until cancelled.

        Args:
            app: The application.
            host: Its host.
        """
        control = socket.socket(fileno=self._place.control)
        control.setblocking(False)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(control))
        async with stream, trio.open_nursery() as nursery:
            frames = FrameStream(stream, MOST)
            with suppress(trio.BrokenResourceError):
                await frames.send(app.server.options.name.encode())
                while (word := await frames.receive()) is not None:
                    if word == RETIRE:
                        host.retire()
                        nursery.start_soon(self._end_quietly)
                    else:
                        text = app.details() if word == READY else await self._render()
                        await frames.send(b"%b\n%b" % (word, text))
            # The supervisor has ended; at once, if it had begun to end before.
            signal.raise_signal(signal.SIGKILL if self.is_ending else signal.SIGTERM)

    async def _render(self) -> bytes:
        if self._metrics is None:
            return b""
        return await trio.to_thread.run_sync(self._metrics.render)

    async def _end_quietly(self) -> None:
        await trio.sleep(self._place.quiet)
        signal.raise_signal(signal.SIGTERM)
