"""Who listens to the requests of a server."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from .._errors import Problem
from ..engine import crashes_logged
from ._events import Event, Listen, Listener


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
        self.sessions: set[object] = set()
        self.streams: set[object] = set()

    def __repr__(self) -> str:
        return f"<Telemetry {self.listeners!r}>"

    def add(self, listener: Listen) -> None:
        """Let something listen from now on; from any task or thread.

        Args:
            listener: Called with each `Event`, in the thread of the loop.

        Raises:
            TypeError: It cannot be called, or is a class.
        """
        fault = _fault_of(listener)
        if fault is not None:
            raise TypeError(f"a listener {fault}")
        self.listeners.append(listener)

    def remove(self, listener: Listen) -> None:
        """Stop something listening; from any task or thread.

        Raises:
            ValueError: It does not listen.
        """
        self.listeners.remove(listener)

    def emit(self, event: Event) -> None:
        """Tell everybody; a listener that fails is logged, and the others still hear."""
        for listener in tuple(self.listeners):
            with crashes_logged("the listener %r failed", listener):
                listener(event)

    def around(self, event: Event) -> AbstractContextManager[object]:
        """Surround the work on a request with what the listeners want around it."""
        surrounding = [each for each in tuple(self.listeners) if isinstance(each, Listener)]
        if not surrounding:
            return nullcontext()
        stack = ExitStack()
        for listener in surrounding:
            stack.enter_context(_guarded(listener, event))
        return stack


@contextmanager
def _guarded(listener: Listener, event: Event) -> Iterator[None]:
    """Enter and leave what a listener puts around a request; what that raises is logged."""
    entered: AbstractContextManager[object] | None = None
    with crashes_logged("the listener %r failed", listener):
        manager = listener.around(event)
        manager.__enter__()
        entered = manager
    try:
        yield
    finally:
        if entered is not None:
            # It is not shown what the handler raised: it could swallow a cancellation.
            with crashes_logged("the listener %r failed", listener):
                entered.__exit__(None, None, None)


def _fault_of(listener: Any) -> str | None:
    if isinstance(listener, type):
        return f"must be an instance: write {listener.__name__}(…)"
    if not callable(listener):
        return f"must be callable with an Event, got {listener!r}"
    return None


def check_listeners(listeners: Iterable[Any]) -> list[Problem]:
    """Find what is no listener in the `telemetry` of a server class."""
    faults = enumerate(map(_fault_of, listeners))
    return [Problem(f"telemetry[{n}]", fault) for n, fault in faults if fault is not None]
