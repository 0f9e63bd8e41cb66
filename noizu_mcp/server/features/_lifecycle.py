"""The lifecycle methods of both eras, `ping`, and `logging/setLevel`.

2026-07-28 has no `logging/setLevel`: each request names its level.
"""

from collections.abc import Callable

from ..._errors import McpError
from ..._value import JSONMapping, JSONObject
from ...engine import Job
from ...jsonrpc import INVALID_PARAMS
from ...protocol import SUPPORTED_VERSIONS, adapt_implementation
from ...types import LOG_LEVELS, TASKS
from .._server_request import ServerRequest
from ._work import in_time

#: Answers with instructions and extensions.
_Answer = Callable[[ServerRequest, str | None, JSONMapping], None]


def initialize(ctx: ServerRequest) -> Job | None:
    """Answer `initialize` (2025-11-25 `basic/lifecycle`). The peer has chosen the revision."""
    return _introduced(ctx, _answer_initialize)


def discover(ctx: ServerRequest) -> Job | None:
    """Answer `server/discover` (2026-07-28 `server/discover`)."""
    return _introduced(ctx, _answer_discover)


def _introduced(ctx: ServerRequest, answer: _Answer) -> Job | None:
    """Answer with the instructions and extensions of the server and its providers."""
    server = ctx.running.server
    if server.registry.providers is None:
        answer(ctx, server.options.instructions, server.registry.extensions())
        return None

    async def work() -> None:
        from ..providers._introductions import introduce

        instructions, extensions = await introduce(server, ctx.context)
        if TASKS in extensions:
            server.providers.have_tasks = True
        answer(ctx, instructions, extensions)

    return in_time(ctx, work)


def _answer_initialize(ctx: ServerRequest, instructions: str | None, _: JSONMapping) -> None:
    server = ctx.running.server
    revision = ctx.envelope.revision
    # Before the capabilities are read: a list change after this line is sent once the client is
    # ready. In the other order a change between the two would be lost.
    ctx.handshake_session.feed.await_ready()
    result: JSONObject = {
        "protocolVersion": revision.name,
        "capabilities": server.registry.capabilities(),
        "serverInfo": adapt_implementation(server.info, revision),
    }
    if instructions is not None:
        result["instructions"] = instructions
    ctx.complete(result)


def _answer_discover(ctx: ServerRequest, instructions: str | None, extensions: JSONMapping) -> None:
    server = ctx.running.server
    capabilities = server.registry.capabilities()
    result: JSONObject = {
        "supportedVersions": list(SUPPORTED_VERSIONS),
        # Only here: `capabilities.extensions` exists on 2026-07-28, and `initialize` answers older
        # revisions.
        "capabilities": {**capabilities, "extensions": extensions} if extensions else capabilities,
        **server.options.cache_of("discover").to_wire(),
    }
    if instructions is not None:
        result["instructions"] = instructions
    ctx.complete(result)


def ping(ctx: ServerRequest) -> None:
    """Answer `ping`, in any phase of a handshake."""
    # A client may ping before `initialized` and during `init` (2025-11-25 `basic/lifecycle`).
    ctx.complete({})


def set_level(ctx: ServerRequest) -> Job | None:
    """Set the minimum level that the client wants (2025-11-25 `server/utilities/logging`).

    Raises:
        McpError: The level is unknown (-32602).
    """
    level = (ctx.request.params or {}).get("level")
    if level not in LOG_LEVELS:
        raise McpError(INVALID_PARAMS, f"Invalid log level; use one of {', '.join(LOG_LEVELS)}")
    store = ctx.handshake_session.set_level(level)
    if store is None:
        ctx.complete({})
        return None

    async def work() -> None:
        await store()
        ctx.complete({})

    return in_time(ctx, work)
