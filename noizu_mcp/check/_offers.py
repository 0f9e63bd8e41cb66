"""The lists of a server, and checks of what is listed in them, for several folders."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from .._errors import SchemaError
from .._limits import Limits
from ..schema import compile_schema
from ..types import (
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from ..uri import UriTemplate

ListedDefinition = (
    ToolDefinition | ResourceDefinition | ResourceTemplateDefinition | PromptDefinition
)

#: Maximum pages of one list that are read.
MAX_PAGES: Final = 50
#: The limits of a list, in bytes, entries and seconds.
LIMITS: Final = Limits()


class OfferedList(NamedTuple):
    """One list of a server.

    Attributes:
        kind: The kind of its components.
        capability: The capability that declares it.
        method: The method.
        key: The member of the result.
        name: The member that names a component.
        definition: The class that reads a definition.
    """

    kind: Literal["tool", "resource", "template", "prompt"]
    capability: str
    method: str
    key: str
    name: str
    definition: type[ListedDefinition]

    @property
    def notice(self) -> str:
        """The notification of a change."""
        return f"notifications/{self.capability}/list_changed"


#: Every list, in the order of a report.
LISTS: Final = (
    OfferedList("tool", "tools", "tools/list", "tools", "name", ToolDefinition),
    OfferedList("resource", "resources", "resources/list", "resources", "uri", ResourceDefinition),
    OfferedList(
        "template",
        "resources",
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
        ResourceTemplateDefinition,
    ),
    OfferedList("prompt", "prompts", "prompts/list", "prompts", "name", PromptDefinition),
)


def schema_fault(schema: Mapping[str, object], *, needs_object: bool) -> str | None:
    """Describe the fault of a schema of a tool; None if it is valid.

    Args:
        schema: The schema.
        needs_object: True if its root must be an object.
    """
    try:
        compile_schema(schema, trusted=False)
    except SchemaError as error:
        return str(error)
    is_object = schema.get("type") == "object"
    return 'its "type" is not "object"' if needs_object and not is_object else None


def read_template(text: str) -> UriTemplate | None:
    """Parse a URI template; None if it is not valid."""
    try:
        return UriTemplate(text)
    except ValueError:
        return None
