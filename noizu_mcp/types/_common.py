"""Values and names that several parts of the protocol share."""

from typing import Final, Literal

import attrs

from ._wire import Wire, as_tuple

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

#: The syslog severities (RFC 5424), least severe first; the index of a level is its rank.
LOG_LEVELS: Final[tuple[LogLevel, ...]] = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip

# Keys of `_meta` (2026-07-28, basic/index: every request carries the first two).
META_PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
META_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
META_PROGRESS_TOKEN: Final = "progressToken"

#: Where a result for bad arguments lists them for programs; the text says the same to the model.
META_VIOLATIONS: Final = "noizu.mcp/violations"


@attrs.frozen(eq=False, repr=False)
class Icon(Wire):
    """A picture that a client may show (2025-11-25 and later, basic/index, Icons).

    Attributes:
        src: An `https:` or `data:` URI.
        mime_type: Overrides the type that the source declares.
        sizes: Like `48x48`, or `any` for a scalable picture.
        theme: `light` or `dark`: the background it is made for.
    """

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] = attrs.field(default=(), converter=as_tuple, kw_only=True)
    theme: str | None = attrs.field(default=None, kw_only=True)


@attrs.frozen(eq=False, repr=False)
class Implementation(Wire):
    """Who a client or a server is.

    Attributes:
        name: The name for programs.
        version: The version of the program, any form.
        title: The name for people.
        description: What it does (2025-11-25 and later).
        website_url: Where to read about it (2025-11-25 and later).
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
    """Hints about what a tool does (`ToolAnnotations`); a client may not trust them.

    Attributes:
        title: The name for people; `title` of the tool goes first.
        read_only_hint: It changes nothing; false when absent.
        destructive_hint: It may destroy something; true when absent.
        idempotent_hint: Calling it twice does no more than once; false when absent.
        open_world_hint: It reaches beyond a closed set of things; true when absent.
    """

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


@attrs.frozen(eq=False, repr=False, kw_only=True)
class ContentAnnotations(Wire):
    """For whom a content block or a resource is, and how much it matters.

    Attributes:
        audience: `user`, `assistant` or both.
        priority: From 0, optional, to 1, required.
        last_modified: An ISO 8601 time (2025-06-18 and later).
    """

    audience: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
    priority: float | None = None
    last_modified: str | None = None
