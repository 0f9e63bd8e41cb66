"""`SyncClient`: a client for programs without an event loop.

A trio loop runs in a separate thread while the client is open. Each method starts a task there and
waits for it.
"""

import abc
import atexit
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    suppress,
)
from functools import partial, update_wrapper
from types import TracebackType
from typing import Concatenate, Generic, Self, TypeVar

import trio

from .._util import Parameters, Returned
from ..types import (
    Implementation,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ServerCapabilities,
    ToolDefinition,
)
from ._client import Client
from ._connect import connect
from ._handlers import ClientHandler, ForwardingHandler
from ._list_reader import Definition
from ._trio_thread import HeldInThread, TrioThread, trio_thread
from ._views import ListView, LiveList

#: The value of the context manager on trio.
Inner = TypeVar("Inner")


def blocking(
    method: Callable[Concatenate[Inner, Parameters], Awaitable[Returned]],
) -> Callable[Concatenate["SyncOpened[Inner]", Parameters], Returned]:
    """Wrap a method of a client on trio in a method that waits for it."""

    def call(
        self: "SyncOpened[Inner]", /, *args: Parameters.args, **options: Parameters.kwargs
    ) -> Returned:
        return self._thread.run(lambda: method(self._client, *args, **options))

    update_wrapper(call, method)
    return call


def _entering(
    method: Callable[Concatenate[Inner, Parameters], AbstractAsyncContextManager[Returned]],
) -> Callable[Concatenate["SyncOpened[Inner]", Parameters], AbstractContextManager[Returned]]:
    """Wrap a method that returns a context manager of trio in one for plain code."""

    def enter(
        self: "SyncOpened[Inner]", /, *args: Parameters.args, **options: Parameters.kwargs
    ) -> AbstractContextManager[Returned]:
        return HeldInThread(self._thread, method(self._client, *args, **options))

    update_wrapper(enter, method)
    return enter


def with_options_of(
    _original: Callable[Parameters, object],
) -> Callable[[Callable[..., None]], Callable[Concatenate["SyncOpened[Inner]", Parameters], None]]:
    """Give `__init__` the parameters of another function."""

    def give(init: Callable[..., None]) -> Callable[..., None]:
        ours = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        signature = inspect.signature(_original)
        parameters = [ours, *signature.parameters.values()]
        vars(init)["__signature__"] = signature.replace(
            parameters=parameters, return_annotation=None
        )
        return init

    return give


class SyncLiveList(ListView[Definition]):
    """A list of the server that follows its changes: `with client.tools as tools`.

    The `LiveList` of a client, for plain code. The list may change at any time: `items` is one
    consistent state of it.

    Raises:
        BaseException: See `LiveList`.
    """

    def __init__(self, thread: TrioThread, live: LiveList[Definition]) -> None:
        vars(self).update(vars(live))
        self._thread = thread
        self._live = live
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(HeldInThread(self._thread, self._live))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._stack.__exit__(kind, error, traceback)

    def refresh(self) -> None:
        """List now, without waiting for a notification; see `LiveList`."""
        self._thread.run(self._live.refresh)

    def wait_changed(self) -> None:
        """Wait until the list has changed since the last call, or since the block began."""
        self._thread.run(self._live.wait_changed)


class SyncOpened(Generic[Inner]):
    """A client on a trio loop in a separate thread, for plain code: the base of `SyncClient`.

    Args:
        connect: Makes the context manager of trio, from a target and options.
        target: The target.
        options: The options.
        opened: The thread and the value of the context manager, if already open.
    """

    def __init__(
        self,
        connect: Callable[..., AbstractAsyncContextManager[Inner]],
        target: object,
        options: Mapping[str, object],
        opened: tuple[TrioThread, Inner] | None = None,
    ) -> None:
        self._connect = connect
        self._target = target
        self._options = options
        self._opened = opened
        self._is_open = opened is not None
        self._stack = ExitStack()
        # Held while it opens or closes: if two threads close it, both wait for the end.
        self._lock = threading.Lock()

    def open(self) -> Self:
        """Connect. `close` ends the connection, in any thread.

        Returns:
            The client itself.

        Raises:
            RuntimeError: It is open already, or the caller is a trio task.
            BaseException: See `connect`.
        """
        if trio.lowlevel.in_trio_task():
            raise RuntimeError(
                "a SyncClient would stop the trio loop: write `async with connect(…)` here"
            )
        with self._lock, ExitStack() as stack:
            if self._is_open:
                raise RuntimeError("this SyncClient is open already")
            thread = stack.enter_context(trio_thread())
            options = dict(self._options)
            if options.get("handler") is not None:
                options["handler"] = self._forward(thread, options["handler"])
            opened = self._connect(self._target, **options)
            client = stack.enter_context(HeldInThread(thread, opened))
            self._opened = thread, client
            at_exit = partial(self._close_at_exit, os.getpid())
            stack.callback(atexit.unregister, atexit.register(at_exit))
            self._stack = stack.pop_all()
            self._is_open = True
        return self

    def close(self) -> None:
        """End the connection, and wait until it has ended; running calls raise `ConnectionClosed`.

        Any thread may call it, and more than once.

        Raises:
            RuntimeError: It is called in a handler or a callback of the client.
        """
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if self._opened is not None and self._opened[0].is_current:
            raise RuntimeError("a SyncClient cannot be closed in its own handler or callbacks")
        with self._lock:
            try:
                return self._stack.__exit__(kind, error, traceback)
            finally:
                self._is_open = False

    def _close_at_exit(self, process: int) -> None:
        # A forked child has a copy of the client, but neither its thread nor its connection.
        if os.getpid() == process:
            with suppress(Exception):  # the program has ended
                self.close()

    @abc.abstractmethod
    def _forward(self, thread: TrioThread, handler: object) -> object:
        """Return a handler for a thread, to which the client for plain code is shown."""

    @property
    def _thread(self) -> TrioThread:
        return self._inside()[0]

    @property
    def _client(self) -> Inner:
        return self._inside()[1]

    def _inside(self) -> tuple[TrioThread, Inner]:
        if self._opened is None:
            raise RuntimeError(
                "this SyncClient is not open: use it in a `with` block, or open() it"
            )
        return self._opened


class SyncClient(SyncOpened[Client]):
    """A client for plain code: `with SyncClient(target) as client: client.call_tool(…)`.

    It has the options of `connect`, and the methods and attributes of `Client`; the methods block.
    Any thread may call them, several at a time, and any thread may close the client. Without a
    block, `open` and `close` begin and end the connection; if a program ends without `close`, it is
    closed then. Coroutine functions of a handler run on a trio loop in a thread of the client, as
    do callbacks for progress; they cannot call the client. It cannot be opened in a trio task,
    which it would block: use `connect` there, and `noizu_mcp.aio.connect` under asyncio.

    Args:
        target: A server, a command, a URL or a stream; see `connect`.
        **options: The options of `connect`.

    Raises:
        RuntimeError: It is opened in a trio task, or twice; or it is used before it was opened.
        BaseException: See `connect`; raised when the block is entered.
    """

    @with_options_of(connect)
    def __init__(self, target: object, **options: object) -> None:
        super().__init__(connect, target, options)

    def _forward(self, thread: TrioThread, handler: object) -> object:
        if not isinstance(handler, ClientHandler):
            return handler
        return ForwardingHandler(handler, partial(self._present, thread))

    def _present(self, thread: TrioThread, client: Client) -> Callable[[], object]:
        # The server may send requests before the connection is complete.
        self._opened = thread, client
        return lambda: client if thread.is_current else self

    @property
    def server_info(self) -> Implementation:
        """The name and version of the server."""
        return self._client.server_info

    @property
    def capabilities(self) -> ServerCapabilities:
        """The capabilities of the server."""
        return self._client.capabilities

    @property
    def instructions(self) -> str | None:
        """Its instructions for a model, or None."""
        return self._client.instructions

    @property
    def timeout(self) -> float:
        """The default timeout of a request in seconds."""
        return self._client.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._client.timeout = seconds

    @property
    def protocol_version(self) -> str:
        """The revision in use."""
        return self._client.protocol_version

    @property
    def tools(self) -> SyncLiveList[ToolDefinition]:
        """The tools, as a list that follows changes: `with client.tools as tools`."""
        return SyncLiveList(self._thread, self._client.tools)

    @property
    def prompts(self) -> SyncLiveList[PromptDefinition]:
        """The prompts, as a list that follows changes; see `tools`."""
        return SyncLiveList(self._thread, self._client.prompts)

    @property
    def resources(self) -> SyncLiveList[ResourceDefinition]:
        """The resources, as a list that follows changes; see `tools`."""
        return SyncLiveList(self._thread, self._client.resources)

    @property
    def resource_templates(self) -> SyncLiveList[ResourceTemplateDefinition]:
        """The resource templates, as a list that follows changes; see `tools`."""
        return SyncLiveList(self._thread, self._client.resource_templates)

    request = blocking(Client.request)
    notify = blocking(Client.notify)
    list_tools = blocking(Client.list_tools)
    list_resources = blocking(Client.list_resources)
    list_resource_templates = blocking(Client.list_resource_templates)
    list_prompts = blocking(Client.list_prompts)
    read_resource = blocking(Client.read_resource)
    list_skills = blocking(Client.list_skills)
    get_skill = blocking(Client.get_skill)
    read_skill = blocking(Client.read_skill)
    subscribe = blocking(Client.subscribe)
    unsubscribe = blocking(Client.unsubscribe)
    get_prompt = blocking(Client.get_prompt)
    complete = blocking(Client.complete)
    set_roots = blocking(Client.set_roots)
    call_tool = blocking(Client.call_tool)
    ping = blocking(Client.ping)
    set_log_level = blocking(Client.set_log_level)
    wait_closed = blocking(Client.wait_closed)
    listen = _entering(Client.listen)


def sync_client_of(thread: TrioThread, client: Client) -> SyncClient:
    """Make the `SyncClient` for a client that is already open in a thread."""
    made = SyncClient.__new__(SyncClient)
    SyncOpened.__init__(made, connect, None, {}, (thread, client))
    return made
