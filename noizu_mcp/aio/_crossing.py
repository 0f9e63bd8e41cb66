"""Objects of a trio loop whose members are called by tasks of asyncio.

A class for asyncio is a subclass of `AsyncioAdapter` and of the class for trio, so that it has the
same members and the same types. Each public member is replaced by its kind: coroutine functions and
context managers run on the trio side, and a property whose value is itself such an object returns
the one for asyncio.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, Generic, TypeVar, cast

from .._util import Parameters, Returned
from ..engine.aio import TrioSide, enter_trio

OfTrio = TypeVar("OfTrio")

#: The class for asyncio, by the class for trio. It is called with the object and the trio side.
_SHOWN: Final[dict[type, Callable[[object, TrioSide], object]]] = {}


def with_options_of(
    original: Callable[Parameters, Returned],
) -> Callable[[Callable[..., Returned]], Callable[Parameters, Returned]]:
    """Give a function the signature of another one."""

    def give(function: Callable[..., Returned]) -> Callable[Parameters, Returned]:
        vars(function)["__signature__"] = inspect.signature(original)
        return function

    return give


class AsyncioAdapter(Generic[OfTrio]):
    """The base of the classes for asyncio; the class for trio is their last base.

    Members that such a class defines itself are not replaced.

    Args:
        inner: The object on the trio side. Its attributes are shared, not copied: a renewed
            session may change them.
        side: Runs its methods.
    """

    # Beside the shared attributes.
    __slots__ = ("_inner", "_side")

    def __init__(self, inner: OfTrio, side: TrioSide) -> None:
        object.__setattr__(self, "__dict__", vars(inner))
        self._inner = inner
        self._side = side

    def __init_subclass__(cls) -> None:
        base = cls.__bases__[-1]
        for name, member in vars(base).items():
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, _cross(name, member))
        _SHOWN[base] = cls


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


def show(value: OfTrio, side: TrioSide) -> OfTrio:
    """Return the object for asyncio in place of an object for trio; other values unchanged."""
    shown = _SHOWN.get(type(value))
    return value if shown is None else cast(OfTrio, shown(value, side))


def _cross(name: str, member: object) -> object:
    if isinstance(member, property):

        def read(self: AsyncioAdapter[object]) -> object:
            return show(getattr(self._inner, name), self._side)

        return property(read, doc=member.__doc__)
    if inspect.iscoroutinefunction(member):
        return _run_on_trio(member)
    # Of `@asynccontextmanager`: the classes have no other members.
    return _enter_on_trio(cast(Callable[..., AbstractAsyncContextManager[object]], member))


def _run_on_trio(method: Callable[..., Awaitable[object]]) -> object:
    @functools.wraps(method)
    async def run(self: AsyncioAdapter[object], *args: object, **options: object) -> object:
        return await self._side.run_trio(partial(method, self._inner, *args, **options))

    return run


def _enter_on_trio(method: Callable[..., AbstractAsyncContextManager[object]]) -> object:
    @functools.wraps(method)
    def enter(
        self: AsyncioAdapter[object], *args: object, **options: object
    ) -> AbstractAsyncContextManager[object]:
        return enter_trio(self._side, method(self._inner, *args, **options))

    return enter
