"""`Network`: simulates delays, reordering and broken connections for tests."""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from random import Random
from typing import Any, get_args

import attrs
import trio

from .._errors import TargetError, TransportError
from .._util import final
from ..client import Target, read_target
from ..server import Server
from ..transports import Http
from ._flows import DrawnFaults, Flow, FlowEnd, Flows, open_link, open_relay


@final
class Network:
    """A network with faults: `connect(network.between(Docs))`.

    With the same seed, and a client and a server that send the same messages in the same order, the
    same faults happen again. The faults are those that protocols above TCP can see: while a
    connection is open, no message is lost or changed.

    Args:
        seed: The seed of all random choices.
        delay: Seconds that a message takes, or over HTTP a piece of a connection: minimum and
            maximum.
        reorder: True to let messages of one request overtake messages of another, in both
            directions, as over HTTP. Over HTTP they always may.
        drop: The probability that a message, or over HTTP a piece, breaks its connection.

    Raises:
        ValueError: `delay` or `drop` is out of range.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        delay: tuple[float, float] = (0.0, 0.0),
        reorder: bool = False,
        drop: float = 0.0,
    ) -> None:
        least, most = delay
        if not 0 <= least <= most:
            raise ValueError(f"delay must be (least, most) in seconds, not {delay!r}")
        if not 0 <= drop <= 1:
            raise ValueError(f"drop must be a probability, not {drop!r}")
        # A generator for each connection, so that connections do not affect each other.
        seeds = (f"{seed}-{number}" for number in itertools.count())
        self._faults = (DrawnFaults(Random(each), delay, drop, reorder) for each in seeds)
        self._flows: Flows = {side: {} for side in get_args(FlowEnd)}
        self._is_down = False

    def between(self, target: Target) -> AbstractAsyncContextManager[Any]:
        """Put the network between a client and a server.

        Args:
            target: A server, its class or a text that names one, which is then served in memory; or
                a URL without TLS, such as the one of `serve_over(Docs, "http")`, which can also be
                passed directly.

        Returns:
            A target of `connect`, `SyncClient` and `aio.connect`, for one connection.

        Raises:
            TargetError: The target is something else; raised when it is entered.
            TransportError: The network is down, for a server in memory; raised when it is entered.
        """
        return self._between(target)

    def cut(self) -> None:
        """Break every connection. Any thread may call it."""
        for side in self._flows:
            self._tell(side, lambda flow: flow.cut())

    def down(self) -> None:
        """Break every connection, and all new ones, until `up`. Any thread may call it."""
        self._is_down = True
        self.cut()

    def up(self) -> None:
        """Allow connections again after `down`. Any thread may call it."""
        self._is_down = False

    def half_close(self, side: FlowEnd) -> None:
        """Stop sending from one side of every connection: data in transit arrives, then the end.

        Any thread may call it.

        Args:
            side: `client` or `server`.
        """
        self._tell(side, lambda flow: flow.end())

    def _tell(self, side: FlowEnd, tell: Callable[[Flow], None]) -> None:
        """Call a function with the flows of a side: now, or soon if they are on another loop."""
        here = trio.lowlevel.current_trio_token() if trio.lowlevel.in_trio_task() else None
        for flow, loop in list(self._flows[side].items()):
            if loop is here:
                tell(flow)
            else:
                with suppress(trio.RunFinishedError):
                    loop.run_sync_soon(tell, flow)

    @asynccontextmanager
    async def _between(self, target: Target) -> AsyncIterator[Target]:
        if isinstance(target, AbstractAsyncContextManager) and not isinstance(target, Server):
            async with target as inner, self._between(inner) as reached:
                yield reached
            return
        opened = read_target(target)
        if isinstance(opened, Http):
            relay = open_relay(opened.url, self._faults, self._flows, lambda: self._is_down)
            async with relay as url:
                yield attrs.evolve(opened, url=url)
            return
        server: object = opened() if isinstance(opened, type) else opened
        if not isinstance(server, Server):
            raise TargetError(f"no network can stand before {target!r}: give a Server, or a URL")
        if self._is_down:
            raise TransportError("the network is down")
        async with open_link(server, next(self._faults), self._flows) as stream:
            yield stream
