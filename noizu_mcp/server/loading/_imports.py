"""Imports of user modules by name or from files. Failures are reported in one line."""

import importlib
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, Final, TypeVar

from ..._errors import DefinitionError, TargetError
from ..._util import relative_path

_Loaded = TypeVar("_Loaded")

#: Advice for a class whose bases have different metaclasses.
_CONFLICT: Final = (
    "a class cannot be a tool, or another component, and a pydantic model or an Enum in one; write"
    " a class for each, the model as class Input in the tool"
)


def import_place(place: str, name: str) -> ModuleType:
    """Import a module by name or from a file.

    Args:
        place: `package.module` or `path/to/file.py`.
        name: The name to look up in it, for advice; may be empty.

    Raises:
        TargetError: It does not exist, or cannot be imported.
    """
    if place.endswith(".py"):
        try:
            return guarded(f"import {place}", lambda: _import_file(place))
        except TargetError as error:
            from ._remedies import remedy_of

            remedy = remedy_of(error.__cause__, place, f":{name}" if name else "")
            if remedy is None:
                raise
            text = f"cannot import {place}: {remedy}"
            raise TargetError(text, is_wrong=False) from error.__cause__
    # A console script has its own folder on the path, but not the current folder like `python -m`.
    _look_in(os.getcwd())
    try:
        return guarded(f"import {place}", lambda: importlib.import_module(place))
    except TargetError as error:
        missing = error.__cause__
        # If the module exists but imports a missing one, that is a different error.
        if isinstance(missing, ModuleNotFoundError) and f"{place}.".startswith(f"{missing.name}."):
            raise TargetError(f"no module {place}; a file is given as path.py") from error
        raise


def _import_file(place: str) -> ModuleType:
    """Run a file as a module. It is found by its path, even if another module has its name."""
    path = os.path.abspath(place)
    if not os.path.isfile(path):
        raise TargetError(f"no such file: {place}")
    _look_in(os.path.dirname(path))
    name = os.path.basename(path).removesuffix(".py")
    # A file `json.py` must not give the module of the standard library.
    while name in sys.modules:
        if getattr(sys.modules[name], "__file__", None) == path:
            return sys.modules[name]
        name = f"{name}_"
    spec: Any = spec_from_file_location(name, path, loader=SourceFileLoader(name, path))
    module = module_from_spec(spec)
    # Before it runs, as `import` does: classes look up their module in `sys.modules`.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _look_in(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def guarded(what: str, function: Callable[[], _Loaded]) -> _Loaded:
    """Run user code, and convert an exception to a one-line message.

    Args:
        what: The action, for the message: `import app.py`.
        function: The code.

    Raises:
        TargetError: The code raised, or called `exit`.
    """
    try:
        return function()
    except TargetError:
        raise
    except DefinitionError as error:
        raise TargetError(str(error), is_wrong=False) from error
    except (Exception, SystemExit) as error:  # a script may exit while it is imported
        said = f"{type(error).__name__}: {error}"
        # Python rejects these bases before any code of the class runs.
        said = _CONFLICT if "metaclass conflict" in said else said
        text = f"cannot {what}: {said}{_place_of(error)}"
        raise TargetError(text, is_wrong=False) from error


def _place_of(error: BaseException) -> str:
    """Return the innermost line of the traceback in user code or a library."""
    place = ""
    # Frames of `importlib` are left out; its frozen modules have names like `<frozen …>`.
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file not in (__file__, importlib.__file__) and not file.startswith("<"):
            place = f" ({relative_path(file)}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place
