"""Listeners to the requests of a server or a client."""

import inspect
from collections.abc import Iterable, Iterator, Sized
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, Final, Protocol
from weakref import WeakSet

from .._errors import Problem
from ..engine import (
    MOST_CRASHES,
    SHOWN,
    ThrottledLog,
    call_user_code,
    crashes_logged,
    run_user_code,
)
from ._backend_use import BackendUse
from ._event import Event, Listen, Listener

_FAILED: Final = "the listener %r failed"


class Held(Protocol):
    """A task that runs, or is kept for its result."""

    @property
    def status(self) -> str: ...


class Telemetry:
    """The listeners of one server or client, and the objects that a server counts for them.

    Args:
        listeners: The first listeners.

    Attributes:
        listeners: The listeners. The list is never replaced: each session and request holds it, and
            an empty one tells them at no cost that there is nothing to observe.
        sessions: The connections whose handshake is complete; up to 2025-11-25.
        streams: The open event streams of HTTP.
        backends: What the nodes of this process have asked their backends.
    """

    def __init__(self, listeners: Iterable[Listen] = ()) -> None:
        self.listeners: list[Listen] = list(listeners)
        self._log = ThrottledLog(shown=SHOWN, most=MOST_CRASHES)
        self.sessions: set[object] = set()
        self.streams: set[object] = set()
        self.backends: set[BackendUse] = set()
        self._stores: set[Iterable[Held]] = set()
        self._parked: WeakSet[Sized] = WeakSet()

    def __repr__(self) -> str:
        return f"<Telemetry {self.listeners!r}>"

    def tasks_held(self) -> list[str]:
        """List the states of all tasks, ended ones included; callable from any thread."""
        return [task.status for store in tuple(self._stores) for task in store]

    def parked_handlers(self) -> int:
        """Count the handlers that wait for the retry of their request; callable from any thread."""
        return sum(map(len, tuple(self._parked)))

    def count_parked(self, parked: Sized) -> None:
        """Count the parked handlers of one served server, for as long as it is served."""
        self._parked.add(parked)

    @contextmanager
    def counting(self, store: Iterable[Held]) -> Iterator[None]:
        """Count the tasks of a store for as long as the block runs."""
        self._stores.add(store)
        try:
            yield
        finally:
            self._stores.discard(store)

    def add(self, listener: Listen) -> None:
        """Add a listener; callable from any task or thread.

        Args:
            listener: Called with each `Event`, in the thread of the loop; a plain function.

        Raises:
            TypeError: The listener is not callable, or is a class or a coroutine function.
        """
        fault = _fault_of(listener)
        if fault is not None:
            raise TypeError(f"a listener {fault}")
        self.listeners.append(listener)

    def remove(self, listener: Listen) -> None:
        """Remove a listener; callable from any task or thread.

        Args:
            listener: The listener.

        Raises:
            ValueError: It was not added.
        """
        self.listeners.remove(listener)

    def emit(self, event: Event) -> None:
        """Call all listeners. An exception is logged, and the other listeners are still called.

        Args:
            event: The event.
        """
        # A copy: a listener may remove itself, and other threads may add some.
        for listener in tuple(self.listeners):
            with crashes_logged(_FAILED, listener, log=self._log):
                call_user_code(partial(listener, event))

    async def confirm(self, event: Event) -> bool:
        """Wait until all listeners that keep decisions have kept this one.

        Args:
            event: The decision; it was emitted.

        Returns:
            False if one of them failed; the failure goes to the log.
        """
        kept = True
        for listener in tuple(self.listeners):
            if isinstance(listener, Listener) and type(listener).confirm is not Listener.confirm:
                kept = False
                with crashes_logged(_FAILED, listener, log=self._log):
                    await run_user_code(listener.confirm(event))
                    kept = True
                if not kept:
                    break
        return kept

    def trace_context(self, event: Event) -> dict[str, str]:
        """Merge the `trace_context` of all listeners. Exceptions are logged.

        Args:
            event: The `start` of a request.
        """
        found: dict[str, str] = {}
        for listener in tuple(self.listeners):
            if isinstance(listener, Listener):
                with crashes_logged(_FAILED, listener, log=self._log):
                    found |= call_user_code(partial(listener.trace_context, event))
        return found

    def around(self, event: Event) -> AbstractContextManager[object]:
        """Make a context manager from the `around` of all listeners.

        Args:
            event: The `start` of the request.

        Returns:
            The context manager; a listener that fails in it is logged.
        """
        surrounding = [each for each in tuple(self.listeners) if isinstance(each, Listener)]
        if not surrounding:
            return nullcontext()
        stack = ExitStack()
        for listener in surrounding:
            stack.enter_context(_guarded(listener, event, self._log))
        return stack


@contextmanager
def _guarded(listener: Listener, event: Event, log: ThrottledLog) -> Iterator[None]:
    """Enter and leave the context manager of a listener; its exceptions are logged."""
    entered: AbstractContextManager[object] | None = None
    with crashes_logged(_FAILED, listener, log=log):
        manager = call_user_code(partial(listener.around, event))
        call_user_code(manager.__enter__)
        entered = manager
    try:
        yield
    finally:
        if entered is not None:
            # It does not see the handler's exception: it could swallow a cancellation.
            with crashes_logged(_FAILED, listener, log=log):
                call_user_code(partial(entered.__exit__, None, None, None))


def _fault_of(listener: object) -> str | None:
    if isinstance(listener, type):
        return f"must be an instance: write {listener.__name__}(…)"
    if not callable(listener):
        return f"must be callable with an Event, got {listener!r}"
    if any(map(inspect.iscoroutinefunction, (listener, type(listener).__call__))):
        return f"must be a plain function, called in the loop; nobody awaits {listener!r}"
    return None


def check_listeners(listeners: Iterable[Any]) -> list[Problem]:
    """Check the listeners in the `telemetry` of a server class."""
    faults = enumerate(map(_fault_of, listeners))
    return [Problem(f"telemetry[{n}]", fault) for n, fault in faults if fault is not None]
