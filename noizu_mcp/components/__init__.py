"""What users subclass, and what a server makes of it. May import: root, types, schema."""

from .._util import publish
from ._arguments import prepare as prepare
from ._client_requests import ELICIT_TIMEOUT as ELICIT_TIMEOUT
from ._client_requests import SAMPLE_TIMEOUT as SAMPLE_TIMEOUT
from ._client_requests import TIMEOUTS as TIMEOUTS
from ._client_requests import adapt_request as adapt_request
from ._client_requests import needed_by as needed_by
from ._client_requests import read_by_hand as read_by_hand
from ._completion import Completer as Completer
from ._completion import Source as Source
from ._completion import complete_from as complete_from
from ._completion import to_completion as to_completion
from ._contents import to_contents as to_contents
from ._contents import to_listed as to_listed
from ._contents import to_prompt_result as to_prompt_result
from ._context import Context as Context
from ._declare import ComponentMeta as ComponentMeta
from ._declare import Declaration as Declaration
from ._declare import is_abstract as is_abstract
from ._declare import kind_of as kind_of
from ._mcp import mcp as mcp
from ._offers import check_prompts as check_prompts
from ._offers import check_resources as check_resources
from ._offers import expand_prompts as expand_prompts
from ._offers import expand_resources as expand_resources
from ._offers import prompt as prompt
from ._offers import resource as resource
from ._offers import resource_template as resource_template
from ._prompt import Prompt as Prompt
from ._prompt_spec import PromptSpec as PromptSpec
from ._registration import Registration as Registration
from ._registration import check_registrations as check_registrations
from ._registration import expand as expand
from ._registration import tool as tool
from ._resource import Resource as Resource
from ._resource import ResourceTemplate as ResourceTemplate
from ._resource_spec import ResourceSpec as ResourceSpec
from ._resource_spec import TemplateSpec as TemplateSpec
from ._returns import FAILED as FAILED
from ._returns import error_result as error_result
from ._returns import to_result as to_result
from ._spec import ToolPlan as ToolPlan
from ._spec import ToolSpec as ToolSpec
from ._tool import Tool as Tool
from ._toolkit import Toolkit as Toolkit

__all__ = [
    "ELICIT_TIMEOUT",
    "FAILED",
    "SAMPLE_TIMEOUT",
    "TIMEOUTS",
    "Completer",
    "ComponentMeta",
    "Context",
    "Declaration",
    "Prompt",
    "PromptSpec",
    "Registration",
    "Resource",
    "ResourceSpec",
    "ResourceTemplate",
    "Source",
    "TemplateSpec",
    "Tool",
    "ToolPlan",
    "ToolSpec",
    "Toolkit",
    "adapt_request",
    "check_prompts",
    "check_registrations",
    "check_resources",
    "complete_from",
    "error_result",
    "expand",
    "expand_prompts",
    "expand_resources",
    "is_abstract",
    "kind_of",
    "mcp",
    "needed_by",
    "prepare",
    "prompt",
    "read_by_hand",
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
