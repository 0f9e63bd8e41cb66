"""What a server is given: classes, instances, and `tool(target, …)` with some options changed."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypedDict, Unpack

import attrs

from .._errors import DefinitionError, Problem
from .._util import final, relative_path
from ..types import Annotations, Icon
from ._declare import is_abstract, kind_of, missing_arguments
from ._options import REGISTRATION_OPTIONS, Table, read_declared_name, read_options
from ._spec import ToolPlan, ToolSpec
from ._tool import Tool
from ._toolkit import Toolkit

# Of one tool each: for a kit of several they would make all of them the same.
_SINGULAR: Final = ("name", "title", "description")


class ToolOverrides(TypedDict, total=False):
    """What a registration may change.

    Attributes:
        name: Another name; not for a kit of several tools.
        title: Another title; not for a kit of several tools.
        description: Another description; not for a kit of several tools.
        category: Another category; None for none.
        annotations: Other hints.
        icons: Other pictures.
        meta: Another `_meta`; the category is merged into it.
        hidden: Left out of `tools/list`, still callable. Wins over `visible`.
        visible: The opposite of `hidden`.
        timeout: Seconds, or None for no limit.
        max_concurrency: Calls at one time, or None for no limit.
    """

    name: str
    title: str
    description: str
    category: str | None
    annotations: Annotations | Mapping[str, Any] | None
    icons: Iterable[Icon]
    meta: Mapping[str, Any] | None
    hidden: bool
    visible: bool
    timeout: float | None
    max_concurrency: int | None


#: What can be registered.
Target: TypeAlias = "type[Tool | Toolkit] | Tool | Toolkit | Registration"


@final
@attrs.frozen(eq=False)
class Registration:
    """A component that a server is to serve; `tool()` makes one.

    Attributes:
        target: A component class, or a ready instance of one.
        overrides: Options that replace the component's own, checked.
    """

    target: Any
    overrides: Mapping[str, Any]


def tool(target: Target, /, **overrides: Unpack[ToolOverrides]) -> Registration:
    """Register a tool or a kit with some of its options changed.

    Args:
        target: A `Tool` or `Toolkit` class, a ready instance of one, or another registration.
        **overrides: What to change; see `ToolOverrides`. For a kit it holds for all of its tools.

    Returns:
        What goes into `tools = […]` of a server.

    Raises:
        DefinitionError: The target is no tool, an option is unknown or wrong, or `name`, `title`
            or `description` is given for a kit of several tools.
    """
    return register("tool", target, overrides, REGISTRATION_OPTIONS, _target_problems)


def register(
    maker: str,
    target: Any,
    overrides: Mapping[str, Any],
    table: Table,
    check: Callable[[Any, Mapping[str, Any]], list[str]],
) -> Registration:
    """Make a registration for a public function, at whose caller errors point.

    Args:
        maker: The name of that function.
        target: What it was given; may be another registration.
        overrides: The options that it was given.
        table: The options that there are.
        check: Says why a target cannot be registered with these overrides.

    Raises:
        DefinitionError: Something is wrong with the target or the options.
    """
    inner = as_registration(target)
    target = inner.target
    good, bad = read_options(table, {**inner.overrides, **overrides})
    where = f"{maker}({label_of(target)})"
    found = [(f"{where}.{name}", text) for name, text in bad]
    found += [(where, text) for text in check(target, good)]
    if found:
        frame = sys._getframe(2)
        place = relative_path(frame.f_code.co_filename), frame.f_lineno
        raise DefinitionError([Problem(path, text, *place) for path, text in found])
    return Registration(target, good)


def check_registrations(items: Iterable[Any]) -> list[Problem]:
    """Find what is wrong in `tools = […]`, without making an instance of anything.

    Args:
        items: Tool and toolkit classes, instances, and registrations.

    Returns:
        A problem for each item that cannot be registered, for each name that breaks the
        specification's rule for declared names, and for each name that several items have.
        `where` is `tools[2]`; the places in the source are left to the caller.
    """
    problems: list[Problem] = []
    names: Counter[str] = Counter()
    for index, item in enumerate(items):
        where = f"tools[{index}]"
        registration = as_registration(item)
        texts = _target_problems(registration.target, registration.overrides)
        if not texts:
            names.update(_names(registration))
            texts = name_problems(registration)
        problems += [Problem(where, text) for text in texts]
    return problems + [Problem("tools", text) for text in _duplicates(names)]


def expand(registrations: Iterable[Any]) -> list[ToolSpec]:
    """Make the specs of registered tools, in their order.

    Args:
        registrations: Tool and toolkit classes, instances, and registrations. A class is
            instantiated, once for each time it is registered. Names may be any printable text.

    Returns:
        The specs, overrides applied.

    Raises:
        DefinitionError: Something is no tool, or two tools have one name.
    """
    specs: list[ToolSpec] = []
    problems: list[Problem] = []
    for index, item in enumerate(registrations):
        registration = as_registration(item)
        texts = _target_problems(registration.target, registration.overrides)
        if texts:
            problems += [Problem(f"tools[{index}]", text) for text in texts]
            continue
        target = registration.target
        instance = target() if isinstance(target, type) else target
        specs += [plan.bind(instance, registration.overrides) for plan in _plans(target)]
    names = Counter(spec.name for spec in specs)
    problems += [Problem("tools", text) for text in _duplicates(names)]
    if problems:
        raise DefinitionError(problems)
    return specs


def as_registration(item: Any) -> Registration:
    """Take a registration as it is, and anything else as one without overrides."""
    return item if isinstance(item, Registration) else Registration(item, {})


def _plans(target: Any) -> tuple[ToolPlan, ...]:
    plans: tuple[ToolPlan, ...] = target.__mcp__
    return plans


def label_of(target: Any) -> str:
    """Name a target in messages: the name of its class."""
    return target.__name__ if isinstance(target, type) else type(target).__name__


def _names(registration: Registration) -> list[str]:
    if "name" in registration.overrides:
        return [registration.overrides["name"]]
    return [plan.options["name"] for plan in _plans(registration.target)]


def name_problems(registration: Registration) -> list[str]:
    """Check another name by the rule for names in source code."""
    try:
        read_declared_name(registration.overrides.get("name", "-"))
    except ValueError as error:
        return [f"name {error}"]
    return []


def _duplicates(names: Counter[str]) -> list[str]:
    return [
        f"the name {name!r} is registered {count} times; give all but one another with"
        " tool(…, name=…)"
        for name, count in names.items()
        if count > 1
    ]


def _target_problems(target: Any, overrides: Mapping[str, Any]) -> list[str]:
    """Say why a target cannot be registered with these overrides."""
    if kind_of(target) != "tools":
        return [_no_tool(target)]
    if texts := component_problems(target):
        return texts
    label = label_of(target)
    given = [f"{name}=" for name in _SINGULAR if name in overrides]
    if given and len(_plans(target)) > 1:
        what = f"{' and '.join(given)} would make all {len(_plans(target))} tools of {label}"
        return [f"{what} the same; set it in the @mcp(…) of each"]
    return []


def component_problems(target: Any) -> list[str]:
    """Say why a component cannot be registered as it is.

    Args:
        target: A component class, or an instance of one.
    """
    label = label_of(target)
    cls = target if isinstance(target, type) else type(target)
    if is_abstract(cls):
        return [f"{label} is abstract; register a subclass of it"]
    if isinstance(target, type) and (missing := missing_arguments(target)):
        example = ", ".join(missing)
        return [f"{label}() needs {example}; register an instance: {label}({example})"]
    return []


def _no_tool(target: Any) -> str:
    kind = kind_of(target)
    if kind is not None:
        return f"{label_of(target)} is no tool; register it in {kind} = […]"
    if hasattr(target, "__code__"):
        return f"{target.__name__} is a function; make it a method of a Toolkit, under @mcp"
    return f"{target!r} is no tool; register a Tool or a Toolkit"
