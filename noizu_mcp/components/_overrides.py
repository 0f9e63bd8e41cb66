"""What may be written in the parentheses of `tool(…)`, `prompt(…)`, `resource(…)`, for checkers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ..types import Annotations, ContentAnnotations, Icon, RequireScopes


class Overrides(TypedDict, total=False):
    """What every registration may change, and all that one of a prompt may.

    Attributes:
        name: Another name; not for a kit of several tools.
        title: Another title; not for a kit of several tools.
        description: Another description; not for a kit of several tools.
        icons: Other pictures.
        meta: Another `_meta`.
        hidden: Left out of the list, still served. Wins over `visible`.
        visible: The opposite of `hidden`.
        timeout: Seconds, or None for no limit.
        requires: Other scopes that a caller must hold: `RequireScopes`, or names; None for none.
    """

    name: str
    title: str
    description: str
    icons: Iterable[Icon]
    meta: Mapping[str, Any] | None
    hidden: bool
    visible: bool
    timeout: float | None
    requires: RequireScopes | str | Sequence[str] | None


class ToolOverrides(Overrides, total=False):
    """What the registration of a tool or of a kit may change.

    Attributes:
        category: Another category; None for none. It is merged into `meta`.
        annotations: Other hints.
        max_concurrency: Calls at one time, or None for no limit.
    """

    category: str | None
    annotations: Annotations | Mapping[str, Any] | None
    max_concurrency: int | None


class TemplateOverrides(Overrides, total=False):
    """What the registration of a template may change.

    Attributes:
        mime_type: Another media type.
        annotations: For whom its resources are, and how much they matter.
        subscribable: Whether clients may ask to be told when one of them changes.
    """

    mime_type: str
    annotations: ContentAnnotations | Mapping[str, Any] | None
    subscribable: bool


class ResourceOverrides(TemplateOverrides, total=False):
    """What the registration of a resource may change.

    Attributes:
        uri: Another URI.
        size: Another number of bytes.
    """

    uri: str
    size: int
