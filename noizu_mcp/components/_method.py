"""Methods that are passed a row of values: `read(uri, ctx)`, `complete(argument, prefix, ctx)`.

What a method leaves off at the end of the row it is not passed. The signature is read once, when
the class is made, by the same rules as that of a tool.
"""

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from ._declare import Declaration
from ._frozen import Frozen
from ._signature import (
    POSITIONAL,
    Mode,
    Report,
    Signature,
    is_context,
    is_generator,
    read_function,
    read_mode,
)


class Method(Frozen):
    """A method that a component has.

    Attributes:
        attribute: Its name in the class.
        offers: What it may take, in order; the context is the last.
        takes: How much of that it takes.
        mode: `async`: awaited; `thread`: may block, runs in a worker thread.
        yields: Whether it is a generator; what it yields becomes a list.
        function: The function itself.
    """

    attribute: str
    offers: tuple[str, ...]
    takes: int
    mode: Mode
    yields: bool
    function: Any

    @property
    def takes_context(self) -> bool:
        """Whether it wants the context."""
        return self.takes == len(self.offers)

    def bind(self, instance: object) -> Callable[..., Any]:
        """Make the function that a request uses.

        Args:
            instance: The component.

        Returns:
            A function of all that is offered, which passes on what the method takes.
        """
        method: Callable[..., Any] = getattr(instance, self.attribute)
        takes = self.takes
        if self.yields:
            return _collected(method, takes, self.mode)
        return method if self.takes_context else lambda *args: method(*args[:takes])


def _collected(method: Callable[..., Any], takes: int, mode: Mode) -> Callable[..., Any]:
    """Make a generator a function that returns all it yields."""

    async def collect(*args: Any) -> list[Any]:
        return [item async for item in method(*args[:takes])]

    return collect if mode == "async" else lambda *args: list(method(*args[:takes]))


def read_method(
    declaration: Declaration,
    attribute: str,
    offers: tuple[str, ...],
    *,
    least: int = 0,
    may_yield: bool = False,
) -> Method | None:
    """Read a method of a component, its own or that of a base.

    Args:
        declaration: The class statement; takes the problems.
        attribute: The name of the method.
        offers: What it may take after `self`, in order; the context is the last.
        least: How much of that it must take.
        may_yield: Whether it may be a generator.

    Returns:
        The method; None if there is none, or after problems.
    """
    owner = declaration.owner_of(attribute)
    if owner is None:
        return None
    report = declaration.reporter(attribute, owner)
    found = vars(owner)[attribute]
    function = read_function(found, report)
    if function is None:
        return None
    row = _Row(function, isinstance(found, staticmethod), declaration, report)
    takes = row.takes(offers, least)
    yields = may_yield and is_generator(function)
    mode = _generator_mode(function) if yields else read_mode(function, report, inline=False)
    if row.failed or mode is None:
        return None
    return Method(
        attribute=attribute,
        offers=offers,
        takes=takes,
        mode=mode,
        yields=yields,
        function=function,
    )


def _generator_mode(function: Any) -> Mode:
    return "async" if inspect.isasyncgenfunction(inspect.unwrap(function)) else "thread"


class _Row(Signature):
    """The parameters of a method that is passed a row of values."""

    def __init__(
        self, function: Any, is_static: bool, declaration: Declaration, report: Report
    ) -> None:
        parameters = list(inspect.signature(function).parameters.values())
        first = parameters[:0] if is_static else parameters[:1]
        self._no_self = not is_static and not any(p.kind in POSITIONAL for p in first)
        super().__init__(function, parameters[len(first) :], declaration.scope, report)

    def takes(self, offers: tuple[str, ...], least: int) -> int:
        """Check the row; say how much of it is taken."""
        example = self.example(", ".join(offers))
        if self._no_self:
            self.report(f"takes no self; write {example}")
        self.refuse_variadic(example)
        for p in self.keywords:
            if p.default is Parameter.empty:
                self.report(
                    f"takes the keyword-only {p.name!r}, which nothing passes; give it a default"
                )
        if not self.failed:
            self._check_places(offers, least, example)
        return len(self.positional)

    def _check_places(self, offers: tuple[str, ...], least: int, example: str) -> None:
        if not least <= len(self.positional) <= len(offers):
            names = ", ".join(p.name for p in self.positional)
            self.report(f"takes ({names}) and is passed ({', '.join(offers)}); write {example}")
            return
        for p, offered in zip(self.positional, offers, strict=False):
            if offered != offers[-1] and is_context(p):
                self.report(f"{p.name!r} stands where {offered} goes; write {example}")
            # A parameter that is not used may have any name that says so: `_`, `_ctx`.
            if offered == offers[-1] and not is_context(p) and not p.name.startswith("_"):
                cure = "make it keyword-only" if p.default is not p.empty else f"write {example}"
                self.report(f"{p.name!r} would be passed the context; {cure}")
