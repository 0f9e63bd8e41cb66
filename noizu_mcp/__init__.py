"""A trio-native framework for the Model Context Protocol: tools are classes, checked at import.

The layers, each importing only from those above it:

    _value, _errors, _limits, _source, _util, _foreign   exceptions, limits, small tools, advice
    types/        values that cross the wire
    jsonrpc/      bytes and messages
    protocol/     peers without I/O, one per era
    auth/         who is calling: verified tokens
    schema/       Python declarations and JSON Schema
    models/       tools and results for the APIs of models
    components/   what users subclass
    engine/       trio: a peer on a stream
    events/       what listeners hear
    server/       registry, features, dispatch
    telemetry/    spans, metrics, a watchdog
    transports/   stdio, memory, HTTP and its hosts
    client/       the other end
    aio/          the client for asyncio programs
    openapi/      HTTP APIs as tools
    remote/       other servers as parts of one
    testing/      the test kit
    check/        checks of servers in any language
    cli/          commands

Public are the names here, and those that `docs/reference/names.md` lists by their folder. The other
names of folders are for the layers below them, and may change with any release.

The names of the client's end, prompts, resources, and the reader of skills load when they are first
used: most servers need none of them.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._errors import AuthError as AuthError
from ._errors import ConnectionClosed as ConnectionClosed
from ._errors import DefinitionError as DefinitionError
from ._errors import McpError as McpError
from ._errors import McpException as McpException
from ._errors import NoSessionError as NoSessionError
from ._errors import Problem as Problem
from ._errors import ProtocolError as ProtocolError
from ._errors import RequestTimeout as RequestTimeout
from ._errors import ResourceNotFound as ResourceNotFound
from ._errors import SchemaError as SchemaError
from ._errors import SkillError as SkillError
from ._errors import TaskStarted as TaskStarted
from ._errors import ToolError as ToolError
from ._errors import TransportError as TransportError
from ._limits import Limits as Limits
from ._serving import Server as Server
from ._util import late as _late
from ._util import publish as _publish
from ._version import __version__ as __version__
from .components import Context as Context
from .components import Tool as Tool
from .components import Toolkit as Toolkit
from .components import mcp as mcp
from .components import tool as tool
from .components import violations_result as violations_result
from .schema import Schema as Schema
from .schema import argument as argument
from .schema import field as field
from .schema import fields as fields
from .server import Cache as Cache
from .transports import serve_stdio as serve_stdio
from .types import Accept as Accept
from .types import Annotations as Annotations
from .types import Cancel as Cancel
from .types import Content as Content
from .types import ContentAnnotations as ContentAnnotations
from .types import Decline as Decline
from .types import Icon as Icon
from .types import InputRequest as InputRequest
from .types import InputRequired as InputRequired
from .types import ResourceContents as ResourceContents
from .types import ToolResult as ToolResult
from .types import plain_text as plain_text
from .types import text_content as text_content

_LATE = {
    ".aio": "aio",
    ".client": (
        "Client ClientHandler Clients LiveList Progress SyncClient SyncClients "
        "TerminalHandler connect connect_all"
    ),
    ".types": "Completion PromptMessage PromptResult Root SamplingResult",
    ".transports": "Http Stdio",
    ".server": "Mount",
    ".components": (
        "Handle Prompt PromptProvider Provider Resource ResourceProvider ResourceTemplate "
        "ToolProvider prompt resource resource_template"
    ),
    ".openapi": "OpenAPI",
    ".remote": "Remote",
    ".transports.http": "serve_http",
    ".skills": "SkillFolder",
}

# Type checkers read the imports, the interpreter reads the table; a test compares the two.
if _TYPE_CHECKING:
    from . import aio as aio
    from .client import Client as Client
    from .client import ClientHandler as ClientHandler
    from .client import Clients as Clients
    from .client import LiveList as LiveList
    from .client import Progress as Progress
    from .client import SyncClient as SyncClient
    from .client import SyncClients as SyncClients
    from .client import TerminalHandler as TerminalHandler
    from .client import connect as connect
    from .client import connect_all as connect_all
    from .components import Handle as Handle
    from .components import Prompt as Prompt
    from .components import PromptProvider as PromptProvider
    from .components import Provider as Provider
    from .components import Resource as Resource
    from .components import ResourceProvider as ResourceProvider
    from .components import ResourceTemplate as ResourceTemplate
    from .components import ToolProvider as ToolProvider
    from .components import prompt as prompt
    from .components import resource as resource
    from .components import resource_template as resource_template
    from .openapi import OpenAPI as OpenAPI
    from .remote import Remote as Remote
    from .server import Mount as Mount
    from .skills import SkillFolder as SkillFolder
    from .transports import Http as Http
    from .transports import Stdio as Stdio
    from .transports.http import serve_http as serve_http
    from .types import Completion as Completion
    from .types import PromptMessage as PromptMessage
    from .types import PromptResult as PromptResult
    from .types import Root as Root
    from .types import SamplingResult as SamplingResult
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
