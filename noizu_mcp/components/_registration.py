"""What a server is given: classes, instances, and `tool(target, …)` with some options changed."""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, ParamSpec, TypeAlias, Unpack

import attrs

from .._errors import DefinitionError, Problem
from .._foreign import METHODS
from .._source import calling_frame, problem_at
from .._util import final
from ._declare import ComponentMeta, class_of, is_abstract, kind_of, missing_arguments
from ._options import REGISTRATION_OPTIONS, Table, called, read_declared_name, read_options
from ._overrides import ToolOverrides
from ._spec import ToolSpec
from ._tool import Tool
from ._toolkit import Toolkit

# Of one tool each: for a kit of several they would make all of them the same.
_SINGULAR: Final = ("name", "title", "description")


#: Says why a target cannot be registered with some overrides.
Check = Callable[[Any, Mapping[str, Any]], list[str]]

_P = ParamSpec("_P")

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


def refuses_decorating(
    function: Callable[_P, "Registration"],
) -> Callable[_P, "Registration"]:
    """Make a function that registers refuse use as a decorator with parentheses.

    In other frameworks `@tool()` and `@tool(name=…)` make a function a tool. Here they would be a
    bare `TypeError` for a missing argument.

    Args:
        function: It takes one target, and options.
    """

    @functools.wraps(function)
    def checked(*args: _P.args, **options: _P.kwargs) -> Registration:
        if len(args) != 1:
            maker = function.__name__
            text = f"takes one class or instance, and options; {METHODS[maker]}"
            raise DefinitionError([problem_at(f"{maker}(…)", text, calling_frame())])
        return function(*args, **options)

    return checked


@refuses_decorating
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
    check: Check,
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
    where = f"{maker}({_shown(target)})"
    found = [(f"{where}.{name}", text) for name, text in bad]
    found += [(where, text) for text in check(target, good)]
    if found:
        frame = calling_frame(3)
        raise DefinitionError([problem_at(path, text, frame) for path, text in found])
    return Registration(target, good)


def _shown(target: Any) -> str:
    """Write a target as a line of source has it."""
    if kind_of(target) is not None:
        return label_of(target)
    named = isinstance(target, type) or hasattr(target, "__code__")
    return target.__name__ if named else called(target)


def check_registrations(items: Iterable[Any]) -> list[Problem]:
    """Find what is wrong in `tools = […]`, without making an instance of anything.

    Args:
        items: Tool and toolkit classes, instances, and registrations.

    Returns:
        A problem for each item that cannot be registered, for each name that breaks the
        specification's rule for declared names, and for each name that several items have.
        `where` is `tools[2]`; the places in the source are left to the caller.
    """
    return check_list("tools", items, _target_problems, declared_names=True)


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
    return expand_list("tools", registrations, _target_problems)


def check_list(
    kind: str, items: Iterable[Any], check: Check, *, declared_names: bool = False
) -> list[Problem]:
    """Find what is wrong in a list of registrations, without making an instance of anything.

    Args:
        kind: The attribute of a server that holds it: `tools`.
        items: Classes, instances and registrations.
        check: Says why a target cannot be registered with some overrides.
        declared_names: Whether other names must keep the rule for names in source code.

    Returns:
        A problem for each item that cannot be registered, and for each name, URI or template that
        several items have.
    """
    problems: list[Problem] = []
    keys: Counter[tuple[str, str]] = Counter()
    for index, item in enumerate(items):
        registration = as_registration(item)
        texts = check(registration.target, registration.overrides)
        if not texts:
            keys.update(_keys(registration))
            texts = _name_problems(registration) if declared_names else []
        problems += [Problem(f"{kind}[{index}]", text) for text in texts]
    return problems + [Problem(kind, text) for text in _duplicates(kind, keys)]


def expand_list(kind: str, items: Iterable[Any], check: Check) -> list[Any]:
    """Make the specs of a list of registrations, in their order.

    Args:
        kind: The attribute of a server that holds it: `tools`.
        items: Classes, instances and registrations. A class is instantiated, once for each time it
            is registered.
        check: Says why a target cannot be registered with some overrides.

    Raises:
        DefinitionError: Something cannot be registered, or two have one name, URI or template.
    """
    registrations = list(map(as_registration, items))
    if problems := check_list(kind, registrations, check):
        raise DefinitionError(problems)
    return [spec for registration in registrations for spec in _specs(registration)]


def _specs(registration: Registration) -> list[Any]:
    target = registration.target
    instance = target() if isinstance(target, type) else target
    return [plan.bind(instance, registration.overrides) for plan in target.__mcp__]


def as_registration(item: Any) -> Registration:
    """Take a registration as it is, and anything else as one without overrides."""
    return item if isinstance(item, Registration) else Registration(item, {})


def label_of(target: Any) -> str:
    """Name a target in messages: the name of its class."""
    return class_of(target).__name__


def _keys(registration: Registration) -> list[tuple[str, str]]:
    """Tell what no two items may have in common: the names, the URI, the template."""
    return [
        (plan.key, {**plan.options, **registration.overrides}[plan.key])
        for plan in registration.target.__mcp__
    ]


def _name_problems(registration: Registration) -> list[str]:
    """Check another name by the rule for names in source code."""
    try:
        read_declared_name(registration.overrides.get("name", "-"))
    except ValueError as error:
        return [f"name {error}"]
    return []


def _duplicates(kind: str, keys: Counter[tuple[str, str]]) -> list[str]:
    return [
        f"the {option} {value!r} is registered {count} times; {_cure(kind, option)}"
        for (option, value), count in keys.items()
        if count > 1
    ]


def _cure(kind: str, option: str) -> str:
    if option == "uri_template":  # no registration changes it
        return "the first would answer for all; keep one of them"
    return f"give all but one another with {kind.removesuffix('s')}(…, {option}=…)"


def _target_problems(target: Any, overrides: Mapping[str, Any]) -> list[str]:
    """Say why a target cannot be registered with these overrides."""
    if kind_of(target) != "tools":
        return [_no_tool(target)]
    if texts := component_problems(target):
        return texts
    label = label_of(target)
    given = [f"{name}=" for name in _SINGULAR if name in overrides]
    count = len(target.__mcp__)
    if given and count > 1:
        what = f"{' and '.join(given)} would make all {count} tools of {label}"
        return [f"{what} the same; set it in the @mcp(…) of each"]
    return []


def component_problems(target: Any) -> list[str]:
    """Say why a component cannot be registered as it is.

    Args:
        target: A component class, or an instance of one.
    """
    label = label_of(target)
    if is_abstract(class_of(target)):
        return [f"{label} is abstract; register a subclass of it"]
    if isinstance(target, type) and (missing := missing_arguments(target)):
        example = ", ".join(missing)
        return [f"{label}() needs {example}; register an instance: {label}({example})"]
    return []


def stranger(target: Any, noun: str, example: str, method: str) -> str:
    """Say that something cannot be registered here, and where, or what could be.

    Args:
        target: It.
        noun: What it is not: `tool`.
        example: What is one: `a Tool or a Toolkit`.
        method: What a function could be instead: `make it …`.
    """
    kind = kind_of(target)
    if kind is not None:
        where = example if kind == "servers" else f"it in {kind} = […]"
        return f"{label_of(target)} is no {noun}; register {where}"
    owner = class_of(getattr(target, "__self__", None))
    if isinstance(owner, ComponentMeta):
        return f"{target.__name__} is a method of {owner.__name__}; register {owner.__name__}"
    if hasattr(target, "__code__"):
        return f"{target.__name__} is a function; make it {method}"
    if isinstance(target, type):
        root = example.split()[1]
        return f"the class {target.__name__} is no {noun}; write class {target.__name__}({root})"
    if isinstance(target, str):
        return f"{target!r} is a text; {_instead_of_text(target, noun)}"
    return f"{called(target)} is no {noun}; register {example}"


def _instead_of_text(text: str, noun: str) -> str:
    """Say what to write instead of a name or a URI."""
    if noun == "tool" or "://" not in text:
        return "register the class itself"
    if "{" in text:
        return f"write class …(ResourceTemplate, uri_template={text!r}) with a method read"
    return f"write class …(Resource, uri={text!r}) with a method read"


def _no_tool(target: Any) -> str:
    method = "a method of a Toolkit, under @mcp"
    return stranger(target, "tool", "a Tool or a Toolkit", method)
