"""The class statement of a server: what can be wrong in it."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ..._errors import Problem
from ...components import check_prompts, check_registrations, check_resources
from ...components._declare import Declaration
from ...skills import check_clashes, check_skills
from ..events._telemetry import check_listeners

#: Methods that a server may override; what is overridden counts as offered.
OVERRIDABLE: Final = (
    "init",
    "list_tools",
    "call_tool",
    "list_resources",
    "list_resource_templates",
    "read_resource",
    "can_watch",
    "subscribe",
    "unsubscribe",
    "list_prompts",
    "get_prompt",
    "complete",
)
#: What is no option, and a server of another package may have; what to do instead.
_NO_OPTIONS: Final = {
    "policies": "override call_tool to decide who may call what",
    "providers": "override list_tools and call_tool to compute tools, or use server.tools.add",
    "resource_templates": "put templates into resources",
}


def check_statement(declaration: Declaration, base: type) -> None:
    """Report everything that is wrong in the statement of a server.

    Args:
        declaration: The statement.
        base: `Server`, whose methods are overridden.
    """
    if not declaration.abstract:
        _check_identity(declaration)
    for name in _NO_OPTIONS.keys() & vars(declaration.cls).keys():
        declaration.problem(name, f"is not an option; {_NO_OPTIONS[name]}", member=name)
    _check_overrides(declaration, base)
    _check_context_manager(declaration, "lifespan")
    for member, check in _CHECKS.items():
        for problem in check(_registrations(declaration, member)):
            declaration.take(problem, member)
    if not declaration.problems:
        cls: Any = declaration.cls
        for problem in check_clashes(cls.skills, cls.resources):
            declaration.take(problem, "skills")


def _check_identity(declaration: Declaration) -> None:
    """A server that clients see needs a name and a version (`basic/lifecycle`, serverInfo)."""
    name = declaration.cls.__name__
    told = {problem.where for problem in declaration.problems}
    for option in ("name", "version"):
        if option not in declaration.options and f"{name}.{option}" not in told:
            text = f'is missing; write class {name}(Server, {option}="…", …)'
            declaration.problem(option, text)


def _check_overrides(declaration: Declaration, base: type) -> None:
    """An override takes what the engine passes; found here, not in front of a client."""
    for name in OVERRIDABLE:
        method, original = getattr(declaration.cls, name), getattr(base, name)
        wanted = list(inspect.signature(original).parameters)
        given = positional(method)
        if not inspect.iscoroutinefunction(method) or given != len(wanted):
            text = f"must be `async def {name}({', '.join(wanted)})`"
            declaration.problem(name, text, member=name)


def _check_context_manager(declaration: Declaration, name: str) -> None:
    """What is no context manager would fail when the server is served, not before."""
    method = getattr(declaration.cls, name)
    bare = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
    if bare or positional(method) != 1:
        text = f"must be `@asynccontextmanager async def {name}(self)`, and yield once"
        declaration.problem(name, text, member=name)


def positional(method: Any) -> int | None:
    """Count the positional parameters of a method; None if it takes others, too.

    Args:
        method: A function as a class body has it, `self` included.
    """
    if not inspect.isfunction(method):
        return None
    parameters = list(inspect.signature(method).parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind not in kinds and p.default is p.empty for p in parameters):
        return None
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)


_CHECKS: Final[dict[str, Callable[[Iterable[Any]], list[Problem]]]] = {
    "tools": check_registrations,
    "resources": check_resources,
    "prompts": check_prompts,
    "skills": check_skills,
    "telemetry": check_listeners,
}


def _registrations(declaration: Declaration, member: str) -> Sequence[Any]:
    given = getattr(declaration.cls, member)
    if isinstance(given, list | tuple):
        return given
    declaration.problem(member, f"must be a list of {member}, got {given!r}", member=member)
    return ()
