"""A connection to a server that is opened again whenever it ends.

Theory of operation. One task (`run`) opens the connection, waits for its end, and opens it again,
until it is cancelled. States:

- *connecting*: an attempt runs. Calls wait for its end, up to their timeout;
- *connected*: calls are sent as they come. When the connection ends, those in flight fail, and an
  attempt follows: at once if it has lived for `LIVED` seconds, otherwise after a pause;
- *waiting*: a pause after a failed attempt. Calls fail at once, with its reason: the pauses grow,
  and a model must not wait a minute for a server that is known to be down;
- *failed*: no attempt can succeed, since the target names no server, or is a stream, which cannot
  be opened twice.

Nothing is sent again: a call that was in flight may have been carried out. The
state changes in one place (`_enter`), which wakes all who wait, so none of them can sleep through a
change. Memory does not grow: the last failure and the last list of tools are kept.
"""

import math
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

import trio

from .._errors import (
    PEER_FAILURES,
    ConnectionClosed,
    McpError,
    RequestTimeout,
    TargetError,
)
from .._util import growing_pause
from ..engine import KeptFailure, MessageStream, logger
from ..jsonrpc import METHOD_NOT_FOUND, Notification
from ..protocol import CHANGES
from ..types import ToolDefinition
from ._client import Client
from ._connect import TIMEOUT, connect
from ._handlers import ClientHandler
from ._list_reader import TOOLS
from ._targets import Opened

#: Seconds after which a connection counts as a success; one that ends earlier is a failed attempt.
LIVED: Final = 10.0

_RANDOM: Final = random.SystemRandom()

Status = Literal["connecting", "connected", "waiting", "failed"]


async def _sleep_after(failures: int) -> None:
    # Cut at random: programs that lost one server together must not come back together.
    await trio.sleep(growing_pause(failures) * _RANDOM.uniform(0.5, 1))


class KeptConnection:
    """A connection to a server that is opened again whenever it ends.

    Args:
        name: The name of the server.
        target: Its target; or the failure to read it.
        handler: Answers its questions and takes its notifications.
        options: The options of `connect`.
        observe: Called with each notification as it is received; must not raise.
        use: Run with each client for as long as it is connected.
        on_status: Called after each change of the state.

    Attributes:
        failure: The reason why it is not connected; None while it is, or was never tried.
        tools: The tools that it listed last, by name.
        is_listed: True if it listed them when it was last asked.
        watchers: Called whenever its tools may have changed: it is connected, or not any more, or
            it has told so. Must not raise.
        timeout: Seconds that a request may take by default.
    """

    def __init__(
        self,
        name: str,
        target: Opened | TargetError | ValueError,
        handler: ClientHandler | None,
        options: Mapping[str, Any],
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
        self.timeout: float = options.get("timeout", TIMEOUT)
        self._status: Status = "connecting"
        self._client: Client | None = None
        self._target = target
        self._handler = handler
        self._options = options
        self._observe = observe
        self._user = use
        self._on_status = on_status
        # A stream is over when it has ended, and a target that cannot be read stays so.
        self._is_for_once = isinstance(target, MessageStream | Exception)
        self._began = math.inf
        self._was_connected = False
        self._changed = trio.Event()

    @property
    def status(self) -> Status:
        """The state."""
        # Calls fail as soon as the connection ends, a moment before `run` notices: a call that
        # follows must not meet the old connection.
        client = self._client
        is_over = client is not None and client._session.pending.is_closed
        return "connecting" if is_over else self._status

    @property
    def client(self) -> Client | None:
        """The client while it is connected, else None."""
        return self._client if self.status == "connected" else None

    async def run(self) -> None:
        """Keep the connection until the calling task is cancelled, or no attempt can succeed."""
        failures = 0
        try:
            while True:
                self._began = math.inf
                failure = await self._connect_once()
                lived = trio.current_time() - self._began
                if self.failure is None:
                    # Once for each outage, however many attempts fail in it.
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
        """Open the connection and use it until it ends; return the reason of its end."""
        self._enter("connecting")
        if isinstance(self._target, Exception):
            return self._target
        # A server that fails must not end the others.
        with KeptFailure() as kept:
            async with connect(self._target, handler=self._handler, **self._options) as client:
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
            ConnectionClosed: It ended; a transport adds how.
        """
        client._session.observers.append(self._note)
        if self._observe is not None:
            client._session.observers.append(self._observe)
        if self._was_connected:
            # Lists may have changed while the server was not connected.
            for kind, (method, _) in CHANGES.items():
                if client.capabilities.has(kind):
                    client._session.receive_notice(Notification(method, None))
        self._was_connected = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen, client)
            if self._user is not None:
                nursery.start_soon(self._user, client)
            await client.wait_closed()
            nursery.cancel_scope.cancel()
        raise ConnectionClosed("the connection ended")

    async def _listen(self, client: Client) -> None:
        """Listen for the changes that the server can tell, for as long as it is connected."""
        has = client.capabilities.has
        kinds: dict[str, Any] = {kind: True for kind in CHANGES if has(f"{kind}.listChanged")}
        failures = 0
        while kinds:
            try:
                async with client.listen(**kinds):
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
        """Wait for an attempt that runs, and return the client.

        Args:
            timeout: Seconds to wait.

        Raises:
            ConnectionClosed: The server is not connected, and no attempt runs.
            RequestTimeout: The attempt has not ended in time; it goes on.
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
        """Name the server in a `ConnectionClosed` of the block."""
        try:
            yield
        except ConnectionClosed as error:
            raise ConnectionClosed(f"{self.name}: {error}") from error

    def unavailable(self) -> ConnectionClosed:
        """Make the exception for those who need the server now."""
        reason = "it is being connected" if self.failure is None else told(self.failure)
        error = ConnectionClosed(f"{self.name} is not connected: {reason}")
        # Not the failure of a present attempt, which is not known yet.
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
        except (ConnectionClosed, RequestTimeout):  # in the log already
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
            anew: Whether an answer that was kept is dropped before.

        Raises:
            Exception: One of `PEER_FAILURES`.
        """
        has_tools = client.capabilities.has("tools")
        listed = await client._lists.all(TOOLS, anew=anew) if has_tools else []
        self.is_listed = True
        self.tools = {tool.name: tool for tool in listed}


def told(failure: BaseException) -> str:
    """Tell a failure in one line; many exceptions of Python say nothing without their name."""
    if isinstance(failure, PEER_FAILURES):
        return str(failure)
    return f"{type(failure).__name__}: {failure}"
