"""Registrations: classes, instances, and `tool(target, …)`, checked and bound to instances.

`check` looks at the lists of a server when its class is made, and makes no instance of anything;
`expand` binds them to instances. Both go by the kinds of the components.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypedDict, overload

from ..._errors import DefinitionError, Problem
from ..._foreign import METHODS
from ..._source import calling_frame, problem_at
from ..._util import called, final
from ..._value import Frozen
from ...types import Icon
from ..declare._functions import function_component, is_function, read_function
from ..declare._marks import Mark
from ..declare._options import read_declared_name, read_options
from ..declare._statement import (
    ComponentKind,
    ComponentMeta,
    FunctionComponent,
    class_of,
    is_abstract,
    kind_of,
    missing_arguments,
    unfinished,
)
from ..declare._tool_kind import TOOL
from ..handlers._bound import Bound, PromptSpec, ResourceSpec, TemplateSpec, ToolSpec

if TYPE_CHECKING:
    from ...types import RequireScopes

# Options that several tools must not share: each tool would have them.
_SINGULAR: Final = ("name", "title", "description")

_P = ParamSpec("_P")


# For messages: the items of each list.
_EXAMPLES: Final = {
    "tools": "a Tool, a Toolkit or a function",
    "resources": "a Resource or a ResourceTemplate",
    "prompts": "a Prompt or a function",
}


class SharedOptions(TypedDict, total=False):
    """The options that every component has, and every registration may change.

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
        available: Another function of the context that tells who may list and use it; None:
            everybody.
        loop: Another loop for its coroutine functions: `trio` or `asyncio`.
    """

    name: str
    title: str
    description: str
    icons: Iterable[Icon]
    meta: Mapping[str, object] | None
    hidden: bool
    visible: bool
    timeout: float | None
    requires: "RequireScopes | str | Sequence[str] | None"
    available: Callable[[object], object] | None
    loop: Literal["trio", "asyncio"]


class Overrides(SharedOptions, total=False):
    """The options of every registration; a prompt has no others.

    Attributes:
        prefix: A word that is put before the names of all tools of a kit, before the name of a tool
            or a prompt, `eu_charge`, and before the scheme of a URI, `eu+db://orders`.
    """

    prefix: str


@final
class Registration(Frozen):
    """A component that a server is to serve; `tool()` makes one.

    Attributes:
        target: A component class, a ready instance of one, or a function that was read.
        overrides: Options that replace options of the component, checked.
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
            text = f"takes one class, instance or function, and options; {METHODS[maker]}"
            raise DefinitionError([problem_at(f"{maker}(…)", text, calling_frame())])
        return function(*args, **options)

    return checked


def register(
    kind: ComponentKind, target: Any, overrides: Mapping[str, object], maker: str | None = None
) -> Registration:
    """Make a registration for a public function, at whose caller errors point.

    Args:
        kind: The kind that the function registers.
        target: The argument of the function; may be another registration.
        overrides: The options that it was given. For a function they are all that it has.
        maker: The name of the public function; by default the noun of the kind.

    Raises:
        DefinitionError: Something is wrong with the target or the options.
    """
    # Past this function, the public one and its wrapper: the line that the author wrote.
    frame = calling_frame(3)
    maker = maker or _maker(kind)
    # A registration of a registration: the outer options win, and there is one of them in the end.
    inner = (
        target if isinstance(target, Registration) else Registration(target=target, overrides={})
    )
    target, table, before = inner.target, kind.overrides, inner.overrides
    if isinstance(target, FunctionComponent) and target.kind.feature == kind.feature:
        kind, before = target.kind, {**target.given, **before}
        target = target.function
    reads = is_function(target)
    if reads:
        table = {**kind.overrides, **kind.of_functions}
    good, bad = read_options(table, {**before, **overrides})
    given, label = kind_of(target), label_of(target)
    if given is None:
        named = isinstance(target, type) or hasattr(target, "__code__")
        label = target.__name__ if named else called(target)
    where = f"{maker}({label})"
    shown = {"uri_template": "uri"} if maker == "resource" else {}
    found = [(f"{where}.{shown.get(name, name)}", text) for name, text in bad]
    broken: tuple[Problem, ...] = ()
    if reads:
        own = {name: good.pop(name) for name in kind.of_functions.keys() & good.keys()}
        # An option that is wrong has its problem already, and one is enough.
        known = {**dict.fromkeys(name for name, _ in bad), **good}
        target = read_function(kind, target, own, known, frame)
        broken = target.problems
    # Resources and templates share a list, so the check of the list would not tell them apart.
    elif given is not None and given.feature == kind.feature and given.noun != kind.noun:
        found.append((where, f"{label} is a {given.noun}; write {_maker(given)}({label})"))
    else:
        found += [(where, text) for text in _problems(target, good, kind.feature)]
    if found or broken:
        here = [problem_at(path, text, frame) for path, text in found]
        raise DefinitionError([*here, *broken])
    return Registration(target=target, overrides=good)


def _maker(kind: ComponentKind) -> str:
    return kind.noun.replace(" ", "_")


def as_registration(item: object, feature: str = "") -> Registration:
    """Take a registration as it is, and anything else as one without overrides.

    Args:
        item: A registration, a component class, an instance, or a function.
        feature: The list with the item: a function is a tool or a prompt. Without it a function
            is not read.
    """
    if isinstance(item, Registration):
        return item
    if feature == "tools" and is_function(item):
        item = function_component(TOOL, item)
    elif feature == "prompts" and is_function(item):
        from ..declare._prompt_kind import PROMPT

        item = function_component(PROMPT, item)
    return Registration(target=item, overrides={})


def label_of(target: object) -> str:
    """Name a target in messages: the name of its class, or of the function."""
    return target.label if isinstance(target, FunctionComponent) else class_of(target).__name__


def keys_of(item: object) -> Iterator[tuple[str, str]]:
    """Yield the option that identifies each component of a registration, and its value.

    Args:
        item: A component class, an instance, or a registration; it must be free of problems.
    """
    registration = as_registration(item)
    for declared in registration.target.__mcp__:
        yield declared.key(registration.overrides)


def check(
    items: Iterable[object], feature: str = "tools", *, in_class: bool = True
) -> list[Problem]:
    """Find the problems of a list of a server, without making an instance of anything.

    Args:
        items: Component classes, instances, functions, and registrations.
        feature: The list: `tools`, `resources` or `prompts`.
        in_class: True if the list is written in a class statement, where names keep the
            specification's rule; at run time they may be any printable text.

    Returns:
        A problem for each item that cannot be registered, and for each name, URI or template that
        several items have. `where` is `tools[2]`; the places in the source are left to the caller.
        A problem of a function has the place of the function.
    """
    problems: list[Problem] = []
    keys: Counter[tuple[str, str]] = Counter()
    for index, item in enumerate(items):
        registration = as_registration(item, feature)
        target = registration.target
        if isinstance(target, FunctionComponent) and target.problems:
            problems += [
                each if each.line else Problem(f"{feature}[{index}]", f"{each.where} {each.text}")
                for each in target.problems
            ]
            continue
        texts = _problems(target, registration.overrides, feature)
        # Only right items have keys, and a wrong one has its problem already.
        if not texts:
            keys.update(keys_of(registration))
            if in_class and feature != "resources":  # names of resources are for people
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
def expand(items: Iterable[object], feature: Literal["prompts"]) -> list[PromptSpec]: ...
@overload
def expand(items: Iterable[object], feature: str) -> list[Bound]: ...
def expand(items: Iterable[object], feature: str = "tools") -> object:
    """Bind registered components to instances, in their order.

    Args:
        items: Component classes, instances, functions, and registrations. A class is instantiated,
            once for each time it is registered. Names may be any printable text.
        feature: The list of the server that they are for: `tools`, `resources` or `prompts`.

    Returns:
        The bound components, overrides applied.

    Raises:
        DefinitionError: An item cannot be registered, or two have one name, URI or template.
    """
    registrations = [as_registration(item, feature) for item in items]
    if problems := check(registrations, feature, in_class=False):
        raise DefinitionError(problems)
    bound = []
    for registration in registrations:
        target = registration.target
        # Once for each registration: two servers share no instance unless it was given to both.
        instance = target() if isinstance(target, type) else target
        bound += [each.bind(instance, registration.overrides) for each in target.__mcp__]
    return bound


def _problems(target: Any, overrides: Mapping[str, object], feature: str) -> list[str]:
    """Find the reasons why a target cannot be registered with these overrides."""
    kind = kind_of(target)
    if kind is None or kind.feature != feature:
        return [_stranger(target, feature)]
    label = label_of(target)
    if isinstance(target, FunctionComponent):
        return []
    if is_abstract(class_of(target)):
        lacks = unfinished(class_of(target)) or "is abstract; register a subclass of it"
        return [f"{label} {lacks}"]
    # Said now: the instance is made when the server is, far from the line that lists the class.
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
    noun, example = feature.removesuffix("s"), _EXAMPLES[feature]
    kind = kind_of(target)
    # A bound method of an instance, `kit.read_file`.
    owner = class_of(getattr(target, "__self__", None))
    if kind is not None:
        where = f"it in {kind.feature} = […]" if kind.noun else example
        text = f"{label_of(target)} is not a {noun}; register {where}"
    elif isinstance(owner, ComponentMeta):
        text = f"{target.__name__} is a method of {owner.__name__}; register {owner.__name__}"
    elif isinstance(target, Mark):
        text = target.problem()
    elif is_function(target):  # a resource, which no name identifies
        name = getattr(target, "__name__", "…")
        text = f"{called(target)} needs a URI; write resource({name}, uri='config://app')"
    elif isinstance(target, type):
        name, root = target.__name__, example.replace(",", "").split()[1]
        text = f"the class {name} is not a {noun}; write class {name}({root})"
    elif not isinstance(target, str):
        text = f"{called(target)} is not a {noun}; register {example}"
    elif noun != "tool" and "://" in target:
        text = f"{target!r} is a text; write resource(function, uri={target!r})"
    else:
        text = f"{target!r} is a text; register the class itself"
    return text
