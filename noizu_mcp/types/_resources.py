"""Values of resources: definitions, and the result of reading one."""

import attrs

from .._util import final
from .._value import JSONObject
from ._common import ContentAnnotations, Icon, Result
from ._content import ResourceContents
from ._wire import Wire, as_tuple


@final
@attrs.frozen(eq=False, repr=False)
class ResourceDefinition(Wire):
    """A resource as `resources/list` describes it (server/resources, Resource).

    Attributes:
        uri: The URI for `resources/read`.
        name: The name for programs.
        title: The name for people (2025-06-18 and later).
        description: A description that helps the model to decide whether to read it.
        mime_type: The media type of its contents.
        size: The size in bytes, before any encoding.
        annotations: Audience and importance.
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
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)


@final
@attrs.frozen(eq=False, repr=False)
class ResourceTemplateDefinition(Wire):
    """A template of URIs, as `resources/templates/list` describes it (server/resources).

    Attributes:
        uri_template: The template (RFC 6570).
        name: The name for programs.
        title: The name for people (2025-06-18 and later).
        description: A description that helps the model to decide whether to read its resources.
        mime_type: The media type of its resources, if they share one.
        annotations: Audience and importance.
        icons: Pictures of it (2025-11-25 and later).
        meta: `_meta` of the template (2025-06-18 and later).
    """

    uri_template: str
    name: str
    title: str | None = attrs.field(default=None, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)
    mime_type: str | None = attrs.field(default=None, kw_only=True)
    annotations: ContentAnnotations | None = attrs.field(default=None, kw_only=True)
    icons: tuple[Icon, ...] = attrs.field(default=(), converter=as_tuple, kw_only=True)
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)


@final
@attrs.frozen(eq=False, repr=False)
class ReadResult(Result):
    """The result of `resources/read` (server/resources, ReadResourceResult).

    Attributes:
        contents: The contents; several if the resource has parts.
        meta: `_meta` of the result.
        extra: Keys that this version of the package does not know, unchanged; with 2026-07-28 also
            the caching hints, `ttlMs` and `cacheScope`.
    """

    contents: tuple[ResourceContents, ...] = attrs.field(converter=as_tuple)
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)
