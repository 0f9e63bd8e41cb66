"""Methods and functions that answer requests, and how a request calls them.

A request calls one function with all values that the handler is offered; this function passes on
the values that the handler takes.
"""

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Final, Literal, NamedTuple, Protocol

from ..._value import Frozen
from ...schema import Types

Mode = Literal["async", "thread", "inline"]

POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class ProblemReporter(Protocol):
    """Takes the text of a problem, and the parameter that it is about."""

    def __call__(self, text: str, parameter: str = "") -> None: ...


class CallForm(NamedTuple):
    """The values that a handler is offered after `self`.

    A handler may leave off any of them, and is not passed these.

    Attributes:
        offers: A name for each value, in order; the last one is the context.
        least: The number of values that a method must take which is read by position; None for a
            handler whose parameters are recognised by their names.
        may_yield: True if the method may be a generator.
    """

    offers: tuple[str, ...]
    least: int | None = None
    may_yield: bool = False


class Home(NamedTuple):
    """The class that a method is read for.

    Attributes:
        cls: The class, which may inherit the method.
        types: The types of the type variables in the body that has the method.
    """

    cls: type
    types: Types


class Handler(Frozen):
    """A method or a function that answers requests.

    Attributes:
        attribute: The attribute of the component that holds it.
        function: The function itself, without the partial or the object around it.
        mode: `async`: awaited; `thread`: may block, runs in a worker thread; `inline`: short, runs
            where it is called.
        offers: The names of the values that it may take.
        passed: The parameters that take one of these values, each with the name of the value.
        properties: The parameters that are properties of the input.
        returns: The annotation of the result; `Parameter.empty` without an annotation.
        yields: True for a generator; its items become a list.
    """

    attribute: str
    function: Any
    mode: Mode
    offers: tuple[str, ...]
    passed: tuple[tuple[Parameter, str], ...]
    properties: tuple[Parameter, ...]
    returns: object
    yields: bool

    @property
    def taken(self) -> set[str]:
        """The names of the values that it takes, without properties."""
        return {name for _, name in self.passed}

    def taking(self, value: str) -> Parameter | None:
        """Find the parameter that takes a value: `args` for the whole input; None without one."""
        return next((p for p, name in self.passed if name == value), None)

    @property
    def takes_context(self) -> bool:
        """True if the handler takes the context."""
        return self.offers[-1] in self.taken

    def bind(self, instance: object) -> Callable[..., Any]:
        """Make the function that a request calls.

        Args:
            instance: The component that has the handler.

        Returns:
            A function of all values of the row.
        """
        # Looked up once, not with every call.
        method: Callable[..., Any] = getattr(instance, self.attribute)
        if self.yields:
            takes = len(self.passed)
            if self.mode == "async":

                async def collect(*values: object) -> list[Any]:
                    return [item async for item in method(*values[:takes])]

                return collect
            return lambda *values: list(method(*values[:takes]))
        given = [
            name if p.kind in POSITIONAL and not self.properties else f"{p.name}={name}"
            for p, name in self.passed
        ]
        if given == [*self.offers]:  # `(args, ctx)`: nothing to leave out
            return method
        if self.properties:
            given.append("**args")
        return _caller(", ".join(self.offers), ", ".join(given))(method)


@functools.cache
def _caller(offers: str, given: str) -> Callable[[object], Callable[..., object]]:
    """Make the function that makes a call of some shape: `lambda args, ctx: method(ctx, args)`."""
    # Generated code: a call costs no more than handwritten code. All names are names of
    # parameters, so they are identifiers.
    made: Callable[[object], Callable[..., object]] = eval(
        f"lambda method: lambda {offers}: method({given})", {}
    )
    return made


def refuse_coroutine(value: object, name: str) -> None:
    """Refuse a coroutine that a sync function returned.

    Args:
        value: The value that a sync function returned.
        name: The function that should be async.

    Raises:
        TypeError: The value is a coroutine.
    """
    if inspect.iscoroutine(value):
        value.close()  # else Python warns, at some later time, in some other place
        raise TypeError(f"a coroutine was returned; make {name} async, or await it")
