"""Servers of this program: imported as `module:Server` or `path/to/file.py:Server`, and served."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, TypeVar

from .._errors import DefinitionError
from .._nearest import nearest
from .._serving import run_stdio
from .._util import relative_path
from ..server import Server
from ._errors import OK, USAGE, CommandError

Result = TypeVar("Result")


def load_server(target: str) -> Server:
    """Import a server and make it ready.

    Args:
        target: `module:Server` or `path/to/file.py:Server`; without `:Server` the only server
            class in it. An instance will do as well as a class.

    Raises:
        CommandError: It cannot be imported, is not there, is no server, or is a URL.
    """
    if "://" in target:
        text = "a URL names a server that runs already; give module:Server or path/to/file.py"
        raise CommandError(text, USAGE)
    before, colon, after = target.rpartition(":")
    place, name = (before, after) if colon else (after, "")
    module = _import(place)
    found = getattr(module, name, None) if name else _only_server(place, module)
    if isinstance(found, Server):
        return found
    if isinstance(found, type) and issubclass(found, Server):
        # Its constructor is the user's code, too.
        return _guarded(f"make {found.__name__}", found)
    what = f"no {name}" if found is None else f"{name} is no server"
    hint = hint_at(name, [cls.__name__ for cls in _servers(module)])
    raise CommandError(f"{place}: {what}; {hint}", USAGE)


def hint_at(name: str, names: Sequence[str]) -> str:
    """Hint at the names that may be meant by an unknown one."""
    meant = nearest(name, names)
    return f"did you mean {meant}?" if meant else f"there are: {', '.join(names) or 'none'}"


def _servers(module: ModuleType) -> list[type[Server]]:
    """List the server classes of a module: its own; if it has none, those it imports."""
    found = [
        value
        for value in vars(module).values()
        # An abstract class, such as the imported `Server` itself, has no options.
        if isinstance(value, type) and issubclass(value, Server) and hasattr(value, "options")
    ]
    return [cls for cls in found if cls.__module__ == module.__name__] or found


def _only_server(place: str, module: ModuleType) -> type[Server]:
    servers = _servers(module)
    if len(servers) == 1:
        return servers[0]
    names = ", ".join(cls.__name__ for cls in servers)
    hint = f"write {place}:NAME with one of {names}" if names else "it has no server"
    raise CommandError(f"{place}: {hint}", USAGE)


def _import(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _guarded(f"import {place}", lambda: _import_file(place))
    # A console script has its own folder on the path, and not the current one as `python -m` has.
    _look_in(os.getcwd())
    try:
        return _guarded(f"import {place}", lambda: importlib.import_module(place))
    except CommandError as error:
        missing = error.__cause__
        # A module that is itself there, but imports one that is not, is a failure of its own.
        if isinstance(missing, ModuleNotFoundError) and f"{place}.".startswith(f"{missing.name}."):
            raise CommandError(f"no module {place}; a file is given as path.py", USAGE) from error
        raise


def _import_file(place: str) -> ModuleType:
    """Run a file as a module, found by its path, whatever else has its name."""
    path = os.path.abspath(place)
    if not os.path.isfile(path):
        raise CommandError(f"no such file: {place}", USAGE)
    _look_in(os.path.dirname(path))
    name = os.path.basename(path).removesuffix(".py")
    # A file `json.py` must not be answered with the module of the standard library.
    while name in sys.modules:
        if getattr(sys.modules[name], "__file__", None) == path:
            return sys.modules[name]
        name = f"{name}_"
    spec: Any = spec_from_file_location(name, path, loader=SourceFileLoader(name, path))
    module = module_from_spec(spec)
    # Before it runs, as `import` does: classes look up their module there.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _look_in(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _guarded(what: str, function: Callable[[], Result]) -> Result:
    """Run the user's code; an exception of it becomes one message without a traceback."""
    try:
        return function()
    except CommandError:
        raise
    except DefinitionError as error:
        raise CommandError(str(error)) from error
    except (Exception, SystemExit) as error:  # a script may exit while it is imported
        text = f"cannot {what}: {type(error).__name__}: {error}{_place_of(error)}"
        raise CommandError(text) from error


def _place_of(error: BaseException) -> str:
    """Name the innermost line of the user's code, or of a library, that was at it."""
    place = ""
    # Frames of `importlib` are left out; those of its frozen part have names like `<frozen …>`.
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file not in (__file__, importlib.__file__) and not file.startswith("<"):
            place = f" ({relative_path(file)}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


def run(target: str) -> int:
    """Serve until the client ends it.

    Args:
        target: The server; see `load_server`. Its prints go to stderr, also during the import.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        text = "serving on this terminal; a client should start this command. Ctrl-C ends it."
        print(f"noizu-mcp: {text}", file=sys.stderr)
    run_stdio(partial(load_server, target))
    return OK
