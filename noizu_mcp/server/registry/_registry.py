"""The registrations of a server: a collection for each kind of component."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...components import PromptSpec, ResourceSpec, TemplateSpec, ToolSpec
from ...protocol import adapt_definition, adapt_tool
from ...types import (
    PromptDefinition,
    RequireScopes,
    ResourceDefinition,
    ResourceTemplateDefinition,
    SkillDefinition,
    ToolDefinition,
)
from ._collection import Collection, Kind
from ._directories import make_tree
from ._pages import PAGE_SIZE, Page

if TYPE_CHECKING:
    from ...skills import SkillSpec

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

#: The spec that serves a URI, and for a template the values of its variables.
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
        tools: The tools.
        resources: The resources.
        templates: The resource templates.
        prompts: The prompts.
        skills: The skills.
        parts: The collections of each feature.
        directories: The contents of each directory of the skills.
        offered: The features that the server offers: their lists are declared, or something was in
            them. `tools`, `resources`, `prompts`, `completions`, `skills`.
        scoped: True if any registration requires scopes.
    """

    offered: frozenset[str]
    scoped: bool

    def __init__(
        self,
        tools: Iterable[ToolSpec] = (),
        page_size: int = PAGE_SIZE,
        *,
        resources: Iterable[ResourceSpec] = (),
        templates: Iterable[TemplateSpec] = (),
        prompts: Iterable[PromptSpec] = (),
        skills: Sequence["SkillSpec"] = (),
        declared: AbstractSet[str] = frozenset(),
    ) -> None:
        files = [file for skill in skills for file in skill.files.values()]
        # One lock for all: `_refresh` reads all of them. Readers take none, a change replaces maps.
        lock = threading.RLock()
        make: Any = partial(Collection, page_size=page_size, lock=lock, on_change=self._refresh)
        self.tools: Collection[ToolSpec] = make(TOOLS, tools, declared="tools" in declared)
        self.resources: Collection[ResourceSpec] = make(
            RESOURCES, [*resources, *files], declared="resources" in declared
        )
        # A list of resources says nothing of templates, which would offer completions as well.
        self.templates: Collection[TemplateSpec] = make(TEMPLATES, templates)
        self.prompts: Collection[PromptSpec] = make(
            PROMPTS, prompts, declared="prompts" in declared
        )
        self.skills: Collection[SkillSpec] = make(SKILLS, skills)
        self.directories = make_tree(skills)
        self.parts: dict[str, tuple[Collection[Any], ...]] = {
            "tools": (self.tools,),
            "resources": (self.resources, self.templates),
            "prompts": (self.prompts,),
            "completions": (self.prompts, self.templates),
            "skills": (self.skills,),
        }
        self._refresh()

    def _refresh(self) -> None:
        """Compute the flags that every request reads, once for each change."""
        parts = self.parts.items()
        self.offered = frozenset(
            feature for feature, found in parts if any(each.offered for each in found)
        )
        self.scoped = any(
            each.scoped for each in (self.tools, self.resources, self.templates, self.prompts)
        )

    @property
    def has_tasks(self) -> bool:
        """True if there is a tool whose calls can go on as tasks."""
        return any(spec.task is not None for spec in self.tools.specs.values())

    @property
    def has_subscribable(self) -> bool:
        """True once a resource or a template is, or was, subscribable."""
        return self.resources.watchable or self.templates.watchable

    def find_tool(self, name: str) -> ToolSpec | None:
        """Find a tool by its wire name, hidden or not."""
        return self.tools.specs.get(name)

    def find_prompt(self, name: str) -> PromptSpec | None:
        """Find a prompt by its wire name, hidden or not."""
        return self.prompts.specs.get(name)

    def find_resource(self, uri: str) -> Found | None:
        """Find the spec that serves a URI: the resource itself, else the first matching template.

        Returns:
            The spec, and the variables of a template.
        """
        resource = self.resources.specs.get(uri)
        if resource is not None:
            return resource, None
        # In the order of registration: overlapping templates are legal, and the author decides
        # which one wins.
        for template in self.templates.specs.values():
            variables = template.match(uri)
            if variables is not None:
                return template, variables
        return None

    def required_for(self, uri: str) -> RequireScopes | None:
        """Return the scopes that a caller needs to read or watch a resource; None for none."""
        found = self.find_resource(uri) if self.scoped else None
        return None if found is None else found[0].requires

    def is_subscribable(self, uri: str) -> bool:
        """Tell whether the resource or template of a URI is subscribable and not hidden."""
        found = self.find_resource(uri)
        return found is not None and found[0].subscribable and not found[0].hidden

    def list(self) -> Sequence[Mapping[str, Any]]:
        """List the definitions of the tools that are not hidden, as they go over the wire."""
        return [spec.definition for spec in self.tools.shown]

    def expand(self) -> Sequence[ToolSpec]:
        """List the specs of all tools, with the overrides of their registrations applied."""
        return tuple(self.tools.specs.values())

    def entries(self, kind: str) -> Iterator[tuple[dict[str, Any], bool]]:
        """Iterate over everything of a kind with its `hidden` flag.

        Args:
            kind: `tools`, `resources`, `resource_templates` or `prompts`.
        """
        collections: dict[str, Collection[Any]] = {
            "tools": self.tools,
            "resources": self.resources,
            "resource_templates": self.templates,
            "prompts": self.prompts,
        }
        for spec in collections[kind].specs.values():
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
        return self.tools.page(cursor, include_hidden=include_hidden)

    def list_resources(
        self, cursor: str | None = None, *, include_hidden: bool = False
    ) -> Page[ResourceSpec]:
        """Cut one page out of the list of resources, without those that templates compute."""
        return self.resources.page(cursor, include_hidden=include_hidden)

    def list_resource_templates(
        self, cursor: str | None = None, *, include_hidden: bool = False
    ) -> Page[TemplateSpec]:
        """Cut one page out of the list of resource templates; see `list_tools`."""
        return self.templates.page(cursor, include_hidden=include_hidden)

    def list_prompts(
        self, cursor: str | None = None, *, include_hidden: bool = False
    ) -> Page[PromptSpec]:
        """Cut one page out of the list of prompts; see `list_tools`."""
        return self.prompts.page(cursor, include_hidden=include_hidden)
