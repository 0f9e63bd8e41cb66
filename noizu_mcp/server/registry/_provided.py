"""The part of the providers of a server that its registrations and features use."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...components import Context, TemplateSpec
from ...jsonrpc import Request

if TYPE_CHECKING:
    from ...components import BaseProvider


class Provided(Protocol):
    """The providers of a server, as its registrations see them.

    Attributes:
        have_tasks: True once a provider has listed a tool whose calls can go on as tasks.
        have_scopes: True once a provider has listed something that requires scopes.
    """

    have_tasks: bool
    have_scopes: bool

    def expire(self, kind: str) -> None:
        """Mark a list of all providers as out of date."""

    def raise_generation(self) -> None:
        """Let the lists of every caller be built again."""

    def offer(self, feature: str) -> bool:
        """Tell whether any provider offers a feature."""

    def depends_on_caller(self, feature: str) -> bool:
        """Tell whether a list may differ by caller."""

    async def prepare(self, context: Context, feature: str) -> None:
        """Ask for the lists of a caller that are out of date."""

    def feature_of(self, request: Request) -> str | None:
        """Return the feature whose lists a request needs; None if registrations can answer it."""

    def health(self) -> Sequence[tuple[str, tuple[str, ...], int, Mapping[str, int]]]:
        """Return the name, the faults, the failures and the listed items of each provider."""

    def mounted(self, context: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate over the servers that are mounted and served, each with its context."""

    async def can_watch(self, uri: str, context: Any) -> bool | None:
        """Tell whether a mounted server lets a caller watch its resource; None for others."""

    async def takes_alone(self, uri: str, context: Any) -> bool:
        """Tell whether a mounted server has a resource, and overrides `subscribe`."""

    async def subscribe(self, uri: str, context: Any) -> None:
        """Tell the provider of a resource, if it has one, that a client watches it."""

    async def unsubscribe(self, uri: str, context: Any) -> None:
        """Tell the providers that a client has unsubscribed from a resource."""

    def may_serve(self, template: TemplateSpec, uri: str, context: Any) -> bool:
        """Tell whether a template may serve a URI: not that of a provider for a URI of another."""

    def unknown(self, name: str) -> str | None:
        """Word the error for an unknown name; None if no provider has it."""

    def others_than(self, provider: "BaseProvider", key: str) -> tuple[str, ...]:
        """List the beginnings of names or URIs that belong to other providers."""

    def __iter__(self) -> "Iterator[BaseProvider]":
        """Iterate over the providers."""
