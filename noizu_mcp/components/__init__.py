"""Components: the classes that users subclass, and the machinery that reads and serves them.

At the root of the folder stands all that users subclass or call; the rooms hold the machinery, and
each imports only from those above it:

    _context, _client_requests   the request, as handlers see it
    handlers/       methods: signatures, arguments, results
    declare/        class statements: options, marks, schemas
    registration/   the components of a server
    _tool, _toolkit, _resource, _prompt

Resources, templates, prompts and completion load when they are first used: most servers have tools
only.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._client_requests import ELICIT_TIMEOUT as ELICIT_TIMEOUT
from ._client_requests import SAMPLE_TIMEOUT as SAMPLE_TIMEOUT
from ._client_requests import TIMEOUTS as TIMEOUTS
from ._client_requests import read_by_hand as read_by_hand
from ._context import Context as Context
from ._notify import Notify as Notify
from ._tool import Tool as Tool
from ._toolkit import Toolkit as Toolkit
from ._toolkit import mcp as mcp
from ._toolkit import tool as tool
from .declare._class_schemas import open_object as open_object
from .declare._handles import describe_handles as describe_handles
from .declare._marks import is_marked as is_marked
from .declare._options import Table as Table
from .declare._options import add_prefix as add_prefix
from .declare._options import read_flag as read_flag
from .declare._options import read_icons as read_icons
from .declare._options import read_loop as read_loop
from .declare._options import read_options as read_options
from .declare._options import read_prefix as read_prefix
from .declare._options import read_requires as read_requires
from .declare._options import read_seconds as read_seconds
from .declare._options import read_text as read_text
from .declare._statement import ComponentKind as ComponentKind
from .declare._statement import ComponentMeta as ComponentMeta
from .declare._statement import Declaration as Declaration
from .declare._statement import class_of as class_of
from .declare._statement import is_abstract as is_abstract
from .declare._statement import is_method as is_method
from .declare._statement import kind_of as kind_of
from .declare._statement import unfinished as unfinished
from .handlers._bound import Bound as Bound
from .handlers._bound import PromptSpec as PromptSpec
from .handlers._bound import ResourceSpec as ResourceSpec
from .handlers._bound import TemplateSpec as TemplateSpec
from .handlers._bound import ToolSpec as ToolSpec
from .handlers._signature import UNRESOLVED as UNRESOLVED
from .handlers._signature import Signature as Signature
from .handlers._signature import is_context as is_context
from .handlers._tool_calls import error_result as error_result
from .handlers._tool_calls import prepare as prepare
from .handlers._tool_calls import to_result as to_result
from .handlers._tool_calls import violations_result as violations_result
from .registration._registration import Registration as Registration
from .registration._registration import as_registration as as_registration
from .registration._registration import check as check
from .registration._registration import expand as expand
from .registration._registration import keys_of as keys_of
from .registration._registration import label_of as label_of

# PEP 562: `import noizu_mcp` loads none of them, nor the URI templates and text values that they
# use.
_LATE = {
    ".handlers._completion": "Completer Source complete_from to_completion",
    ".handlers._contents": "to_contents to_listed to_prompt_result",
    "._handle": "COLLECT Handle HandleClass form_of",
    "._prompt": "Prompt prompt",
    "._resource": "Resource ResourceTemplate resource resource_template",
    "._provider": (
        "BaseProvider Changes Introduction PromptProvider Provider ResourceProvider "
        "ServedProvider SkillProvider ToolProvider check_providers"
    ),
    "._renaming": "Renaming",
    ".registration._definitions": "bind_definition",
    "._capability": "Capability",
}

if _TYPE_CHECKING:
    from ._capability import Capability as Capability
    from ._handle import COLLECT as COLLECT
    from ._handle import Handle as Handle
    from ._handle import HandleClass as HandleClass
    from ._handle import form_of as form_of
    from ._prompt import Prompt as Prompt
    from ._prompt import prompt as prompt
    from ._provider import BaseProvider as BaseProvider
    from ._provider import Changes as Changes
    from ._provider import Introduction as Introduction
    from ._provider import PromptProvider as PromptProvider
    from ._provider import Provider as Provider
    from ._provider import ResourceProvider as ResourceProvider
    from ._provider import ServedProvider as ServedProvider
    from ._provider import SkillProvider as SkillProvider
    from ._provider import ToolProvider as ToolProvider
    from ._provider import check_providers as check_providers
    from ._renaming import Renaming as Renaming
    from ._resource import Resource as Resource
    from ._resource import ResourceTemplate as ResourceTemplate
    from ._resource import resource as resource
    from ._resource import resource_template as resource_template
    from .handlers._completion import Completer as Completer
    from .handlers._completion import Source as Source
    from .handlers._completion import complete_from as complete_from
    from .handlers._completion import to_completion as to_completion
    from .handlers._contents import to_contents as to_contents
    from .handlers._contents import to_listed as to_listed
    from .handlers._contents import to_prompt_result as to_prompt_result
    from .registration._definitions import bind_definition as bind_definition
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
