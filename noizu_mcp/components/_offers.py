"""What a server is given beside tools: resources, templates and prompts, as registrations."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, TypedDict, Unpack

from .._errors import DefinitionError, Problem
from ..types import ContentAnnotations, Icon
from ._declare import kind_of
from ._prompt import Prompt
from ._prompt_spec import PromptSpec
from ._registration import (
    Registration,
    as_registration,
    component_problems,
    label_of,
    name_problems,
    register,
)
from ._resource import Resource, ResourceTemplate
from ._resource_options import PROMPT_OVERRIDES, RESOURCE_OVERRIDES, TEMPLATE_OVERRIDES
from ._resource_spec import ResourceSpec, TemplateSpec


class PromptOverrides(TypedDict, total=False):
    """What the registration of a prompt may change.

    Attributes:
        name: Another name.
        title: Another title.
        description: Another description.
        icons: Other pictures.
        meta: Another `_meta`.
        hidden: Left out of the list, still served. Wins over `visible`.
        visible: The opposite of `hidden`.
        timeout: Seconds, or None for no limit.
    """

    name: str
    title: str
    description: str
    icons: Iterable[Icon]
    meta: Mapping[str, Any] | None
    hidden: bool
    visible: bool
    timeout: float | None


class TemplateOverrides(PromptOverrides, total=False):
    """What the registration of a template may change.

    Attributes:
        mime_type: Another media type.
        annotations: For whom its resources are, and how much they matter.
        subscribable: Whether clients may ask to be told when one of them changes.
    """

    mime_type: str
    annotations: ContentAnnotations | Mapping[str, Any] | None
    subscribable: bool


class ResourceOverrides(TemplateOverrides, total=False):
    """What the registration of a resource may change.

    Attributes:
        uri: Another URI.
        size: Another number of bytes.
    """

    uri: str
    size: int


#: What can be registered as a resource, as a template and as a prompt.
ResourceTarget: TypeAlias = "type[Resource] | Resource | Registration"
TemplateTarget: TypeAlias = "type[ResourceTemplate] | ResourceTemplate | Registration"
PromptTarget: TypeAlias = "type[Prompt] | Prompt | Registration"


def resource(target: ResourceTarget, /, **overrides: Unpack[ResourceOverrides]) -> Registration:
    """Register a resource with some of its options changed.

    Args:
        target: A `Resource` class, a ready instance of one, or another registration.
        **overrides: What to change; see `ResourceOverrides`.

    Returns:
        What goes into `resources = […]` of a server.

    Raises:
        DefinitionError: The target is no resource, or an option is unknown or wrong.
    """
    return register("resource", target, {**overrides}, RESOURCE_OVERRIDES, _resource_problems)


def resource_template(
    target: TemplateTarget, /, **overrides: Unpack[TemplateOverrides]
) -> Registration:
    """Register a resource template with some of its options changed.

    Args:
        target: A `ResourceTemplate` class, a ready instance of one, or another registration.
        **overrides: What to change; see `TemplateOverrides`.

    Returns:
        What goes into `resources = […]` of a server.

    Raises:
        DefinitionError: The target is no template, or an option is unknown or wrong.
    """
    overridden = {**overrides}
    return register("resource_template", target, overridden, TEMPLATE_OVERRIDES, _template_problems)


def prompt(target: PromptTarget, /, **overrides: Unpack[PromptOverrides]) -> Registration:
    """Register a prompt with some of its options changed.

    Args:
        target: A `Prompt` class, a ready instance of one, or another registration.
        **overrides: What to change; see `PromptOverrides`.

    Returns:
        What goes into `prompts = […]` of a server.

    Raises:
        DefinitionError: The target is no prompt, or an option is unknown or wrong.
    """
    return register("prompt", target, {**overrides}, PROMPT_OVERRIDES, _prompt_problems)


def check_resources(items: Iterable[Any]) -> list[Problem]:
    """Find what is wrong in `resources = […]`, without making an instance of anything.

    Args:
        items: Resource and template classes, instances, and registrations.

    Returns:
        A problem for each item that cannot be registered, and for each URI and each template that
        several items have. `where` is `resources[2]`; the places in the source are left to the
        caller.
    """
    problems: list[Problem] = []
    keys: Counter[tuple[str, str]] = Counter()
    for index, item in enumerate(items):
        registration = as_registration(item)
        texts = _any_problems(registration.target)
        problems += [Problem(f"resources[{index}]", text) for text in texts]
        if not texts:
            keys[_key(registration)] += 1
    return problems + _resource_duplicates(keys)


def check_prompts(items: Iterable[Any]) -> list[Problem]:
    """Find what is wrong in `prompts = […]`, without making an instance of anything.

    Args:
        items: Prompt classes, instances, and registrations.

    Returns:
        A problem for each item that cannot be registered, for each name that breaks the rule for
        declared names, and for each name that several items have. `where` is `prompts[2]`; the
        places in the source are left to the caller.
    """
    problems: list[Problem] = []
    names: Counter[str] = Counter()
    for index, item in enumerate(items):
        registration = as_registration(item)
        texts = _prompt_problems(registration.target, registration.overrides)
        if not texts:
            names[_name(registration)] += 1
            texts = name_problems(registration)
        problems += [Problem(f"prompts[{index}]", text) for text in texts]
    return problems + _prompt_duplicates(names)


def expand_resources(items: Iterable[Any]) -> tuple[list[ResourceSpec], list[TemplateSpec]]:
    """Make the specs of registered resources and templates, in their order.

    Args:
        items: Resource and template classes, instances, and registrations. A class is
            instantiated, once for each time it is registered.

    Returns:
        The specs of the resources, then those of the templates, overrides applied.

    Raises:
        DefinitionError: Something is neither, or two have one URI or one template.
    """
    given = list(items)
    if problems := check_resources(given):
        raise DefinitionError(problems)
    resources: list[ResourceSpec] = []
    templates: list[TemplateSpec] = []
    for item in given:
        spec = _bind(as_registration(item))
        (resources if isinstance(spec, ResourceSpec) else templates).append(spec)
    return resources, templates


def expand_prompts(items: Iterable[Any]) -> list[PromptSpec]:
    """Make the specs of registered prompts, in their order.

    Args:
        items: Prompt classes, instances, and registrations. A class is instantiated, once for
            each time it is registered. Names may be any printable text.

    Returns:
        The specs, overrides applied.

    Raises:
        DefinitionError: Something is no prompt, or two prompts have one name.
    """
    registrations = list(map(as_registration, items))
    problems = [
        Problem(f"prompts[{index}]", text)
        for index, registration in enumerate(registrations)
        for text in _prompt_problems(registration.target, registration.overrides)
    ]
    if not problems:
        problems = _prompt_duplicates(Counter(map(_name, registrations)))
    if problems:
        raise DefinitionError(problems)
    return list(map(_bind, registrations))


def _bind(registration: Registration) -> Any:
    target = registration.target
    instance = target() if isinstance(target, type) else target
    return target.__mcp__[0].bind(instance, registration.overrides)


def _name(registration: Registration) -> str:
    options = {**registration.target.__mcp__[0].options, **registration.overrides}
    name: str = options["name"]
    return name


def _key(registration: Registration) -> tuple[str, str]:
    """Tell what no two may have in common: the URI, or the template."""
    plan = registration.target.__mcp__[0]
    is_template = _is_a(registration.target, ResourceTemplate)
    kind = "uri_template" if is_template else "uri"
    return kind, registration.overrides.get("uri", plan.options[plan.key])


def _is_a(target: Any, root: type) -> bool:
    return issubclass(target if isinstance(target, type) else type(target), root)


def _resource_duplicates(keys: Counter[tuple[str, str]]) -> list[Problem]:
    return [
        Problem("resources", f"the {kind} {key!r} is registered {count} times; {_CURES[kind]}")
        for (kind, key), count in keys.items()
        if count > 1
    ]


_CURES: Final = {
    "uri": "give all but one another with resource(…, uri=…)",
    "uri_template": "the first would answer for all; keep one of them",
}


def _prompt_duplicates(names: Counter[str]) -> list[Problem]:
    return [
        Problem(
            "prompts",
            f"the name {name!r} is registered {count} times; give all but one another with"
            " prompt(…, name=…)",
        )
        for name, count in names.items()
        if count > 1
    ]


def _any_problems(target: Any) -> list[str]:
    if kind_of(target) != "resources":
        return [_stranger(target, "resource", "a Resource or a ResourceTemplate")]
    return component_problems(target)


def _resource_problems(target: Any, _: Mapping[str, Any]) -> list[str]:
    if _is_a(target, ResourceTemplate):
        label = label_of(target)
        return [f"{label} is a resource template; write resource_template({label})"]
    return _any_problems(target)


def _template_problems(target: Any, _: Mapping[str, Any]) -> list[str]:
    if _is_a(target, Resource):
        label = label_of(target)
        return [f"{label} is one resource; write resource({label})"]
    return _any_problems(target)


def _prompt_problems(target: Any, _: Mapping[str, Any]) -> list[str]:
    if kind_of(target) != "prompts":
        return [_stranger(target, "prompt", "a Prompt")]
    return component_problems(target)


def _stranger(target: Any, noun: str, example: str) -> str:
    kind = kind_of(target)
    if kind is not None:
        return f"{label_of(target)} is no {noun}; register it in {kind} = […]"
    return f"{target!r} is no {noun}; register {example}"
