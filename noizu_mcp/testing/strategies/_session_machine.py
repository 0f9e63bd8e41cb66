"""The name `SessionMachine`, which may be imported where Hypothesis is not installed.

A program that takes all names of the test kit, or only looks at them, needs no extra. The base of
the class comes with Hypothesis, so that the class is in a file of its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._schemas import NEEDS

__all__ = ("SessionMachine",)


class _NoMachine:
    """Stands for the class where Hypothesis is not installed."""

    def __init_subclass__(cls) -> None:
        raise ImportError(NEEDS)


def _load() -> Any:
    try:
        return import_module("._machine", __package__).SessionMachine
    except ModuleNotFoundError:
        return _NoMachine


if TYPE_CHECKING:
    from ._machine import SessionMachine
else:
    SessionMachine = _load()
