"""What a server is given beside tools: resources, templates and prompts, as registrations."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, Unpack

from .._errors import Problem
from ._declare import class_of, kind_of
from ._overrides import Overrides, ResourceOverrides, TemplateOverrides
from ._prompt import Prompt
from ._prompt_spec import PromptSpec
from ._registration import (
    Registration,
    check_list,
    component_problems,
    expand_list,
    label_of,
    refuses_decorating,
    register,
    stranger,
)
from ._resource import Resource, ResourceTemplate
from ._resource_options import PROMPT_OVERRIDES, RESOURCE_OVERRIDES, TEMPLATE_OVERRIDES
from ._resource_spec import ResourceSpec, TemplateSpec

#: What can be registered as a resource, as a template and as a prompt.
ResourceTarget: TypeAlias = "type[Resource] | Resource | Registration"
TemplateTarget: TypeAlias = "type[ResourceTemplate] | ResourceTemplate | Registration"
PromptTarget: TypeAlias = "type[Prompt] | Prompt | Registration"


@refuses_decorating
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


@refuses_decorating
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


@refuses_decorating
def prompt(target: PromptTarget, /, **overrides: Unpack[Overrides]) -> Registration:
    """Register a prompt with some of its options changed.

    Args:
        target: A `Prompt` class, a ready instance of one, or another registration.
        **overrides: What to change; see `Overrides`.

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
    return check_list("resources", items, _any_problems)


def check_prompts(items: Iterable[Any]) -> list[Problem]:
    """Find what is wrong in `prompts = […]`, without making an instance of anything.

    Args:
        items: Prompt classes, instances, and registrations.

    Returns:
        A problem for each item that cannot be registered, for each name that breaks the rule for
        declared names, and for each name that several items have. `where` is `prompts[2]`; the
        places in the source are left to the caller.
    """
    return check_list("prompts", items, _prompt_problems, declared_names=True)


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
    specs = expand_list("resources", items, _any_problems)
    return (
        [spec for spec in specs if isinstance(spec, ResourceSpec)],
        [spec for spec in specs if isinstance(spec, TemplateSpec)],
    )


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
    return expand_list("prompts", items, _prompt_problems)


def _any_problems(target: Any, _: Mapping[str, Any]) -> list[str]:
    if kind_of(target) != "resources":
        example = "a Resource or a ResourceTemplate"
        return [stranger(target, "resource", example, f"the method read of {example}")]
    return component_problems(target)


def _resource_problems(target: Any, overrides: Mapping[str, Any]) -> list[str]:
    if issubclass(class_of(target), ResourceTemplate):
        label = label_of(target)
        return [f"{label} is a resource template; write resource_template({label})"]
    return _any_problems(target, overrides)


def _template_problems(target: Any, overrides: Mapping[str, Any]) -> list[str]:
    if issubclass(class_of(target), Resource):
        label = label_of(target)
        return [f"{label} is one resource; write resource({label})"]
    return _any_problems(target, overrides)


def _prompt_problems(target: Any, _: Mapping[str, Any]) -> list[str]:
    if kind_of(target) != "prompts":
        return [stranger(target, "prompt", "a Prompt", "the method get of a Prompt")]
    return component_problems(target)
