"""The name of the schema engine: given by the caller, or by the environment."""

import os
from typing import Final, Literal, cast, get_args

from ._util import got

EngineName = Literal["native", "python"]

#: The variable that names the engine of a process.
ENGINE_VARIABLE: Final = "NOIZU_MCP_SCHEMA_ENGINE"


def named_engine(name: str | None = None) -> EngineName | None:
    """Return the engine that is named: by the argument, or by the environment.

    Raises:
        ValueError: There is no such engine.
    """
    what = "the schema engine" if name else ENGINE_VARIABLE
    name = name or os.environ.get(ENGINE_VARIABLE) or None
    if name is not None and name not in get_args(EngineName):
        raise ValueError(f'{what} must be "native" or "python", {got(name)}')
    return cast("EngineName | None", name)
