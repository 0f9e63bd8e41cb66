"""`BoundHandler`: a handler and the client that it answers for, called where its methods belong."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from ..engine import run_user_code
from ._handlers import HANDLER_METHODS, OPEN, RUNNING, ClientHandler, overrides

if TYPE_CHECKING:
    from ._client import Client

Result = TypeVar("Result")
RunTrio = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]


async def run_on_trio(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run code of a handler on the trio loop of its connection, whatever the loop of its program.

    Args:
        work: The coroutine function.

    Raises:
        BaseException: Raised by the code.
    """
    if trio.lowlevel.in_trio_task():
        return await work()
    result: Result = await RUNNING.get().run_trio(work)
    return result


class ForwardingHandler(ClientHandler):
    """Passes questions on to a handler of a program that does not run on trio.

    Args:
        handler: The handler of the program.
        present: Makes the client that the program sees from the client on trio; called when the
            connection begins. The function that it returns is called wherever `handler.client` is
            asked for.
        adapt: Makes a method that this loop can call from a method of the handler.
        run_trio: Runs a coroutine function of trio for the loop of the program.
    """

    def __init__(
        self,
        handler: ClientHandler,
        present: Callable[["Client"], Callable[[], Any]],
        adapt: Callable[[Any], Any] = lambda method: method,
        run_trio: RunTrio | None = None,
    ) -> None:
        self.inner = handler
        self.present = present
        self.run_trio = run_trio
        # Attributes of an instance count as overrides; methods of the base class do not.
        vars(self).update((name, adapt(getattr(handler, name))) for name in HANDLER_METHODS)
        settings = ("elicitation_modes", "sampling_tools")
        vars(self).update((name, getattr(handler, name)) for name in settings)


class BoundHandler:
    """A handler and one client that it answers for.

    Args:
        handler: The handler.

    Attributes:
        owner: The handler as the program has it.
        run_trio: Runs a coroutine function of trio for the loop of the program.
    """

    run_trio: RunTrio

    def __init__(self, handler: ClientHandler) -> None:
        self.owner = handler.inner if isinstance(handler, ForwardingHandler) else handler
        self._handler = handler
        self._client: Callable[[], Any]

    @property
    def client(self) -> "Client":
        """The client, as the program has it; only while it is `connected`."""
        client: Client = self._client()
        return client

    @contextmanager
    def connected(self, client: "Client") -> Iterator[None]:
        """Give the handler its client for as long as the block runs."""
        handler = self._handler
        self._client = lambda: client
        if isinstance(handler, ForwardingHandler):
            self._client = handler.present(client)
            if handler.run_trio is not None:
                self.run_trio = handler.run_trio
        OPEN.add(self)
        try:
            yield
        finally:
            OPEN.discard(self)

    def overrides(self, name: str) -> bool:
        """Tell whether the handler overrides a method; see `overrides`."""
        return overrides(self._handler, name)

    async def call(self, name: str, *args: Any, limiter: trio.CapacityLimiter) -> Any:
        """Call a method of the handler where it belongs: async ones here, others in a thread.

        Args:
            name: The method.
            args: Its arguments.
            limiter: Bounds the threads.

        Raises:
            BaseException: Whatever the method raises.
        """
        method = getattr(self._handler, name)
        # Threads and tasks that the method starts see it, too.
        token = RUNNING.set(self)
        try:
            if inspect.iscoroutinefunction(method):
                return await run_user_code(method(*args))
            work = partial(_in_thread, method, args)
            # A thread cannot be stopped: an abandoned one goes on, and keeps its place until it
            # ends.
            (result,) = await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
            # A decorator may hide that a method is async.
            return await run_user_code(result) if inspect.isawaitable(result) else result
        finally:
            RUNNING.reset(token)


def _in_thread(method: Any, args: tuple[Any, ...]) -> tuple[Any]:
    try:
        return (method(*args),)  # in a tuple: trio lets no coroutine out of a thread
    except (KeyboardInterrupt, GeneratorExit) as error:
        # Nobody pressed Ctrl-C and nobody closes a coroutine: those never reach a thread.
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error
