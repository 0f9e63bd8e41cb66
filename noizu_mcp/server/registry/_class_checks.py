"""Checks of the class statement of a server. Every error is reported when it runs."""

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

from ... import components
from ..._errors import Problem
from ..._foreign import advice
from ..._util import called
from ...components import (
    UNRESOLVED,
    Declaration,
    Signature,
    as_registration,
    check,
    class_of,
    is_abstract,
    is_context,
    is_marked,
    keys_of,
    kind_of,
)
from ...events import check_listeners
from ...skills import check_clashes, check_skills
from ._server_options import SERVER_OPTIONS

#: Methods that a server may override. A feature with an overridden method is offered.
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
#: Attributes that would silently be ignored: servers of other packages have these options.
_NO_OPTIONS: Final = ("auth", "middleware", "resource_templates")
#: The form of a lifespan that always works.
_LIFESPAN: Final = "`@asynccontextmanager async def lifespan(self)`, and yield once"
# Every function made by these decorators has this code object: the only way to recognise them.
_SYNC_MANAGER: Final = contextmanager(lambda: iter(())).__code__
ASYNC_MANAGER: Final = asynccontextmanager(aiter).__code__
#: The lists of a server, and the methods that compute them instead.
_COMPUTED: Final = {
    "tools": ("list_tools", "call_tool"),
    "resources": ("list_resources", "list_resource_templates", "read_resource"),
    "prompts": ("list_prompts", "get_prompt"),
}


def check_statement(declaration: Declaration, base: type) -> None:
    """Report all problems in the class statement of a server.

    Args:
        declaration: The statement.
        base: `Server`, whose methods may be overridden.
    """
    if not declaration.abstract:
        _check_identity(declaration)
    body = vars(declaration.cls)
    for name in _NO_OPTIONS:
        # A method or a property of that name may be the author's own.
        if name in body and not hasattr(body[name], "__get__"):
            text = f"is not an option; {advice(name, SERVER_OPTIONS)}"
            declaration.problem(name, text, member=name)
    _check_marks(declaration, base)
    _check_two_servers(declaration, base)
    _check_overrides(declaration, base)
    _check_lifespan(declaration, base)
    for member, find_problems in _CHECKS.items():
        for problem in find_problems(_registrations(declaration, member)):
            declaration.take(problem, member)
    # Only for a statement without problems: these checks read the lists, and would report a problem
    # of a list again.
    if not declaration.problems and not declaration.abstract:
        _check_nested(declaration, base)
    if not declaration.problems:
        _check_fixed_names(declaration)
    if not declaration.problems:
        cls: Any = declaration.cls
        for problem in check_clashes(cls.skills, cls.resources):
            declaration.take(problem, "skills")


def _check_fixed_names(declaration: Declaration) -> None:
    """Refuse a name that two providers, or a provider and a registration, will always share."""
    cls: Any = declaration.cls
    providers = getattr(cls, "providers", ())
    if not providers:
        return
    taken = {
        (feature, key)
        for feature in _COMPUTED
        for item in getattr(cls, feature)
        for _, key in keys_of(as_registration(item, feature))
    }
    for index, provider in enumerate(providers):
        names = set(provider.fixed_names())
        for feature, name in sorted(names & taken):
            text = (
                f"{provider.name} has {name!r}, which stands in {feature} already; give a prefix="
            )
            declaration.take(Problem(f"providers[{index}]", text), "providers")
        taken |= names


def _check_identity(declaration: Declaration) -> None:
    """Require a name and a version: serverInfo has both in every revision (`basic/lifecycle`)."""
    name = declaration.cls.__name__
    told = {problem.where for problem in declaration.problems}
    for option in ("name", "version"):
        # An option with a wrong value is missing here too, and was reported already.
        if option not in declaration.options and f"{name}.{option}" not in told:
            text = f'is missing; write class {name}(Server, {option}="…", …)'
            declaration.problem(option, text)


def _check_two_servers(declaration: Declaration, base: type) -> None:
    """Refuse two bases with the same list: only the first list would be served."""
    cls: Any = declaration.cls
    for member in _CHECKS:
        homes = [each for each in cls.__mro__ if vars(each).get(member) and each is not base]
        others = [each for each in homes[1:] if not issubclass(homes[0], each)]
        if others and homes[0] is not cls:
            found = [homes[0].__name__, others[0].__name__]
            whole = ", ".join(f"*{name}.{member}" for name in found)
            text = f"{' and '.join(found)} both have {member}, of which the first ones would count"
            declaration.problem(member, f"{text}; write {member} = [{whole}]")


def _check_overrides(declaration: Declaration, base: type) -> None:
    """Check that overrides take the right arguments, before a client calls them."""
    for name in OVERRIDABLE:
        method, original = getattr(declaration.cls, name), getattr(base, name)
        if method is original:
            continue
        wanted = list(inspect.signature(original).parameters)
        given = positional(method)
        right = inspect.iscoroutinefunction(method) and given == len(wanted)
        if not right or _misplaces_context(declaration, method):
            text = f"must be `async def {name}({', '.join(wanted)})`"
            declaration.problem(name, text, member=name)


def _misplaces_context(declaration: Declaration, method: Any) -> bool:
    """Tell whether a parameter before the last one is annotated as the context."""
    parameters = list(inspect.signature(method).parameters.values())
    signature = Signature(method, parameters, declaration.scope, _ignore)
    return any(map(is_context, signature.positional[:-1]))


def _check_marks(declaration: Declaration, base: type) -> None:
    """Refuse `@mcp` in a server or its bases: it would have no effect."""
    for cls in declaration.cls.__mro__:
        if issubclass(base, cls):
            continue
        for name, value in vars(cls).items():
            if is_marked(value):
                text = (
                    "@mcp marks the methods of a Toolkit, and this is a server; move it into a"
                    " class …(Toolkit), and list that in tools = […]"
                )
                declaration.problem(name, text, name, cls)


def _check_nested(declaration: Declaration, base: type) -> None:
    """Refuse a component that is defined in the body of a server but is in no list."""
    cls: Any = declaration.cls
    for name, value in vars(cls).items():
        kind = kind_of(value) if isinstance(value, type) else None
        # A class defined elsewhere that is only assigned here is no mistake.
        defined_here = getattr(value, "__qualname__", None) == f"{cls.__qualname__}.{name}"
        own = not defined_here or name.startswith("_")
        if own or kind is None or kind.feature not in _COMPUTED or is_abstract(value):
            continue
        listed = [class_of(as_registration(item).target) for item in getattr(cls, kind.feature)]
        if value in listed or any(issubclass(each, value) for each in listed):
            continue
        if all(getattr(cls, method) is getattr(base, method) for method in _COMPUTED[kind.feature]):
            text = (
                f"is in the body of the server but in no list; write {kind.feature} = [{name}], or"
                " begin its name with _"
            )
            declaration.problem(name, text, member=name)


def _check_lifespan(declaration: Declaration, base: Any) -> None:
    """Check that `lifespan` returns an async context manager.

    A wrong one would otherwise fail only when the server is served.
    """
    cls: Any = declaration.cls
    method = cls.lifespan
    if method is base.lifespan:
        return
    if positional(method) != 1:
        text = f"must be {_LIFESPAN}"
    elif inspect.iscoroutinefunction(method):
        text = f"is a coroutine, not an async context manager; write {_LIFESPAN}"
    elif inspect.isasyncgenfunction(method):
        text = f"lacks its decorator; write {_LIFESPAN}"
    elif method.__code__ is ASYNC_MANAGER:
        if inspect.isasyncgenfunction(method.__wrapped__):
            return
        text = f"has no `async def` with a yield under @asynccontextmanager; write {_LIFESPAN}"
    elif inspect.isgeneratorfunction(method) or method.__code__ is _SYNC_MANAGER:
        text = f"is sync; write {_LIFESPAN}"
    elif hasattr(method, "__wrapped__") or _returns_manager(declaration, method):
        return
    else:
        text = (
            f"must be {_LIFESPAN}; a method that returns a context manager says so:"
            " -> AbstractAsyncContextManager[…]"
        )
    declaration.problem("lifespan", text, member="lifespan")


def _ignore(*_: str, **__: str) -> None:
    """Ignore a problem that another check reports."""


def _returns_manager(declaration: Declaration, method: Any) -> bool:
    """Tell whether a method may return an async context manager, by its annotation."""
    signature = Signature(method, [], declaration.scope, _ignore)
    annotation = signature.resolve(inspect.signature(method).return_annotation)
    if annotation is inspect.Signature.empty:
        return False
    made = typing.get_origin(annotation) or annotation
    unknown = annotation is UNRESOLVED or annotation is Any
    return unknown or (isinstance(made, type) and hasattr(made, "__aenter__"))


def positional(method: object) -> int | None:
    """Count the required positional parameters of a method; None if others are required, too.

    Args:
        method: A function in a class body, with `self`.
    """
    if not inspect.isfunction(method):
        return None
    parameters = list(inspect.signature(method).parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind not in kinds and p.default is p.empty for p in parameters):
        return None
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)


def _check_providers(items: Iterable[Any]) -> list[Problem]:
    # Loaded on first use.
    return components.check_providers(items) if items else []


def _check_policies(policies: Iterable[Any]) -> list[Problem]:
    if not policies:  # most servers have no policies, and do not load the module
        return []
    from ..policies._policy import check_policies

    return check_policies(policies)


_CHECKS: Final[dict[str, Callable[[Iterable[Any]], list[Problem]]]] = {
    **{feature: partial(check, feature=feature) for feature in _COMPUTED},
    "skills": check_skills,
    "telemetry": check_listeners,
    "providers": _check_providers,
    "policies": _check_policies,
}


def _registrations(declaration: Declaration, member: str) -> Sequence[Any]:
    given = getattr(declaration.cls, member, ())
    if isinstance(given, list | tuple):
        return given
    if isinstance(given, type) or kind_of(given) is not None:
        cure = f"write {member} = [{class_of(given).__name__}]"
    elif hasattr(given, "__get__") and member in _COMPUTED:
        methods = ", ".join(_COMPUTED[member])
        cure = f"to compute it override {methods}, or use server.{member}.add"
    else:
        cure = f"write {member} = […]"
    noun = "listeners" if member == "telemetry" else member
    text = f"must be a list of {noun}, got {called(given)}; {cure}"
    declaration.problem(member, text, member=member)
    return ()
