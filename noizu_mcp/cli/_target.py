"""What a command is aimed at: `module:Server`, `path/to/file.py:Server`, or `-- a command`."""

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from .._errors import DefinitionError
from ..server import Server
from ._errors import USAGE, CommandError

Result = TypeVar("Result")


def load_server(target: str) -> Server:
    """Import a server and make it ready.

    Args:
        target: `module:Server` or `path/to/file.py:Server`; without `:Server` the only server
            class in it. An instance will do as well as a class.

    Raises:
        CommandError: It cannot be imported, is not there, or is no server.
    """
    place, _, name = target.partition(":")
    module = _import(place)
    found = getattr(module, name, None) if name else _only_server(module)
    if isinstance(found, Server):
        return found
    if isinstance(found, type) and issubclass(found, Server):
        return _guarded(f"make {found.__name__}", found)
    known = ", ".join(cls.__name__ for cls in _servers(module)) or "none"
    raise CommandError(f"{name or 'nothing'} in {place} is no server; there are: {known}", USAGE)


def _servers(module: ModuleType) -> list[type[Server]]:
    own = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, Server)]
    return [cls for cls in own if cls.__module__ == module.__name__]


def _only_server(module: ModuleType) -> type[Server] | None:
    servers = _servers(module)
    return servers[0] if len(servers) == 1 else None


def _import(place: str) -> ModuleType:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise CommandError(f"no such file: {place}", USAGE)
        folder, module = str(path.resolve().parent), path.stem
    else:
        folder, module = str(Path.cwd()), place
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return _guarded(f"import {place}", lambda: importlib.import_module(module))


def _guarded(what: str, function: Callable[[], Result]) -> Result:
    """Run the user's code; whatever it raises becomes one message without a traceback."""
    try:
        return function()
    except DefinitionError as error:
        raise CommandError(str(error)) from error
    except (Exception, SystemExit) as error:
        place = _last_line(error)
        text = f"cannot {what}: {type(error).__name__}: {error}{place}"
        raise CommandError(text) from error


def _last_line(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return "" if code.co_filename.startswith("<") else f" ({code.co_filename}:{trace.tb_lineno})"
