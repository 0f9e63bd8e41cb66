"""What a server offers: a shelf for each kind."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..components import PromptSpec, ResourceSpec, TemplateSpec, ToolSpec
from ..protocol import adapt_definition, adapt_tool
from ..types import (
    PromptDefinition,
    RequireScopes,
    ResourceDefinition,
    ResourceTemplateDefinition,
    SkillDefinition,
    ToolDefinition,
)
from ._directories import make_tree
from ._pages import PAGE_SIZE, Page
from ._shelf import Kind, Shelf

if TYPE_CHECKING:
    from ..skills import SkillSpec

TOOLS: Final = Kind("tool", "tools", "name", adapt_tool, ToolDefinition)
RESOURCES: Final = Kind("resource", "resources", "uri", adapt_definition, ResourceDefinition)
TEMPLATES: Final = Kind(
    "resource template",
    "resourceTemplates",
    "uriTemplate",
    adapt_definition,
    ResourceTemplateDefinition,
)
PROMPTS: Final = Kind("prompt", "prompts", "name", adapt_definition, PromptDefinition)
SKILLS: Final = Kind("skill", "skills", "uri", adapt_definition, SkillDefinition)

#: What serves a URI, and the values of its variables if it is a template.
Found = tuple[ResourceSpec | TemplateSpec, Any]


class Registry:
    """The registrations of one server.

    Args:
        tools: The tools, in order.
        page_size: Entries of one page of a list.
        resources: The resources, in order.
        templates: The resource templates, in order.
        prompts: The prompts, in order.
        skills: The skills, in order; their files stand behind the resources.
        declared: The features whose lists the server declares, even if they are empty: `tools`,
            `resources`, `prompts`. Templates belong to the resources.

    Attributes:
        tool_shelf: The tools.
        resource_shelf: The resources.
        template_shelf: The resource templates.
        prompt_shelf: The prompts.
        skill_shelf: The skills.
        directories: What lies in each directory of the skills.
    """

    def __init__(
        self,
        tools: Iterable[ToolSpec] = (),
        page_size: int = PAGE_SIZE,
        *,
        resources: Iterable[ResourceSpec] = (),
        templates: Iterable[TemplateSpec] = (),
        prompts: Iterable[PromptSpec] = (),
        skills: Sequence["SkillSpec"] = (),
        declared: Collection[str] = (),
    ) -> None:
        files = [file for skill in skills for file in skill.files.values()]
        self.tool_shelf = Shelf(TOOLS, tools, page_size, declared="tools" in declared)
        self.resource_shelf = Shelf(
            RESOURCES, [*resources, *files], page_size, declared="resources" in declared
        )
        # A list of resources says nothing of templates, which would offer completions as well.
        self.template_shelf = Shelf(TEMPLATES, templates, page_size)
        self.prompt_shelf = Shelf(PROMPTS, prompts, page_size, declared="prompts" in declared)
        self.skill_shelf = Shelf(SKILLS, skills, page_size)
        self.directories = make_tree(skills)
        self._shelves: dict[str, tuple[Shelf[Any], ...]] = {
            "tools": (self.tool_shelf,),
            "resources": (self.resource_shelf, self.template_shelf),
            "prompts": (self.prompt_shelf,),
            "completions": (self.prompt_shelf, self.template_shelf),
            "skills": (self.skill_shelf,),
        }

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools by name, in order."""
        return self.tool_shelf.specs

    def has(self, feature: str) -> bool:
        """Tell whether the server offers a feature: its list is declared, or something was in it.

        Args:
            feature: `tools`, `resources`, `prompts`, `completions` or `skills`.
        """
        for shelf in self._shelves[feature]:  # noqa: SIM110 - asked for with each request
            if shelf.offered:
                return True
        return False

    @property
    def has_tasks(self) -> bool:
        """True if there is a tool whose calls can go on as tasks."""
        return any(spec.task is not None for spec in self.tool_shelf.specs.values())

    @property
    def scoped(self) -> bool:
        """True if anything that is registered requires scopes."""
        # Asked for with each request: written out, it costs half as much.
        return (
            self.tool_shelf.scoped
            or self.resource_shelf.scoped
            or self.template_shelf.scoped
            or self.prompt_shelf.scoped
        )

    @property
    def has_subscribable(self) -> bool:
        """True once a resource or a template is, or was, subscribable."""
        return self.resource_shelf.watchable or self.template_shelf.watchable

    def find(self, name: str) -> ToolSpec | None:
        """Find a tool by its wire name, hidden or not."""
        return self.tool_shelf.specs.get(name)

    def find_prompt(self, name: str) -> PromptSpec | None:
        """Find a prompt by its wire name, hidden or not."""
        return self.prompt_shelf.specs.get(name)

    def find_resource(self, uri: str) -> Found | None:
        """Find what serves a URI: the resource itself, else the first template that matches.

        Returns:
            The spec, and the variables of a template.
        """
        resource = self.resource_shelf.specs.get(uri)
        if resource is not None:
            return resource, None
        for template in self.template_shelf.specs.values():
            variables = template.match(uri)
            if variables is not None:
                return template, variables
        return None

    def required_for(self, uri: str) -> RequireScopes | None:
        """Say what a caller must hold to read a resource, or to hear of it; None for nothing."""
        found = self.find_resource(uri) if self.scoped else None
        return None if found is None else found[0].requires

    def is_subscribable(self, uri: str) -> bool:
        """Tell whether what serves a URI is subscribable, and not hidden."""
        found = self.find_resource(uri)
        return found is not None and found[0].subscribable and not found[0].hidden

    def list(self) -> Sequence[Mapping[str, Any]]:
        """List the definitions of the tools that are not hidden, as they go over the wire."""
        return [spec.definition for spec in self.tool_shelf.shown]

    def expand(self) -> Sequence[ToolSpec]:
        """List the specs of all tools, with the overrides of their registrations applied."""
        return tuple(self.tool_shelf.specs.values())

    def entries(self, kind: str) -> Iterator[tuple[dict[str, Any], bool]]:
        """Iterate over everything of a kind with its `hidden` flag.

        Args:
            kind: `tools`, `resources`, `resource_templates` or `prompts`.
        """
        shelves: dict[str, Shelf[Any]] = {
            "tools": self.tool_shelf,
            "resources": self.resource_shelf,
            "resource_templates": self.template_shelf,
            "prompts": self.prompt_shelf,
        }
        for spec in shelves[kind].specs.values():
            yield dict(spec.definition), spec.hidden

    def list_tools(
        self, cursor: str | None = None, *, include_hidden: bool = False
    ) -> Page[ToolSpec]:
        """Cut one page out of the list of tools.

        Args:
            cursor: Where it begins; None for the first page.
            include_hidden: Take hidden tools too.

        Raises:
            McpError: The cursor is invalid (-32602).
        """
        return self.tool_shelf.page(cursor, include_hidden=include_hidden)

    def list_resources(
        self, cursor: str | None = None, *, include_hidden: bool = False
    ) -> Page[ResourceSpec]:
        """Cut one page out of the list of resources, without those that templates compute."""
        return self.resource_shelf.page(cursor, include_hidden=include_hidden)

    def list_resource_templates(
        self, cursor: str | None = None, *, include_hidden: bool = False
    ) -> Page[TemplateSpec]:
        """Cut one page out of the list of resource templates; see `list_tools`."""
        return self.template_shelf.page(cursor, include_hidden=include_hidden)

    def list_prompts(
        self, cursor: str | None = None, *, include_hidden: bool = False
    ) -> Page[PromptSpec]:
        """Cut one page out of the list of prompts; see `list_tools`."""
        return self.prompt_shelf.page(cursor, include_hidden=include_hidden)
