"""The interface of a server's providers for its registrations and features."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...components import Context, TemplateSpec
from ...jsonrpc import Request

if TYPE_CHECKING:
    from ...components import BaseProvider


class Provided(Protocol):
    """The providers of a server, as its registrations use them.

    Attributes:
        have_tasks: True once a provider has listed a tool that supports tasks.
        have_scopes: True once a provider has listed a component that requires scopes.
    """

    have_tasks: bool
    have_scopes: bool

    def expire(self, kind: str) -> None:
        """Mark a list of all providers as out of date."""

    def raise_generation(self) -> None:
        """Mark the merged lists of every caller as out of date."""

    def offer(self, feature: str) -> bool:
        """Tell whether any provider offers a feature."""

    def depends_on_caller(self, feature: str) -> bool:
        """Tell whether a list may differ by caller."""

    async def prepare(self, context: Context, feature: str) -> None:
        """Fetch the lists of a caller that are out of date."""

    def feature_of(self, request: Request) -> str | None:
        """Return the feature whose lists a request needs; None if registrations can answer it."""

    def health(self) -> Sequence[tuple[str, tuple[str, ...], int, Mapping[str, int]]]:
        """Return the name, the faults, the failures and the listed items of each provider."""

    def mounted(self, context: object) -> Iterator[tuple[Any, Any]]:
        """Iterate over the mounted servers that are served, each with its context."""

    async def can_watch(self, uri: str, context: object) -> bool | None:
        """Tell whether a mounted server lets a caller watch its resource; None for others."""

    async def takes_alone(self, uri: str, context: object) -> bool:
        """Tell whether the resource is of a mounted server that overrides `subscribe`."""

    async def subscribe(self, uri: str, context: object) -> None:
        """Forward a subscription to the provider of the resource, if it has a provider."""

    async def unsubscribe(self, uri: str, context: object) -> None:
        """Forward the end of a subscription to the providers."""

    def may_serve(self, template: TemplateSpec, uri: str, context: object) -> bool:
        """Tell whether a template may serve a URI, which may belong to another provider."""

    def unknown(self, name: str) -> str | None:
        """Return the error text for an unknown name; None if no provider has one."""

    def others_than(self, provider: "BaseProvider", key: str) -> tuple[str, ...]:
        """Return the prefixes of names or URIs of other providers."""

    def __iter__(self) -> "Iterator[BaseProvider]":
        """Iterate over the providers."""
