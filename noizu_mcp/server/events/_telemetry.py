"""Listeners to the requests of a server."""

import inspect
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, Final, Protocol

from ..._errors import Problem
from ...engine import MOST_CRASHES, SHOWN, Seldom, call_user_code, crashes_logged
from ._event import Event, Listen, Listener

_FAILED: Final = "the listener %r failed"


class Held(Protocol):
    """A task that runs, or is kept for its result."""

    @property
    def status(self) -> str: ...


class Telemetry:
    """The listeners of one server, and what it counts for them.

    Args:
        listeners: Who listens from the beginning.

    Attributes:
        listeners: Who listens; one list for ever, which what emits events looks at.
        sessions: The connections whose handshake is complete; up to 2025-11-25.
        streams: The event streams of HTTP that are open.
    """

    def __init__(self, listeners: Iterable[Listen] = ()) -> None:
        self.listeners: list[Listen] = list(listeners)
        self._log = Seldom(shown=SHOWN, most=MOST_CRASHES)
        self.sessions: set[object] = set()
        self.streams: set[object] = set()
        self._stores: set[Iterable[Held]] = set()

    def __repr__(self) -> str:
        return f"<Telemetry {self.listeners!r}>"

    def tasks_held(self) -> list[str]:
        """List the states of all tasks, those too that are kept for their result; in any thread."""
        return [task.status for store in tuple(self._stores) for task in store]

    @contextmanager
    def counting(self, store: Iterable[Held]) -> Iterator[None]:
        """Count the tasks of a store for as long as the block runs."""
        self._stores.add(store)
        try:
            yield
        finally:
            self._stores.discard(store)

    def add(self, listener: Listen) -> None:
        """Let something listen from now on; from any task or thread.

        Args:
            listener: Called with each `Event`, in the thread of the loop; a plain function.

        Raises:
            TypeError: It cannot be called, is a class, or is a coroutine function.
        """
        fault = _fault_of(listener)
        if fault is not None:
            raise TypeError(f"a listener {fault}")
        self.listeners.append(listener)

    def remove(self, listener: Listen) -> None:
        """Stop something listening; from any task or thread.

        Args:
            listener: As it was added.

        Raises:
            ValueError: It does not listen.
        """
        self.listeners.remove(listener)

    def emit(self, event: Event) -> None:
        """Tell everybody; a listener that fails is logged, and the others still hear.

        Args:
            event: What happened.
        """
        for listener in tuple(self.listeners):
            with crashes_logged(_FAILED, listener, log=self._log):
                call_user_code(partial(listener, event))

    def around(self, event: Event) -> AbstractContextManager[object]:
        """Surround the work on a request with what the listeners want around it.

        Args:
            event: The `start` of the request.

        Returns:
            What is entered around the work; a listener that fails in it is logged.
        """
        surrounding = [each for each in tuple(self.listeners) if isinstance(each, Listener)]
        if not surrounding:
            return nullcontext()
        stack = ExitStack()
        for listener in surrounding:
            stack.enter_context(_guarded(listener, event, self._log))
        return stack


@contextmanager
def _guarded(listener: Listener, event: Event, log: Seldom) -> Iterator[None]:
    """Enter and leave what a listener puts around a request; what that raises is logged."""
    entered: AbstractContextManager[object] | None = None
    with crashes_logged(_FAILED, listener, log=log):
        manager = call_user_code(partial(listener.around, event))
        call_user_code(manager.__enter__)
        entered = manager
    try:
        yield
    finally:
        if entered is not None:
            # It is not shown what the handler raised: it could swallow a cancellation.
            with crashes_logged(_FAILED, listener, log=log):
                call_user_code(partial(entered.__exit__, None, None, None))


def _fault_of(listener: Any) -> str | None:
    if isinstance(listener, type):
        return f"must be an instance: write {listener.__name__}(…)"
    if not callable(listener):
        return f"must be callable with an Event, got {listener!r}"
    if any(map(inspect.iscoroutinefunction, (listener, type(listener).__call__))):
        return f"must be a plain function, called in the loop; nobody awaits {listener!r}"
    return None


def check_listeners(listeners: Iterable[Any]) -> list[Problem]:
    """Find what is no listener in the `telemetry` of a server class."""
    faults = enumerate(map(_fault_of, listeners))
    return [Problem(f"telemetry[{n}]", fault) for n, fault in faults if fault is not None]
