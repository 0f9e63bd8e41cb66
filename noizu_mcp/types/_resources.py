"""What crosses the wire about resources: their definitions and what reading one gives."""

from typing import Any

import attrs

from .._util import final
from ._common import ContentAnnotations, Icon
from ._content import ResourceContents
from ._results import Result
from ._wire import Wire, as_tuple


@final
@attrs.frozen(eq=False, repr=False)
class ResourceDefinition(Wire):
    """A resource as `resources/list` describes it (server/resources, Resource).

    Attributes:
        uri: What `resources/read` calls it.
        name: The name for programs.
        title: The name for people (2025-06-18 and later).
        description: What a model should know before it reads the resource.
        mime_type: What a reader will get.
        size: Bytes before any encoding.
        annotations: For whom it is, and how much it matters.
        icons: Pictures of it (2025-11-25 and later).
        meta: `_meta` of the resource (2025-06-18 and later).
    """

    uri: str
    name: str
    title: str | None = attrs.field(default=None, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)
    mime_type: str | None = attrs.field(default=None, kw_only=True)
    size: int | None = attrs.field(default=None, kw_only=True)
    annotations: ContentAnnotations | None = attrs.field(default=None, kw_only=True)
    icons: tuple[Icon, ...] = attrs.field(default=(), converter=as_tuple, kw_only=True)
    meta: dict[str, Any] | None = attrs.field(default=None, kw_only=True)


@final
@attrs.frozen(eq=False, repr=False)
class ResourceTemplateDefinition(Wire):
    """Many resources, as `resources/templates/list` describes them (server/resources).

    Attributes:
        uri_template: Their URIs (RFC 6570).
        name: The name for programs.
        title: The name for people (2025-06-18 and later).
        description: What a model should know before it reads one of them.
        mime_type: What a reader will get, if it is the same for all.
        annotations: For whom they are, and how much they matter.
        icons: Pictures of them (2025-11-25 and later).
        meta: `_meta` of the template (2025-06-18 and later).
    """

    uri_template: str
    name: str
    title: str | None = attrs.field(default=None, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)
    mime_type: str | None = attrs.field(default=None, kw_only=True)
    annotations: ContentAnnotations | None = attrs.field(default=None, kw_only=True)
    icons: tuple[Icon, ...] = attrs.field(default=(), converter=as_tuple, kw_only=True)
    meta: dict[str, Any] | None = attrs.field(default=None, kw_only=True)


@final
@attrs.frozen(eq=False, repr=False)
class ReadResult(Result):
    """What `resources/read` answers.

    Attributes:
        contents: The contents; several if the resource has parts.
        meta: `_meta` of the result.
        extra: Keys that this version of the package does not know, as they came; of a server of
            2026-07-28 also how long the answer may be kept.
    """

    contents: tuple[ResourceContents, ...] = attrs.field(converter=as_tuple)
    meta: dict[str, Any] | None = attrs.field(default=None, kw_only=True)
