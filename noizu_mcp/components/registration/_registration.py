"""Registrations: classes, instances, and `tool(target, …)`, checked and bound to instances.

`check` looks at the lists of a server when its class is made, and makes no instance of anything;
`expand` binds them to instances. Both go by the kinds of the components.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, ParamSpec, TypedDict, overload

import attrs

from ..._errors import DefinitionError, Problem
from ..._foreign import METHODS
from ..._source import calling_frame, problem_at
from ..._util import called, final
from ...types import Icon, RequireScopes
from ..declare._kind import Kind
from ..declare._options import read_declared_name, read_options
from ..declare._statement import ComponentMeta, class_of, is_abstract, kind_of, missing_arguments
from ..handlers._bound import Bound, PromptSpec, ResourceSpec, TemplateSpec, ToolSpec

# Options that several tools must not share.
_SINGULAR: Final = ("name", "title", "description")

_P = ParamSpec("_P")


# For messages: the classes of the items of each list, and what a function could be instead.
_EXAMPLES: Final = {
    "tools": ("a Tool or a Toolkit", "a method of a Toolkit, under @mcp"),
    "resources": ("a Resource or a ResourceTemplate", "the method read of a Resource"),
    "prompts": ("a Prompt", "the method get of a Prompt"),
}


class Overrides(TypedDict, total=False):
    """The options that every registration may change; a prompt has no others.

    Attributes:
        name: Another name; not for a kit of several tools.
        title: Another title; not for a kit of several tools.
        description: Another description; not for a kit of several tools.
        icons: Other pictures.
        meta: Another `_meta`.
        hidden: Left out of the list, still served. Wins over `visible`.
        visible: The opposite of `hidden`.
        timeout: Seconds, or None for no limit.
        requires: Other scopes that a caller must hold: `RequireScopes`, or names; None for none.
    """

    name: str
    title: str
    description: str
    icons: Iterable[Icon]
    meta: Mapping[str, Any] | None
    hidden: bool
    visible: bool
    timeout: float | None
    requires: RequireScopes | str | Sequence[str] | None


@final
@attrs.frozen(eq=False)
class Registration:
    """A component that a server is to serve; `tool()` makes one.

    Attributes:
        target: A component class, or a ready instance of one.
        overrides: Options that replace those of the component, checked.
    """

    target: Any
    overrides: Mapping[str, Any]


def refuses_decorating(function: Callable[_P, Registration]) -> Callable[_P, Registration]:
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


def register(kind: Kind, target: Any, overrides: Mapping[str, Any]) -> Registration:
    """Make a registration for a public function, at whose caller errors point.

    Args:
        kind: The kind that the function registers; its noun is the name of the function.
        target: The argument of the function; may be another registration.
        overrides: The options that it was given.

    Raises:
        DefinitionError: Something is wrong with the target or the options.
    """
    inner = as_registration(target)
    target = inner.target
    good, bad = read_options(kind.overrides, {**inner.overrides, **overrides})
    given, label = kind_of(target), label_of(target)
    if given is None:
        named = isinstance(target, type) or hasattr(target, "__code__")
        label = target.__name__ if named else called(target)
    where = f"{_maker(kind)}({label})"
    found = [(f"{where}.{name}", text) for name, text in bad]
    if given is not None and given.feature == kind.feature and given.noun != kind.noun:
        found.append((where, f"{label} is a {given.noun}; write {_maker(given)}({label})"))
    else:
        found += [(where, text) for text in _problems(target, good, kind.feature)]
    if found:
        frame = calling_frame(3)
        raise DefinitionError([problem_at(path, text, frame) for path, text in found])
    return Registration(target, good)


def _maker(kind: Kind) -> str:
    return kind.noun.replace(" ", "_")


def as_registration(item: Any) -> Registration:
    """Take a registration as it is, and anything else as one without overrides."""
    return item if isinstance(item, Registration) else Registration(item, {})


def label_of(target: Any) -> str:
    """Name a target in messages: the name of its class."""
    return class_of(target).__name__


def keys_of(item: Any) -> Iterator[tuple[str, str]]:
    """Yield the option that identifies each component of a registration, and its value.

    Args:
        item: A component class, an instance, or a registration; it must be free of problems.
    """
    registration = as_registration(item)
    for declared in registration.target.__mcp__:
        yield declared.key(registration.overrides)


def check(items: Iterable[Any], feature: str = "tools", *, in_class: bool = True) -> list[Problem]:
    """Find the problems of a list of a server, without making an instance of anything.

    Args:
        items: Component classes, instances, and registrations.
        feature: The list: `tools`, `resources` or `prompts`.
        in_class: True if the list is written in a class statement, where names keep the
            specification's rule; at run time they may be any printable text.

    Returns:
        A problem for each item that cannot be registered, and for each name, URI or template that
        several items have. `where` is `tools[2]`; the places in the source are left to the caller.
    """
    problems: list[Problem] = []
    keys: Counter[tuple[str, str]] = Counter()
    for index, item in enumerate(items):
        registration = as_registration(item)
        texts = _problems(registration.target, registration.overrides, feature)
        if not texts:
            keys.update(keys_of(registration))
            if in_class and feature != "resources":  # the names of these are for people
                try:
                    read_declared_name(registration.overrides.get("name", "-"))
                except ValueError as error:
                    texts = [f"name {error}"]
        problems += [Problem(f"{feature}[{index}]", text) for text in texts]
    for (option, value), count in keys.items():
        if count > 1:
            cure = f"give all but one another with {feature.removesuffix('s')}(…, {option}=…)"
            if option == "uri_template":  # no registration changes it
                cure = "the first would answer for all; keep one of them"
            text = f"the {option} {value!r} is registered {count} times; {cure}"
            problems.append(Problem(feature, text))
    return problems


@overload
def expand(items: Iterable[Any], feature: Literal["tools"] = "tools") -> list[ToolSpec]: ...
@overload
def expand(
    items: Iterable[Any], feature: Literal["resources"]
) -> list[ResourceSpec | TemplateSpec]: ...
@overload
def expand(items: Iterable[Any], feature: Literal["prompts"]) -> list[PromptSpec]: ...
@overload
def expand(items: Iterable[Any], feature: str) -> list[Bound]: ...
def expand(items: Iterable[Any], feature: str = "tools") -> Any:
    """Bind registered components to instances, in their order.

    Args:
        items: Component classes, instances, and registrations. A class is instantiated, once for
            each time it is registered. Names may be any printable text.
        feature: The list of the server that they are for: `tools`, `resources` or `prompts`.

    Returns:
        The bound components, overrides applied.

    Raises:
        DefinitionError: An item cannot be registered, or two have one name, URI or template.
    """
    registrations = list(map(as_registration, items))
    if problems := check(registrations, feature, in_class=False):
        raise DefinitionError(problems)
    bound = []
    for registration in registrations:
        target = registration.target
        instance = target() if isinstance(target, type) else target
        bound += [each.bind(instance, registration.overrides) for each in target.__mcp__]
    return bound


def _problems(target: Any, overrides: Mapping[str, Any], feature: str) -> list[str]:
    """Find the reasons why a target cannot be registered with these overrides."""
    kind = kind_of(target)
    if kind is None or kind.feature != feature:
        return [_stranger(target, feature)]
    label = label_of(target)
    if is_abstract(class_of(target)):
        return [f"{label} is abstract; register a subclass of it"]
    if isinstance(target, type) and (missing := missing_arguments(target)):
        example = ", ".join(missing)
        return [f"{label}() needs {example}; register an instance: {label}({example})"]
    given = [f"{name}=" for name in _SINGULAR if name in overrides]
    count = len(target.__mcp__)
    if given and count > 1:
        options = " and ".join(given)
        text = f"{options} would be shared by all {count} tools of {label}"
        return [f"{text}; write it in the @mcp(…) of each"]
    return []


def _stranger(target: Any, feature: str) -> str:
    """Say that something cannot be registered here, and where it can be or how to write it."""
    noun, (example, method) = feature.removesuffix("s"), _EXAMPLES[feature]
    kind = kind_of(target)
    if kind is not None:
        where = f"it in {kind.feature} = […]" if kind.noun else example
        return f"{label_of(target)} is not a {noun}; register {where}"
    owner = class_of(getattr(target, "__self__", None))
    if isinstance(owner, ComponentMeta):
        return f"{target.__name__} is a method of {owner.__name__}; register {owner.__name__}"
    if hasattr(target, "__code__"):
        return f"{target.__name__} is a function; make it {method}"
    if isinstance(target, type):
        root = example.split()[1]
        return f"the class {target.__name__} is not a {noun}; write class {target.__name__}({root})"
    if not isinstance(target, str):
        return f"{called(target)} is not a {noun}; register {example}"
    cure = "register the class itself"
    if noun != "tool" and "://" in target:
        root, option = (
            ("ResourceTemplate", "uri_template") if "{" in target else ("Resource", "uri")
        )
        cure = f"write class …({root}, {option}={target!r}) with a method read"
    return f"{target!r} is a text; {cure}"
