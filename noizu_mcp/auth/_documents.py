"""Protected Resource Metadata: where clients get tokens for this server (RFC 9728)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from ..jsonrpc import render
from ..types import as_scopes
from ._urls import check_url

#: Where the document is, before the path of the resource (RFC 9728 section 3.1).
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

_OURS: Final = frozenset(
    {"resource", "authorization_servers", "bearer_methods_supported", "scopes_supported"}
    | {"resource_name", "resource_documentation"}
)


def check_scopes(scopes: Iterable[str], what: str) -> tuple[str, ...]:
    """Check scopes that clients are told to ask for.

    Raises:
        ValueError: One is no name of a scope, or is `offline_access`: whether a client gets a
            refresh token is between it and its issuer (2026-07-28, basic/authorization).
    """
    found = as_scopes(scopes)
    if "offline_access" in found:
        raise ValueError(f"{what} must not hold offline_access: it is not a scope of this server")
    return found


@attrs.frozen(kw_only=True)
class ResourceMetadata:
    """What the document says, and where it is.

    Attributes:
        resource: The URL of this server; clients name it when they ask for a token.
        authorization_servers: Issuers whose tokens are good here.
        scopes_supported: Scopes that a client should ask for at first.
        resource_name: The name for people.
        resource_documentation: A page for developers.
        extra: More members, such as `resource_policy_uri`.
    """

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...] = ()
    resource_name: str | None = None
    resource_documentation: str | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        check_url(self.resource, "resource", query=False)
        for issuer in self.authorization_servers:
            check_url(issuer, "an authorization server", query=False)
        check_scopes(self.scopes_supported, "scopes_supported")
        if self.resource_documentation is not None:
            check_url(self.resource_documentation, "resource_documentation")
        if taken := _OURS & self.extra.keys():
            raise ValueError(f"extra must not hold {', '.join(sorted(taken))}: there are options")
        self.render()

    @property
    def url(self) -> str | None:
        """Where clients find the document; None without an authorization server to tell about."""
        if not self.authorization_servers:
            return None
        parts = check_url(self.resource, "resource", query=False)
        return f"{parts.scheme}://{parts.netloc}{well_known_path(parts.path)}"

    def render(self) -> bytes:
        """Write the document.

        Raises:
            ValueError: `extra` has what JSON cannot carry.
        """
        optional = {
            "scopes_supported": list(self.scopes_supported) or None,
            "resource_name": self.resource_name,
            "resource_documentation": self.resource_documentation,
        }
        document = {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "bearer_methods_supported": ["header"],
            **{name: value for name, value in optional.items() if value is not None},
            **self.extra,
        }
        try:
            return bytes(render(document))
        except TypeError as error:
            raise ValueError(f"extra: {error}") from None

    def documents(self, endpoint_path: str) -> dict[str, bytes]:
        """Give the document by the paths where clients look for it.

        Args:
            endpoint_path: The path of the MCP endpoint within the application.

        Returns:
            One body for all paths: that of the endpoint, that of the resource if a proxy makes it
            another one, and the root; nothing without an authorization server.
        """
        if not self.authorization_servers:
            return {}
        path = check_url(self.resource, "resource", query=False).path
        body = self.render()
        return {well_known_path(each): body for each in (endpoint_path, path, "")}


def well_known_path(path: str) -> str:
    """Give the path of the document for a resource: its own comes last (RFC 9728 section 3.1)."""
    return WELL_KNOWN + ("" if path == "/" else path)


def as_servers(servers: Sequence[str]) -> tuple[str, ...]:
    """Read the option `authorization_servers`.

    Raises:
        TypeError: It is one text.
    """
    if isinstance(servers, str):
        raise TypeError("authorization_servers is a list of URLs, not one text")
    return tuple(servers)
