"""Servers of the user's code: found as `module:Server` or `path/to/file.py:Server`, and made."""

import linecache
import re
from functools import partial
from types import ModuleType
from typing import Any

from ..._errors import DefinitionError, Problem, TargetError
from ..._nearest import hint_at
from ..._util import relative_path
from .._server import Server
from ._imports import guarded, import_place


def load_server(target: str) -> Server:
    """Import a server and make it ready.

    Args:
        target: `module:Server` or `path/to/file.py:Server`. The name is a server class, an
            instance, or a list of tools. Without `:Server` it is the only instance in the module,
            else its only server class, else its list `tools`, else the only server class that it
            imports.

    Raises:
        TargetError: It cannot be imported, does not exist, is not a server, or is a URL.
    """
    if "://" in target:
        text = "a URL names a server that runs already; give module:Server or path/to/file.py"
        raise TargetError(text)
    before, colon, after = target.rpartition(":")
    place, name = (before, after) if colon else (after, "")
    module = import_place(place, name)
    found = getattr(module, name, None) if name else _only_server(place, module)
    if isinstance(found, Server):
        return found
    if isinstance(found, type) and issubclass(found, Server):
        # Its constructor is user code, too.
        return guarded(f"make {found.__name__}", found)
    if isinstance(found, list | tuple):
        return guarded(f"serve {place}", partial(_server_of, module, name or "tools"))
    what = f"no {name}" if found is None else f"{name} is no server"
    raise TargetError(f"{place}: {what}; {hint_at(name, list(_named_servers(module)))}")


def _named_servers(module: ModuleType) -> dict[str, Any]:
    """Find the instances and server classes of a module by name, including imported ones."""
    return {
        name: value
        for name, value in vars(module).items()
        # An abstract class, such as `Server` itself, has no options.
        if isinstance(value, Server)
        or (isinstance(value, type) and issubclass(value, Server) and hasattr(value, "options"))
    }


def _only_server(place: str, module: ModuleType) -> Any:
    """Choose the server of a module; see `load_server` for the order."""
    named = _named_servers(module)
    instances = {name: each for name, each in named.items() if isinstance(each, Server)}
    classes = {name: each for name, each in named.items() if name not in instances}
    own = {name: cls for name, cls in classes.items() if cls.__module__ == module.__name__}
    tools = getattr(module, "tools", None)
    listed = {"tools": tools} if isinstance(tools, list | tuple) else {}
    choices = instances or own or listed or classes
    # Two names of one object count once.
    if len({id(each) for each in choices.values()}) == 1:
        return next(iter(choices.values()))
    text = "it has no server: no Server class, no instance of one, and no list `tools`"
    if choices:
        text = f"write {place}:NAME with one of {', '.join(choices)}"
    raise TargetError(f"{place}: {text}")


def _server_of(module: ModuleType, name: str) -> Server:
    """Make a server from a list of tools, and the lists `resources` and `prompts` of the module.

    Raises:
        DefinitionError: An item of the lists cannot be registered.
    """
    lists = {"tools": name, "resources": "resources", "prompts": "prompts"}
    found = {feature: getattr(module, each, None) for feature, each in lists.items()}
    body = {feature: each for feature, each in found.items() if isinstance(each, list | tuple)}
    stem = module.__name__.rpartition(".")[2]
    make: Any = type(Server)
    try:
        served: Server = make(stem, (Server,), dict(body), name=stem, version="0")()
    except DefinitionError as error:
        # There is no class statement: problems are reported at the line of their list.
        problems = [_placed(each, module, lists) for each in error.problems]
        raise DefinitionError(problems) from None
    return served


def _placed(problem: Problem, module: ModuleType, lists: dict[str, str]) -> Problem:
    if problem.file not in (None, relative_path(__file__)):
        return problem
    feature = problem.where.split(".")[1].partition("[")[0]
    file = str(module.__file__)
    begin = re.compile(rf"{lists[feature]}\s*[:=]")
    lines = enumerate(linecache.getlines(file), 1)
    line = next((number for number, text in lines if begin.match(text)), 1)
    where = problem.where.replace(feature, lists[feature], 1)
    return Problem(where, problem.text, relative_path(file), line)
