"""The name of the schema engine: given by the caller, the context, or the environment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, cast, get_args

from ._util import got

EngineName = Literal["native", "python"]

#: The variable that names the engine of a process.
ENGINE_VARIABLE: Final = "NOIZU_MCP_SCHEMA_ENGINE"

_named: ContextVar[EngineName | None] = ContextVar("schema_engine", default=None)


def named_engine(name: str | None = None) -> EngineName | None:
    """Return the engine that is named: by the argument, by `using_engine`, by the environment.

    Raises:
        ValueError: There is no such engine.
    """
    what, name = "the schema engine", name or _named.get()
    if name is None:
        what, name = ENGINE_VARIABLE, os.environ.get(ENGINE_VARIABLE) or None
    if name is not None and name not in get_args(EngineName):
        raise ValueError(f'{what} must be "native" or "python", {got(name)}')
    return cast("EngineName | None", name)


@contextmanager
def using_engine(name: EngineName) -> Iterator[None]:
    """Compile the schemas that are read in the block with one engine."""
    token = _named.set(name)
    try:
        yield
    finally:
        _named.reset(token)
