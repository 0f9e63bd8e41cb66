"""Values and names that several parts of the protocol share, and the base of results."""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self, get_args

import attrs

from ._wire import Wire, as_tuple

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

#: The syslog severities (RFC 5424), least severe first; the index of a level is its rank.
LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)

# Keys of `_meta` (2026-07-28, basic/index: every request carries the first two).
META_PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
META_PROGRESS_TOKEN: Final = "progressToken"

# Ids of the extensions, as both ends declare them.
TASKS: Final = "io.modelcontextprotocol/tasks"
SKILLS: Final = "io.modelcontextprotocol/skills"

#: The media type of a directory, which `resources/directory/read` reads.
DIRECTORY: Final = "inode/directory"

# The second label of a prefix must not be `mcp` (basic/index, `_meta`).
#: Lists bad arguments for programs, in `_meta` of a result; its text lists them for the model.
META_VIOLATIONS: Final = "com.noizu.mcp/violations"
#: Marks the result of a tool that broke its output contract; an error that it chose has none.
META_BROKEN_OUTPUT: Final = "com.noizu.mcp/broken-output"


@attrs.frozen(eq=False, repr=False)
class Icon(Wire):
    """A picture that a client may show (2025-11-25 and later, basic/index, Icons).

    Attributes:
        src: An `https:` or `data:` URI.
        mime_type: The media type; it overrides the type declared by the source.
        sizes: Sizes such as `48x48`, or `any` for a scalable picture.
        theme: The background that the picture is for: `light` or `dark`.
    """

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] = attrs.field(default=(), converter=as_tuple, kw_only=True)
    theme: str | None = attrs.field(default=None, kw_only=True)


@attrs.frozen(eq=False, repr=False)
class Implementation(Wire):
    """Name and version of a client or a server (basic/lifecycle, Implementation).

    Attributes:
        name: The name for programs.
        version: The version of the program, in any form.
        title: The name for people.
        description: A description for people (2025-11-25 and later).
        website_url: The URL of its website (2025-11-25 and later).
        icons: Pictures of it (2025-11-25 and later).
    """

    name: str
    version: str
    title: str | None = attrs.field(default=None, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)
    website_url: str | None = attrs.field(default=None, kw_only=True)
    icons: tuple[Icon, ...] = attrs.field(default=(), converter=as_tuple, kw_only=True)


@attrs.frozen(eq=False, repr=False, kw_only=True)
class Annotations(Wire):
    """Hints about the effects of a tool (`ToolAnnotations`); a client must not trust them.

    Attributes:
        title: The name for people; `title` of the tool takes precedence.
        read_only_hint: The tool changes nothing; false if absent.
        destructive_hint: The tool may destroy something; true if absent.
        idempotent_hint: Repeated calls have no further effect; false if absent.
        open_world_hint: The tool reaches beyond a closed set of things; true if absent.
    """

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


@attrs.frozen(eq=False, repr=False, kw_only=True)
class ContentAnnotations(Wire):
    """Audience and importance of a content block or a resource (`Annotations`).

    Attributes:
        audience: The intended readers: `user`, `assistant` or both.
        priority: From 0, optional, to 1, required.
        last_modified: An ISO 8601 time (2025-06-18 and later).
    """

    audience: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
    priority: float | None = None
    last_modified: str | None = None


def without_envelope(result: object) -> Any:
    """Remove the envelope that 2026-07-28 adds to every result: `resultType` and the server info.

    The session reads both; they are not part of the value.

    Args:
        result: The result that a peer sent.

    Returns:
        A copy without them; anything but an object is returned unchanged.
    """
    if result.__class__ is not dict and not isinstance(result, Mapping):
        return result
    bare = dict(result)
    bare.pop("resultType", None)
    meta = bare.get("_meta")
    if meta is not None and isinstance(meta, Mapping) and META_SERVER_INFO in meta:
        bare["_meta"] = {k: v for k, v in meta.items() if k != META_SERVER_INFO} or None
    return bare


class Result(Wire):
    """The base of results; `from_wire` removes the envelope of 2026-07-28."""

    __slots__ = ()

    @classmethod
    def from_wire(cls, value: object, where: str | None = None) -> Self:
        """Read a result.

        Args:
            value: The decoded JSON value.
            where: Its name in errors; `result` by default.

        Returns:
            The value, without the envelope of 2026-07-28.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        return super().from_wire(without_envelope(value), where or "result")
