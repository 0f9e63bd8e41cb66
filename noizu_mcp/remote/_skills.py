"""The skills of the server behind a `Remote` (SEP-2640).

Nothing is stored here: the extension has no notification of changed skills, and the client caches a
list as long as the server allows. The files are read as resources; their digests stay valid, since
the contents are passed on unchanged.
"""

from collections.abc import Mapping

from .._errors import McpError
from .._value import JSONObject
from ..client import Client
from ..components import Renaming
from ..jsonrpc import INVALID_PARAMS
from ..types import SKILLS
from ._upstream import Upstream


async def list_skills(upstream: Upstream, names: Renaming) -> list[JSONObject]:
    """List the entries of the skills, as clients see them.

    Raises:
        McpError: The server answered with an error.
        Unavailable: It is not connected, or its answer is malformed.
    """
    client = await upstream.first.ready()
    with upstream.first.naming():
        found = await client.list_skills()
    return [names.rename_skill(each.to_wire()) for each in found]


async def find_skill(upstream: Upstream, names: Renaming, uri: str) -> JSONObject | None:
    """Return the entry of a skill, as clients see it; None if the server has no such skill.

    Args:
        upstream: The server.
        names: Converts its names to the names that clients see.
        uri: The URI of the skill, as the server knows it.

    Raises:
        McpError: The server answered with another error.
        Unavailable: It is not connected, or its answer is malformed.
    """
    client = await _client_with(upstream)
    if client is None:
        return None
    try:
        with upstream.first.naming():
            entry = await client.get_skill(uri)
    except McpError as error:
        if error.code != INVALID_PARAMS:
            raise
        return None
    return names.rename_skill(entry.to_wire())


async def read_directory(
    upstream: Upstream, names: Renaming, uri: str, cursor: object
) -> JSONObject | None:
    """Return a page of a directory, as clients see it; None if the server has no such directory.

    Args:
        upstream: The server.
        names: Converts its names to the names that clients see.
        uri: The URI of the directory, as the server knows it.
        cursor: The cursor of the client; None for the first page.

    Raises:
        McpError: The server answered with another error.
        Unavailable: It is not connected.
    """
    client = await _client_with(upstream, "directoryRead")
    if client is None:
        return None
    params = {"uri": uri} if cursor is None else {"uri": uri, "cursor": cursor}
    try:
        with upstream.first.naming():
            result = await client.request("resources/directory/read", params)
    except McpError as error:
        if error.code != INVALID_PARAMS or cursor is not None:
            raise
        return None
    members: JSONObject = {key: result[key] for key in ("resources", "nextCursor") if key in result}
    return names.rename_directory(members)


async def _client_with(upstream: Upstream, setting: str | None = None) -> Client | None:
    """Return the client; None if the server lacks the extension, or a setting of it."""
    client = await upstream.first.ready()
    settings = (client.capabilities.extensions or {}).get(SKILLS)
    if not isinstance(settings, Mapping) or (setting and settings.get(setting) is not True):
        return None
    return client
