"""`SyncClients`: several servers for programs without an event loop."""

from collections.abc import Callable, Iterator
from functools import partial

from ..types import ToolDefinition
from ._client import Client
from ._handlers import ForwardingHandler, each_handler
from ._kept_connection import Status
from ._several import Clients, connect_all
from ._sync import (
    SyncClient,
    SyncLiveList,
    SyncOpened,
    blocking,
    sync_client_of,
    with_options_of,
)
from ._trio_thread import TrioThread


class SyncClients(SyncOpened[Clients]):
    """Several servers for plain code: `with SyncClients("mcp.json") as clients: …`.

    It has the options of `connect_all`, and the methods and attributes of `Clients`; the methods
    block, and `clients["name"]` is a `SyncClient`, which is open as long as this object. See
    `SyncClient` for threads, handlers, and `open` and `close` without a block.

    Args:
        config: The servers; see `connect_all`.
        **options: The options of `connect_all`.

    Raises:
        RuntimeError: It is opened in a trio task, or twice; or it is used before it was opened.
        BaseException: See `connect_all`; raised when the block is entered.
    """

    @with_options_of(connect_all)
    def __init__(self, config: object, **options: object) -> None:
        super().__init__(connect_all, config, options)

    def __getitem__(self, name: str) -> SyncClient:
        return sync_client_of(self._thread, self._client[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._client)

    def __len__(self) -> int:
        return len(self._client)

    @property
    def status(self) -> dict[str, Status]:
        """The state of each server; see `Clients`."""
        return self._client.status

    @property
    def failures(self) -> dict[str, BaseException]:
        """The exception of each server that is not connected; see `Clients`."""
        return self._client.failures

    @property
    def tools(self) -> SyncLiveList[ToolDefinition]:
        """The tools of all servers, as a list that follows changes; see `Clients`."""
        return SyncLiveList(self._thread, self._client.tools)

    list_tools = blocking(Clients.list_tools)
    call_tool = blocking(Clients.call_tool)

    def _forward(self, thread: TrioThread, handler: object) -> object:
        return each_handler(
            handler, partial(ForwardingHandler, present=partial(self._present, thread))
        )

    def _present(self, thread: TrioThread, client: Client) -> Callable[[], object]:
        shown = sync_client_of(thread, client)
        return lambda: client if thread.is_current else shown
