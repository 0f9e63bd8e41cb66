"""Values of the protocol: frozen, checked when made, unknown keys kept. May import: root."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._util import late as _late
from .._util import publish as _publish
from ._common import DIRECTORY as DIRECTORY
from ._common import LOG_LEVELS as LOG_LEVELS
from ._common import META_BROKEN_OUTPUT as META_BROKEN_OUTPUT
from ._common import META_CLIENT_CAPABILITIES as META_CLIENT_CAPABILITIES
from ._common import META_CLIENT_INFO as META_CLIENT_INFO
from ._common import META_LOG_LEVEL as META_LOG_LEVEL
from ._common import META_PROGRESS_TOKEN as META_PROGRESS_TOKEN
from ._common import META_PROTOCOL_VERSION as META_PROTOCOL_VERSION
from ._common import META_SERVER_INFO as META_SERVER_INFO
from ._common import META_SUBSCRIPTION_ID as META_SUBSCRIPTION_ID
from ._common import META_VIOLATIONS as META_VIOLATIONS
from ._common import SKILLS as SKILLS
from ._common import TASKS as TASKS
from ._common import Annotations as Annotations
from ._common import ContentAnnotations as ContentAnnotations
from ._common import Icon as Icon
from ._common import Implementation as Implementation
from ._common import LogLevel as LogLevel
from ._content import Content as Content
from ._content import ResourceContents as ResourceContents
from ._content import as_blocks as as_blocks
from ._content import plain_text as plain_text
from ._content import text_content as text_content
from ._interaction import ELICIT as ELICIT
from ._interaction import ROOTS as ROOTS
from ._interaction import SAMPLE as SAMPLE
from ._interaction import Accept as Accept
from ._interaction import Cancel as Cancel
from ._interaction import Decline as Decline
from ._interaction import InputRequest as InputRequest
from ._interaction import InputRequired as InputRequired
from ._page import Page as Page
from ._tools import ToolDefinition as ToolDefinition
from ._tools import ToolResult as ToolResult
from ._wire import Wire as Wire
from ._wire import as_tuple as as_tuple
from ._wire import camel_case as camel_case

# Most servers have tools only: what belongs to prompts, resources, tasks, callers and clients loads
# when it is first used.
_LATE = {
    "._capabilities": "ClientCapabilities ServerCapabilities",
    "._client_results": "Root SamplingResult",
    "._extensions": "SkillDefinition Task TaskStatus",
    "._principal": "Principal RequireScopes as_scopes",
    "._prompts": (
        "Completion MAX_COMPLETIONS PromptArgument PromptDefinition PromptMessage "
        "PromptResult Reference Role as_messages"
    ),
    "._resources": "ReadResult ResourceDefinition ResourceTemplateDefinition",
}

if _TYPE_CHECKING:
    from ._capabilities import ClientCapabilities as ClientCapabilities
    from ._capabilities import ServerCapabilities as ServerCapabilities
    from ._client_results import Root as Root
    from ._client_results import SamplingResult as SamplingResult
    from ._extensions import SkillDefinition as SkillDefinition
    from ._extensions import Task as Task
    from ._extensions import TaskStatus as TaskStatus
    from ._principal import Principal as Principal
    from ._principal import RequireScopes as RequireScopes
    from ._principal import as_scopes as as_scopes
    from ._prompts import MAX_COMPLETIONS as MAX_COMPLETIONS
    from ._prompts import Completion as Completion
    from ._prompts import PromptArgument as PromptArgument
    from ._prompts import PromptDefinition as PromptDefinition
    from ._prompts import PromptMessage as PromptMessage
    from ._prompts import PromptResult as PromptResult
    from ._prompts import Reference as Reference
    from ._prompts import Role as Role
    from ._prompts import as_messages as as_messages
    from ._resources import ReadResult as ReadResult
    from ._resources import ResourceDefinition as ResourceDefinition
    from ._resources import ResourceTemplateDefinition as ResourceTemplateDefinition
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
