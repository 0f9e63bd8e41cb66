"""Components: the classes that users subclass, and what a server makes of them.

At the root of the folder stands all that users subclass or call; the rooms hold the machinery, and
each imports only from those above it:

    _context, _asking, _outbound   the request, as handlers see it
    handlers/       methods: signatures, arguments, results
    declare/        class statements: options, marks, schemas
    registration/   what a server is given
    _tool, _toolkit, _resource, _prompt, _catalog

Resources, templates, prompts and completion load when they are first used: most servers have tools
only.
"""

from typing import TYPE_CHECKING

from .._util import late, publish
from ._asking import (
    ELICIT_TIMEOUT,
    SAMPLE_TIMEOUT,
    TIMEOUTS,
    adapt_request,
    needed_by,
    read_by_hand,
)
from ._context import Context
from ._tool import Tool, tool
from ._toolkit import Toolkit, mcp
from .declare._kind import Kind
from .declare._marks import is_marked
from .declare._options import (
    Table,
    read_flag,
    read_icons,
    read_options,
    read_requires,
    read_seconds,
    read_text,
)
from .declare._statement import ComponentMeta, Declaration, class_of, is_abstract, kind_of
from .handlers._bound import Bound, PromptSpec, ResourceSpec, TemplateSpec, ToolSpec
from .handlers._signature import UNRESOLVED, Signature, is_context
from .handlers._tool_calls import FAILED, error_result, prepare, to_result
from .registration._registration import (
    Registration,
    as_registration,
    check,
    expand,
    keys_of,
    label_of,
)

_LATE = {
    **dict.fromkeys(("Completer", "Source", "complete_from"), ".handlers._completion"),
    "to_completion": ".handlers._completion",
    **dict.fromkeys(("to_contents", "to_listed", "to_prompt_result"), ".handlers._contents"),
    **dict.fromkeys(("Prompt", "prompt"), "._prompt"),
    **dict.fromkeys(("Resource", "ResourceTemplate", "resource"), "._resource"),
    "Catalog": "._catalog",
    "resource_template": "._resource",
}

if TYPE_CHECKING:
    from ._catalog import Catalog
    from ._prompt import Prompt, prompt
    from ._resource import Resource, ResourceTemplate, resource, resource_template
    from .handlers._completion import Completer, Source, complete_from, to_completion
    from .handlers._contents import to_contents, to_listed, to_prompt_result
else:
    __getattr__, __dir__ = late(globals(), _LATE)

__all__ = [
    "ELICIT_TIMEOUT",
    "FAILED",
    "SAMPLE_TIMEOUT",
    "TIMEOUTS",
    "UNRESOLVED",
    "Bound",
    "Catalog",
    "Completer",
    "ComponentMeta",
    "Context",
    "Declaration",
    "Kind",
    "Prompt",
    "PromptSpec",
    "Registration",
    "Resource",
    "ResourceSpec",
    "ResourceTemplate",
    "Signature",
    "Source",
    "Table",
    "TemplateSpec",
    "Tool",
    "ToolSpec",
    "Toolkit",
    "adapt_request",
    "as_registration",
    "check",
    "class_of",
    "complete_from",
    "error_result",
    "expand",
    "is_abstract",
    "is_context",
    "is_marked",
    "keys_of",
    "kind_of",
    "label_of",
    "mcp",
    "needed_by",
    "prepare",
    "prompt",
    "read_by_hand",
    "read_flag",
    "read_icons",
    "read_options",
    "read_requires",
    "read_seconds",
    "read_text",
    "resource",
    "resource_template",
    "to_completion",
    "to_contents",
    "to_listed",
    "to_prompt_result",
    "to_result",
    "tool",
]

publish(globals())
