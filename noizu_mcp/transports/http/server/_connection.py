"""The shared part of an application while it runs, and the requests that a session serves."""

from typing import Final

import attrs

from ...._errors import McpError
from ....jsonrpc import Decoded
from ....protocol import SUPPORTED_VERSIONS, Event
from ....server import Place, RequestContext, RunningServer, observe_message
from ._asgi import JSON, HttpRequest
from ._event_writer import Pace
from ._http_options import HttpOptions
from ._quotas import Accounts
from ._reply import Reply
from ._task_group import TaskGroup

#: The header that names the revision of a request, in lower case as ASGI hands it over.
VERSION: Final = "mcp-protocol-version"


@attrs.frozen(eq=False, repr=False)
class Host:
    """The shared part of all sessions and requests of one application while it runs.

    Attributes:
        running: The server while it is served.
        options: How it is served.
        tasks: Tasks that outlive sessions and requests, such as `unsubscribe` calls.
        pace: How streams treat their readers.
        accounts: The quotas of each client.
    """

    running: RunningServer
    options: HttpOptions
    tasks: TaskGroup
    pace: Pace
    accounts: Accounts

    def observe(self, http: HttpRequest, message: Decoded, event: Event | None) -> None:
        """Show a message that reaches no session to the listeners."""
        telemetry = self.running.server.telemetry
        if telemetry.listeners:
            # Any other text is not passed on: labels of metrics must not come from clients.
            version = http.headers.get(VERSION)
            place = Place("http", version if version in SUPPORTED_VERSIONS else None)
            observe_message(telemetry, place, message, event, http.size)

    def challenge(self, ctx: RequestContext, error: McpError) -> None:
        """Add the challenge that names missing scopes to an answer (RFC 6750 section 3)."""
        channel, auth = ctx.channel, self.options.auth
        if isinstance(channel, Reply) and auth is not None:
            headers = auth.challenge(error.data["requiredScopes"]).headers
            # The body stays the JSON-RPC error, so the content type of the challenge is left out.
            channel.challenge = [each for each in headers if each[0] != JSON[0]]
