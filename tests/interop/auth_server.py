"""An MCP server of another package, with that package's authorization server, on a free port.

The first argument is the package, `mcp` or `fastmcp`. The URL of the endpoint is printed. With the
public key of an identity provider in IDP_KEY, `mcp` accepts its assertions about users.
"""

import os
import socket
import sys

import jwt
import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.provider import AccessToken, IdentityAssertionParams
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

IDP_KEY = os.environ.get("IDP_KEY")
BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class Provider(InMemoryOAuthProvider):
    """Accepts ID-JAGs, too."""

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        assert jwt.get_unverified_header(params.assertion)["typ"] == "oauth-id-jag+jwt"
        audience = str(self.base_url).rstrip("/")
        claims = jwt.decode(params.assertion, IDP_KEY, ["ES256"], audience=audience)
        assert claims["client_id"] == client.client_id
        token = AccessToken(
            token=f"for {claims['sub']}".replace(" ", "-"),
            client_id=client.client_id,
            scopes=params.scopes or ["read"],
            subject=claims["sub"],
            resource=claims["resource"],
        )
        self.access_tokens[token.token] = token
        return OAuthToken(access_token=token.token, expires_in=600, scope=" ".join(token.scopes))


def greet() -> str:
    """Say hello."""
    return "hello"


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=["read"])
    # Implements the provider interface of `mcp`; each package serves it by its own endpoints.
    provider = Provider(
        base_url=url,
        required_scopes=["read"],
        client_registration_options=registration,
    )
    if sys.argv[1] == "fastmcp":
        fast = FastMCP("protected", auth=provider)
        fast.tool(greet)
        app = fast.http_app()
    else:
        settings = AuthSettings(
            issuer_url=url,
            resource_server_url=f"{url}/mcp",
            required_scopes=["read"],
            client_registration_options=registration,
            validate_token_resource=False,
            identity_assertion_enabled=IDP_KEY is not None,
        )
        provider.clients["assistant"] = OAuthClientInformationFull(
            client_id="assistant",
            client_secret="a secret",
            redirect_uris=["http://localhost/"],
            token_endpoint_auth_method="client_secret_basic",
            grant_types=[BEARER_GRANT],
            scope="read",
        )
        official = MCPServer("protected", auth=settings, auth_server_provider=provider)
        official.tool()(greet)
        app = official.streamable_http_app()
    print(f"{url}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
