"""Objects of a trio loop whose members are called by tasks of asyncio.

A class for asyncio is a subclass of the class for trio, so that it has the same members and the
same types. `crosses` replaces each member by its kind: coroutine functions and context managers run
on the trio side, and a property whose value is itself such an object gives the one for asyncio.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from .._util import Parameters, Returned
from ..engine.aio import TrioSide, enter_trio

Shown = TypeVar("Shown", bound=type)

#: The class for asyncio, by the class for trio. It is called with the object and the trio side.
_SHOWN: Final[dict[type, Callable[[Any, TrioSide], Any]]] = {}


def with_options_of(
    original: Callable[Parameters, Returned],
) -> Callable[[Callable[..., Returned]], Callable[Parameters, Returned]]:
    """Give a function the signature of another one."""

    def give(function: Callable[..., Returned]) -> Callable[Parameters, Returned]:
        vars(function)["__signature__"] = inspect.signature(original)
        return function

    return give


def crosses(base: type) -> Callable[[Shown], Shown]:
    """Give a class for asyncio the public members of its base, each run on the trio side.

    The objects have the attributes `_inner`, the object on the trio side, and `_side`, which runs
    its methods. Members that the class defines itself stay.

    Args:
        base: The class for trio.
    """

    def give(shown: Shown) -> Shown:
        for name, member in vars(base).items():
            if not name.startswith("_") and name not in vars(shown):
                setattr(shown, name, _cross(name, member))
        _SHOWN[base] = shown
        return shown

    return give


def check_on_asyncio(name: str, sync: str) -> None:
    """Check that a function for asyncio programs is called in a running asyncio loop.

    Args:
        name: The name of the function, which is the same for trio.
        sync: The class for programs without a loop.

    Raises:
        RuntimeError: No asyncio loop runs here.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            f"aio.{name} is for asyncio programs, and no asyncio loop runs here; in a trio program"
            f" write `async with noizu_mcp.{name}(…)`, without any loop `with {sync}(…)`"
        ) from None


def show(value: Any, side: TrioSide) -> Any:
    """Return the object for asyncio in the place of one for trio; other values as they are."""
    shown = _SHOWN.get(type(value))
    return value if shown is None else shown(value, side)


def _cross(name: str, member: Any) -> Any:
    if isinstance(member, property):

        def read(self: Any) -> Any:
            return show(getattr(self._inner, name), self._side)

        return property(read, doc=member.__doc__)
    if inspect.iscoroutinefunction(member):
        return _on_trio(member)
    if inspect.isasyncgenfunction(inspect.unwrap(member)):  # of `@asynccontextmanager`
        return _entering(member)
    return member


def _on_trio(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def crossed(self: Any, *args: Any, **options: Any) -> Any:
        return await self._side.run_trio(partial(method, self._inner, *args, **options))

    return crossed


def _entering(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def entering(self: Any, *args: Any, **options: Any) -> Any:
        return enter_trio(self._side, method(self._inner, *args, **options))

    return entering
