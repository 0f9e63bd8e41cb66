"""A connection to Redis that is kept up: the only file that knows the client library, coredis.

coredis writes in one task and reads in another, and gives answers to requests in order. A
request whose caller was cancelled keeps its place, and its answer is dropped. Its buffers have no
bound, so requests are counted here before they are made, and replies while they arrive.

A `Link` is up, or it is down, and then every request is refused at once. It goes down where the
connection breaks, where three requests in a row get no answer in time, or where a beat, sent every
half second, gets none. Then it connects again: at once, and later every half second.
"""

import logging
import os
import re
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from errno import errorcode
from typing import Any, Final, Self

import trio
from anyio import connect_tcp, connect_unix
from anyio.abc import ByteStream
from coredis.connection import BaseConnection, UnixDomainSocketLocation
from coredis.exceptions import (
    AuthenticationError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    UnknownCommandError,
)
from coredis.exceptions import (
    ConnectionError as ConnectionLost,
)

from .._groups import leaves
from .._util import random_pause
from ._address import Address
from ._interface import BackendUnavailable
from ._scripts import Script

#: Maximum size of a reply, in bytes: above what scripts return, and 100 entries of two streams.
MAX_REPLY: Final = 32 * 2**20
#: Maximum size of requests without an answer, in bytes; coredis copies them once.
MAX_WAITING: Final = 24 * 2**20
#: Seconds from one beat, or try to connect, to the next.
BEAT: Final = 0.5
#: Seconds after which a connection has lasted.
LASTING: Final = 5.0
#: Requests in a row without an answer in time, until the connection is given up.
FAILURES: Final = 3

_ours: ContextVar[bool] = ContextVar("noizu_mcp_redis", default=False)


def _is_foreign(_record: logging.LogRecord) -> bool:
    # coredis logs a traceback for each connection that fails; a link tells its owner instead.
    return not _ours.get()


class Refused(BackendUnavailable):
    """A later try to connect will meet the same reason."""


class Link:
    """One connection to Redis, connected again whenever it breaks.

    Args:
        address: Where Redis is.
        timeout: Seconds that an answer may take.
        attempt: Seconds that a try to connect may take.
        max_waiting: Maximum number of requests without an answer.
        beat: Called with each new connection before others may use it, and then every half second.
            None for the connection of commands that wait: a cancelled command ends it, since it
            would hold up the next one.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout: float,
        attempt: float,
        max_waiting: int,
        beat: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.is_up = False
        self._address = address
        self._tls = (
            (address.ssl_context or ssl.create_default_context()) if address.has_tls else None
        )
        self._beat = beat
        self._timeout = timeout
        self._attempt = attempt
        self._max_waiting = max_waiting
        self._connection: BaseConnection | None = None
        # Of the connection, or the try to connect.
        self._scope = trio.CancelScope()
        # Why the last try to connect failed.
        self._error: BaseException | None = None
        self._tried = trio.Event()
        # Answers come in the order of requests: the complete ones stand at the front.
        self._waiting: deque[tuple[Any, int]] = deque()
        self._bytes = 0
        self._failures = 0

    async def wait_up(self) -> None:
        """Wait until the link is up.

        Raises:
            Refused: Waiting is in vain.
        """
        while not self.is_up:
            if isinstance(self._error, Refused):
                raise self._error
            await self._tried.wait()

    def explain(self) -> str:
        """Return a line that says why the link is not up."""
        error = self._error
        if isinstance(error, BackendUnavailable):
            return str(error)
        if isinstance(error, RedisError):
            database = f" (database {self._address.db})" if self._address.db else ""
            return f"Redis at {self._address} cannot be used: {_reason(error)}{database}"
        reason = "no answer" if error is None else _reason(error)
        return f"no Redis answers at {self._address}: {reason}"

    def drop(self) -> None:
        """Give the connection up; `keep` makes another one."""
        self.is_up = False
        self._scope.cancel()

    async def keep(self) -> None:
        """Keep the link up until cancelled."""
        logging.getLogger("coredis").addFilter(_is_foreign)
        _ours.set(True)
        failures = 0
        while True:
            start = trio.current_time()
            try:
                await self._run()
                text = f"the connection to Redis at {self._address} is lost"
                self._error = BackendUnavailable(text)
            except* (RedisError, BackendUnavailable, OSError) as group:
                self._error = next(leaves(group))
            self._signal()
            # A connection that lasted is replaced at once; after a failure the pause grows.
            has_lasted = trio.current_time() - start > LASTING
            failures = 0 if has_lasted else failures + 1
            await trio.sleep(random_pause(failures, first=0.05, longest=BEAT))

    async def _run(self) -> None:
        """Connect, and return when the connection ends; what prevents a connection is raised."""
        async with trio.open_nursery() as nursery:
            self._scope = nursery.cancel_scope
            with trio.move_on_after(self._attempt) as scope:
                try:
                    ended = await self._connect(nursery)
                except RedisError:
                    # coredis raises an error in the place of a cancellation.
                    await trio.lowlevel.checkpoint()
                    raise
            if scope.cancelled_caught:
                raise BackendUnavailable(f"no Redis answers at {self._address}: no answer")
            self.is_up = True
            self._signal()
            await self._serve(ended)
            nursery.cancel_scope.cancel()

    async def _connect(self, nursery: trio.Nursery) -> trio.Event:
        """Connect and log in; the event is set when the connection ends."""
        place, ended = self._address, trio.Event()
        if place.path:
            stream: ByteStream = await connect_unix(place.path)
        elif self._tls is None:
            stream = await connect_tcp(place.host, place.port)
        else:
            stream = await connect_tcp(
                place.host, place.port, ssl_context=self._tls, tls_standard_compatible=False
            )
        connection = _Connection(stream, place)

        async def run(task_status: trio.TaskStatus[None]) -> None:
            try:
                await connection.run(task_status=task_status)
            finally:
                ended.set()

        try:
            await nursery.start(run)
        except AuthenticationError:
            raise Refused(f"Redis at {place} refuses the user or the password") from None
        except UnknownCommandError:
            raise Refused(f"Redis at {place} is older than 6.2") from None
        version = re.match(r"(\d+)\.(\d+)", str(connection.server_version))
        if version is None or (int(version[1]), int(version[2])) < (6, 2):
            raise Refused(f"Redis at {place} is older than 6.2")
        self._waiting.clear()
        self._bytes = self._failures = 0
        self._connection = connection
        if self._beat is not None:
            await self._beat()
        return ended

    async def _serve(self, ended: trio.Event) -> None:
        try:
            while self._beat is not None and self.is_up and not ended.is_set():
                with trio.move_on_after(BEAT):
                    await ended.wait()
                await self._beat()
            await ended.wait()
        except BackendUnavailable:
            pass
        finally:
            self.is_up = False

    def _signal(self) -> None:
        self._tried.set()
        self._tried = trio.Event()

    async def run_script(
        self,
        script: Script,
        keys: Sequence[bytes],
        *args: bytes,
        wait: float = 0.0,
        urgent: bool = False,
    ) -> Any:
        """Run a script, which Redis need not know yet.

        Args:
            script: The script.
            keys: Its keys.
            args: Its other arguments.
            wait: As for `request`.
            urgent: Whether it takes no place among the others, and may run before the link is up.

        Raises:
            BackendUnavailable: There is no answer in time, or an error.
        """
        rest = (b"%d" % len(keys), *keys, *args)
        try:
            return await self.request(b"EVALSHA", script.digest, *rest, wait=wait, urgent=urgent)
        except NoScriptError:
            return await self.request(b"EVAL", script.text, *rest, wait=wait, urgent=urgent)

    async def request(
        self, command: bytes, *args: bytes, wait: float = 0.0, urgent: bool = False
    ) -> Any:
        """Send one command and return its answer.

        Args:
            command: The command.
            args: Its arguments.
            wait: Seconds that the answer may take beyond the timeout; below 0 for a command that
                has waited.
            urgent: As for `run_script`.

        Raises:
            BackendUnavailable: There is no answer in time, or an error.
        """
        connection, waiting = self._connection, self._waiting
        while waiting and waiting[0][0].complete:
            self._bytes -= waiting.popleft()[1]
        size = sum(map(len, args))
        is_crowded = len(waiting) >= self._max_waiting or self._bytes + size > MAX_WAITING
        if connection is None or not (self.is_up or urgent) or (is_crowded and not urgent):
            # Who tries again in a loop must not stop the others.
            await trio.lowlevel.checkpoint()
            crowd = f"too many operations wait for Redis at {self._address}"
            raise BackendUnavailable(crowd if self.is_up else self.explain())
        try:
            # coredis takes 0 for no limit.
            timeout = max(self._timeout + wait, 0.001)
            request = connection.create_request(command, *args, timeout=timeout)
            waiting.append((request, size))
            self._bytes += size
            answer = await request
        except trio.Cancelled:
            if self._beat is None:
                # The command waits on, and would hold up the next one.
                self.drop()
            raise
        except NoScriptError:
            raise
        except (RedisError, TimeoutError) as error:
            # A broken connection refuses requests at once.
            await trio.lowlevel.checkpoint()
            raise BackendUnavailable(self._failure(error)) from None
        self._failures = 0
        return answer

    def _failure(self, error: Exception) -> str:
        """Return a line for a failed request; drop a connection that another may replace."""
        if isinstance(error, TimeoutError):
            self._failures += 1
            if self._beat is None or self._failures >= FAILURES:
                self.drop()
            return f"Redis at {self._address} gave no answer in {self._timeout:g} s"
        if isinstance(error, ReadOnlyError):
            # A replica: after a failover another connection leads to the primary.
            self.drop()
        if type(error) is ConnectionLost:
            return f"the connection to Redis at {self._address} is lost"
        return f"Redis at {self._address} failed: {_reason(error)}"


def _reason(error: BaseException) -> str:
    """Return why something failed, without the text of a reply, which may quote data."""
    while isinstance(error.__cause__, OSError):
        error = error.__cause__
    if isinstance(error, ssl.SSLError):
        return str(error)
    if isinstance(error, OSError):
        # Libraries put their own words around the text of the system.
        number = error.errno or 0
        return os.strerror(number) if number in errorcode else str(error)
    word = str(error).partition(" ")[0]
    return word if word.isupper() else type(error).__name__


class _BoundedStream:
    """A stream of bytes that fails where a single reply becomes too large."""

    def __init__(self, stream: ByteStream, connection: BaseConnection) -> None:
        self._stream = stream
        self._statistics = connection.statistics
        self._answered = 0
        self._unanswered = 0

    async def receive(self) -> bytes:
        data = await self._stream.receive()
        if self._statistics.requests_resolved != self._answered:
            self._answered = self._statistics.requests_resolved
            self._unanswered = 0
        self._unanswered += len(data)
        if self._unanswered > MAX_REPLY:
            raise RedisError("TOOLARGE")
        return data

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.aclose()


class _Connection(BaseConnection):
    """A connection over a stream that is connected already.

    coredis would leave its buffers open where it cannot connect.
    """

    def __init__(self, stream: ByteStream, address: Address) -> None:
        place = UnixDomainSocketLocation(str(address))
        super().__init__(place, db=address.db, username=address.user, password=address.password)
        self._connected = _BoundedStream(stream, self)

    async def _connect(self) -> Any:
        return self._connected

    describe = object.__repr__
