"""Messages as clients write them, and the bytes of their requests."""

import json

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
#: The `_meta` of each request of 2026-07-28.
META = {VERSION: "2026-07-28", CAPABILITIES: {}}
BOTH = "application/json, text/event-stream"
#: The member of the params that the header `Mcp-Name` repeats, by method.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def message(method, params=None, id_=None):
    """Make a request, or a notification if there is no id."""
    body = {"jsonrpc": "2.0", "method": method}
    if id_ is not None:
        body["id"] = id_
    return body if params is None else {**body, "params": params}


def call(name, arguments=None, id_=1, **params):
    """Make a call of a tool."""
    return message("tools/call", {"name": name, "arguments": arguments or {}, **params}, id_)


def initialize(version="2025-11-25", capabilities=None, id_=0):
    """Make the first request of a handshake."""
    info = {"name": "test", "version": "1"}
    offered = {"capabilities": capabilities or {}, "clientInfo": info}
    return message("initialize", {"protocolVersion": version, **offered}, id_)


INITIALIZED = message("notifications/initialized")


def modern_request(body, headers=()):
    """Make the body and the headers of a request of 2026-07-28."""
    params = body.get("params", {})
    body = {**body, "params": {**params, "_meta": {**META, **params.get("_meta", {})}}}
    given = {"mcp-protocol-version": "2026-07-28", "mcp-method": body["method"]}
    if body["method"] in NAMED:
        given["mcp-name"] = params.get(NAMED[body["method"]], "")
    given.update(headers)
    return body, given


def http_request(body=None, headers=(), *, method="POST", target="/mcp", host="localhost"):
    """Encode a request of HTTP/1.1; `_` in the name of a header stands for `-`."""
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
    lines += [f"Accept: {BOTH}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in dict(headers).items()]
    return "\r\n".join([*lines, "", ""]).encode() + data
