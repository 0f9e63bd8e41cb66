"""An MCP server of another package, with the authorization server of that package, on a free port.

The first argument is the package, `mcp` or `fastmcp`. The URL of the endpoint is printed.
"""

import socket
import sys

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer


def greet() -> str:
    """Say hello."""
    return "hello"


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=["read"])
    # Implements the provider that `mcp` defines; each package serves it by endpoints of its own.
    provider = InMemoryOAuthProvider(
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
        )
        official = MCPServer("protected", auth=settings, auth_server_provider=provider)
        official.tool()(greet)
        app = official.streamable_http_app()
    print(f"{url}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
