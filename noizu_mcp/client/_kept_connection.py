"""A connection to a server that is reopened whenever it ends.

Theory of operation. One task (`run`) opens the connection, waits for its end, and opens it again,
until it is cancelled. States:

- *connecting*: an attempt is running. Calls wait for its end, up to their timeout;
- *connected*: calls are sent. When the connection ends, calls in flight fail, and an attempt
  follows: at once if the connection has lasted for `LIVED` seconds, otherwise after a pause;
- *waiting*: a pause after a failed attempt. Calls fail at once, with the reason: the pauses grow,
  and a model must not wait a minute for a server that is known to be down;
- *failed*: no attempt can succeed, since the target is not valid, or is a stream, which cannot be
  opened twice.

Nothing is sent again: a call in flight may have been processed. The state changes in one place
(`_enter`), which wakes all waiting tasks, so none of them can miss a change. Memory is bounded: the
last failure and the last list of tools are kept.
"""

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, Literal, cast

import trio

from .._errors import (
    PEER_FAILURES,
    ConnectionClosed,
    McpError,
    RequestTimeout,
    TargetError,
)
from .._util import random_pause
from ..engine import KeptFailure, MessageStream, logger
from ..jsonrpc import METHOD_NOT_FOUND, Notification
from ..protocol import CHANGES
from ..types import ToolDefinition
from ._client import Client
from ._connect import TIMEOUT, connect
from ._handlers import ClientHandler
from ._list_reader import TOOLS
from ._targets import Opened, read_entry

#: Seconds after which a connection counts as a success; an earlier end is a failed attempt.
LIVED: Final = 10.0

#: Options are passed on as they are, so their types are not known here.
_connect: Final[Callable[..., AbstractAsyncContextManager[Client]]] = connect

Status = Literal["connecting", "connected", "waiting", "failed"]


async def _sleep_after(failures: int) -> None:
    await trio.sleep(random_pause(failures))


class KeptConnection:
    """A connection to a server that is reopened whenever it ends.

    Args:
        name: The name of the server.
        target: Its target, or the exception from reading it.
        handler: Answers its requests and handles its notifications.
        options: The options of `connect`.
        observe: Called with each notification as it is received; must not raise.
        use: Run with each client while it is connected.
        on_status: Called after each change of the state.

    Attributes:
        failure: The reason why it is not connected; None while connected or never tried.
        tools: The tools of its last list, by name.
        is_listed: True if its last listing succeeded.
        watchers: Called whenever its tools may have changed: after connecting or disconnecting, or
            after a notification. Must not raise.
        timeout: The default timeout of a request in seconds.
    """

    def __init__(
        self,
        name: str,
        target: Opened | TargetError | ValueError,
        handler: ClientHandler | None,
        options: Mapping[str, object],
        *,
        observe: Callable[[Notification], object] | None = None,
        use: Callable[[Client], Awaitable[None]] | None = None,
        on_status: Callable[[Status], object] = lambda _: None,
    ) -> None:
        self.name = name
        self.failure: BaseException | None = None
        self.tools: Mapping[str, ToolDefinition] = {}
        self.is_listed = False
        self.watchers: list[Callable[[], object]] = []
        self.timeout = cast(float, options.get("timeout", TIMEOUT))
        self._status: Status = "connecting"
        self._client: Client | None = None
        self._target = target
        self._handler = handler
        self._options = options
        self._observe = observe
        self._user = use
        self._on_status = on_status
        # A stream cannot be reopened, and an invalid target stays invalid.
        self._is_for_once = isinstance(target, MessageStream | Exception)
        self._began = math.inf
        self._was_connected = False
        self._changed = trio.Event()

    @property
    def status(self) -> Status:
        """The state."""
        # Calls fail as soon as the connection ends, slightly before `run` notices: later calls must
        # not use the old connection.
        client = self._client
        is_over = client is not None and client._session.pending.is_closed
        return "connecting" if is_over else self._status

    @property
    def client(self) -> Client | None:
        """The client while connected, else None."""
        return self._client if self.status == "connected" else None

    async def run(self) -> None:
        """Keep the connection open until the task is cancelled or no attempt can succeed."""
        failures = 0
        try:
            while True:
                self._began = math.inf
                failure = await self._connect_once()
                lived = trio.current_time() - self._began
                if self.failure is None:
                    # Once for each outage, no matter how many attempts fail.
                    logger.warning("the server %s is not connected: %s", self.name, told(failure))
                self.failure = failure
                if isinstance(failure, TargetError) or self._is_for_once:
                    return
                failures = 0 if lived > LIVED else failures + 1
                if failures:
                    self._enter("waiting")
                    await _sleep_after(failures)
        finally:
            self.failure = self.failure or ConnectionClosed("the connection is no longer kept")
            self._enter("failed")

    async def _connect_once(self) -> BaseException:
        """Open the connection and use it until it ends; return the reason for its end."""
        self._enter("connecting")
        if isinstance(self._target, Exception):
            return self._target
        # A server that fails must not end the others.
        with KeptFailure() as kept:
            async with _connect(self._target, handler=self._handler, **self._options) as client:
                if self.failure is not None:
                    logger.info("the server %s is connected", self.name)
                self.failure = None
                self._began = trio.current_time()
                self._enter("connected", client)
                try:
                    await self._use(client)
                finally:
                    # Before the connection is closed, which may take seconds.
                    self._enter("connecting")
        return kept.error or ConnectionClosed("the connection ended")

    def _enter(self, status: Status, client: Client | None = None) -> None:
        self._status = status
        self._client = client
        self._changed.set()
        self._changed = trio.Event()
        self._on_status(status)
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        for tell in tuple(self.watchers):
            tell()

    def _note(self, notice: Notification) -> None:
        if notice.method == CHANGES["tools"][0]:
            self._tell_watchers()

    async def _use(self, client: Client) -> None:
        """Listen for changes until the connection ends.

        Raises:
            ConnectionClosed: The connection ended; a transport adds the reason.
        """
        client._session.observers.append(self._note)
        if self._observe is not None:
            client._session.observers.append(self._observe)
        if self._was_connected:
            # Lists may have changed while the server was not connected.
            client._session.report_changes(filter(client.capabilities.has, CHANGES))
        self._was_connected = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen, client)
            if self._user is not None:
                nursery.start_soon(self._user, client)
            await client.wait_closed()
            nursery.cancel_scope.cancel()
        raise ConnectionClosed("the connection ended")

    async def _listen(self, client: Client) -> None:
        """Listen for the changes that the server can report, while it is connected."""
        has = client.capabilities.has
        listen: Callable[..., AbstractAsyncContextManager[object]] = client.listen
        kinds = {kind: True for kind in CHANGES if has(f"{kind}.listChanged")}
        failures = 0
        while kinds:
            try:
                async with listen(**kinds):
                    # A list that was read before may have changed since, without a notification.
                    self._tell_watchers()
                    await trio.sleep_forever()
            except PEER_FAILURES as error:
                if isinstance(error, McpError) and error.code == METHOD_NOT_FOUND:
                    logger.warning("the server %s tells no changes: %s", self.name, error)
                    return
                logger.debug("the server %s tells no changes now: %s", self.name, error)
            failures += 1
            await _sleep_after(failures)

    async def ready(self, timeout: float) -> Client:
        """Wait for a running attempt, and return the client.

        Args:
            timeout: Seconds to wait.

        Raises:
            ConnectionClosed: The server is not connected, and no attempt is running.
            RequestTimeout: The attempt has not ended in time. It continues.
        """
        with trio.move_on_after(timeout):
            while self.status == "connecting":
                await self._changed.wait()
        client = self.client
        if client is not None:
            return client
        if self.status == "connecting":
            raise RequestTimeout(f"{self.name} did not connect within {timeout:g} s")
        raise self.unavailable()

    @contextmanager
    def named_in_failures(self) -> Iterator[None]:
        """Add the name of the server to a `ConnectionClosed` of the block."""
        try:
            yield
        except ConnectionClosed as error:
            raise ConnectionClosed(f"{self.name}: {error}") from error

    def unavailable(self) -> ConnectionClosed:
        """Make the exception for calls while the server is not connected."""
        reason = "it is being connected" if self.failure is None else told(self.failure)
        error = ConnectionClosed(f"{self.name} is not connected: {reason}")
        # Not the failure of the current attempt, which is not known yet.
        error.__cause__ = self.failure
        return error

    async def wait_settled(self) -> None:
        """Wait until the first attempt has ended."""
        while self.status == "connecting":
            await self._changed.wait()

    async def list_tools(self) -> Mapping[str, ToolDefinition]:
        """List the tools of the server by name; none while it is not connected, or cannot list."""
        self.is_listed = False
        try:
            client = await self.ready(self.timeout)
        except (ConnectionClosed, RequestTimeout):  # logged already
            return {}
        try:
            await self.read_tools(client)
        except PEER_FAILURES as error:
            logger.warning("left out the tools of %s: %s", self.name, error)
            return {}
        return self.tools

    async def read_tools(self, client: Client, *, anew: bool = False) -> None:
        """Read the tools of the server.

        Args:
            client: The present client.
            anew: True to drop the cached answer first.

        Raises:
            Exception: One of `PEER_FAILURES`.
        """
        has_tools = client.capabilities.has("tools")
        listed = await client._lists.all(TOOLS, anew=anew) if has_tools else []
        self.is_listed = True
        self.tools = {tool.name: tool for tool in listed}


def read_kept(entry: object, where: str) -> Opened | TargetError | ValueError:
    """Read a target; if it is malformed, return the exception, for `KeptConnection`.

    Args:
        entry: See `read_entry`.
        where: Names the entry in errors.
    """
    try:
        return read_entry(entry, where)
    except (TargetError, ValueError) as error:
        return error


def told(failure: BaseException) -> str:
    """Describe a failure in one line; exceptions of Python are often unclear without their type."""
    if isinstance(failure, PEER_FAILURES):
        return str(failure)
    return f"{type(failure).__name__}: {failure}"
