"""The rules that `noizu-mcp doctor` checks: the severity of each, and how to fix it."""

from typing import Final

from .._rules import Rule

_STDIO: Final = {
    "stdout": Rule(
        "error",
        "print to stderr, or log there: each line on stdout must be one message",
        "basic/transports, stdio",
    ),
    "bad-line": Rule(
        "error",
        "answer a line that is no JSON with -32700, or skip it, and read on",
        "JSON-RPC 2.0 section 5.1",
    ),
    "end-of-input": Rule(
        "warning",
        "exit when stdin ends: hosts wait some seconds, and then kill the process",
        "basic/lifecycle, Shutdown",
    ),
}
_HTTP: Final = {
    "origin": Rule(
        "error",
        "answer 403 to an Origin that you do not know: any web page that its user opens can call "
        "the server (DNS rebinding)",
        "basic/transports, Security Warning",
    ),
    "host": Rule(
        "warning",
        "refuse a Host that is not the server's name: it is the second line of defence against DNS "
        "rebinding",
        "basic/transports, Security Warning",
    ),
    "cors": Rule(
        "warning",
        "name the sites in Access-Control-Allow-Origin that may read answers, not every one",
        "Fetch standard, CORS protocol",
    ),
    "cors-headers": Rule(
        "warning",
        "add Mcp-Session-Id to Access-Control-Expose-Headers: pages cannot go on without it",
        "Fetch standard, CORS protocol",
    ),
    "tls": Rule(
        "error",
        "use https: anybody on the way can read and change the messages, and tokens",
        "basic/authorization, Communication Security",
    ),
    "certificate": Rule(
        "warning", "renew the TLS certificate before clients refuse it", "RFC 5280 section 4.1.2.5"
    ),
    "redirect": Rule(
        "warning",
        "give clients the final URL: many do not follow redirects, or send GET where it leads",
        "RFC 9110 section 15.4",
    ),
    "content-type": Rule(
        "error",
        "answer a request with application/json or text/event-stream",
        "basic/transports, Sending Messages to the Server",
    ),
    "notification-status": Rule(
        "error",
        "answer an accepted notification with 202 and no body",
        "basic/transports, Sending Messages to the Server",
    ),
    "get": Rule(
        "error",
        "answer GET with an event stream, or with 405 without one",
        "basic/transports, Listening for Messages from the Server",
    ),
    "version-header": Rule(
        "error",
        "answer 400 to an MCP-Protocol-Version that the server does not speak",
        "basic/transports, Protocol Version Header",
    ),
    "session-id": Rule(
        "error",
        "use visible ASCII only in Mcp-Session-Id",
        "basic/transports, Session Management",
    ),
    "session-secret": Rule(
        "warning",
        "draw Mcp-Session-Id at random with 128 bits or more: who guesses it takes the session",
        "security_best_practices, Session Hijacking",
    ),
    "session-unknown": Rule(
        "error",
        "answer 404 to an Mcp-Session-Id that the server does not know, so that clients begin anew",
        "basic/transports, Session Management",
    ),
    "session-missing": Rule(
        "warning",
        "answer 400 to a request without Mcp-Session-Id, if sessions are used",
        "basic/transports, Session Management",
    ),
    "session-end": Rule(
        "error",
        "answer 404 in a session that DELETE has ended, or answer 405 to DELETE",
        "basic/transports, Session Management",
    ),
    "headers": Rule(
        "error",
        "refuse a request whose Mcp-Method differs from its body with 400 and -32020: a proxy that "
        "routes by headers could be passed",
        "basic/transports/streamable-http, Standard Headers",
    ),
    "status": Rule(
        "error",
        "use the HTTP status that belongs to the error: 404 for -32601, 400 for -32020 to -32022",
        "basic/transports/streamable-http",
    ),
}
_AUTHORIZATION: Final = {
    "challenge": Rule(
        "error",
        "send WWW-Authenticate: Bearer with 401, so that clients know how to get a token",
        "RFC 9110 section 11.6.1",
    ),
    "resource-metadata": Rule(
        "error",
        "serve the metadata of the resource, and name its URL in the challenge, as "
        "resource_metadata",
        "RFC 9728 sections 3 and 5.1",
    ),
    "resource": Rule(
        "error",
        "make `resource` of the metadata the URL of the server: clients refuse another one",
        "RFC 9728 section 3.3",
    ),
    "authorization-server": Rule(
        "error",
        "serve the metadata of the authorization server, with `issuer` equal to its URL",
        "RFC 8414 section 3",
    ),
    "pkce": Rule(
        "error",
        "announce S256 in code_challenge_methods_supported: clients stop without it",
        "basic/authorization, Authorization Code Protection",
    ),
    "registration": Rule(
        "warning",
        "support client ID metadata documents, or dynamic registration: without either one, each "
        "client must be registered by hand",
        "basic/authorization, Client Registration Approaches",
    ),
    "token": Rule(
        "note",
        "log in with `noizu-mcp login URL`, or give a token with --header 'Authorization: Bearer "
        "TOKEN', to check the rest",
        "basic/authorization",
    ),
}
_CONNECTION: Final = {
    "start": Rule(
        "error", "mend the command, or the URL; nothing else can be checked before", "any transport"
    ),
    "silence": Rule(
        "error", "answer every request, if only with an error: clients wait", "JSON-RPC 2.0"
    ),
    "probe": Rule(
        "warning",
        "answer an unknown method before initialize with an error: newer clients begin with "
        "server/discover, and wait in vain",
        "basic/versioning",
    ),
    "revision": Rule(
        "note", "update the library of the server to serve 2026-07-28, too", "basic/versioning"
    ),
    "message": Rule(
        "error", "send messages as JSON-RPC 2.0 has them", "basic, Messages; JSON-RPC 2.0"
    ),
    "uninvited": Rule(
        "error",
        "ask only for what the client has declared in its capabilities",
        "basic/lifecycle, Operation",
    ),
    "initialize": Rule(
        "error",
        "answer initialize with protocolVersion, capabilities and serverInfo",
        "basic/lifecycle, Initialization",
    ),
    "discover": Rule(
        "error",
        "answer server/discover with supportedVersions, capabilities and what each result needs",
        "server/discover",
    ),
    "version": Rule(
        "error",
        "refuse an unknown version with -32022, and list the known ones in data.supported",
        "basic/versioning",
    ),
    "envelope": Rule(
        "error",
        "refuse a request without the version or the capabilities in _meta with -32602",
        "basic, General fields",
    ),
    "ping": Rule("error", "answer ping with an empty result", "basic/utilities/ping"),
    "unknown-method": Rule(
        "error", "answer a method that does not exist with -32601", "JSON-RPC 2.0 section 5.1"
    ),
    "capabilities": Rule(
        "error",
        "serve what the capabilities declare, and declare what is served",
        "basic/lifecycle, Capability Negotiation",
    ),
}
_LISTS: Final = {
    "list": Rule(
        "error", "write the list in the shape of the specification", "schema of the revision"
    ),
    "result-fields": Rule(
        "error",
        "add resultType, ttlMs and cacheScope to the result",
        "basic, Responses; server/utilities/caching",
    ),
    "pages": Rule(
        "error",
        "end the list with a page without nextCursor, and give each cursor once",
        "server/utilities/pagination",
    ),
    "cursor": Rule(
        "note",
        "answer a cursor that the server did not give with -32602",
        "server/utilities/pagination, Error Handling",
    ),
    "order": Rule(
        "warning",
        "list in the same order each time: caches of clients and models depend on it",
        "server/tools, Listing Tools",
    ),
    "duplicates": Rule("error", "give each component a name of its own", "server/tools"),
    "tool-name": Rule(
        "warning",
        "use 1 to 128 of the characters A-Z, a-z, 0-9, _, - and . in names of tools",
        "server/tools, Tool Names",
    ),
    "tool-schema": Rule(
        "error",
        "make the schema valid JSON Schema 2020-12, or declare its dialect in $schema; the root of "
        "an input is an object",
        "basic, JSON Schema Usage",
    ),
    "description": Rule(
        "note", "describe the tool: a model chooses by nothing else", "server/tools, Data Types"
    ),
    "uri": Rule(
        "error", "make it a URI (RFC 3986), or a URI template (RFC 6570)", "server/resources"
    ),
    "unknown-resource": Rule(
        "warning",
        "answer a URI that does not exist with -32002, and on 2026-07-28 with -32602",
        "server/resources, Error Handling",
    ),
}
_CALLS: Final = {
    "call": Rule("error", "return content, a list of blocks", "server/tools, Calling Tools"),
    "output": Rule(
        "error",
        "return structuredContent that fits outputSchema",
        "server/tools, Output Schema",
    ),
    "busy": Rule(
        "warning",
        "read on while a tool runs: one slow call stops everything else, also its cancellation",
        "basic/utilities/ping",
    ),
}

#: Every rule by its name, in the order of a report.
RULES: Final = {
    **_CONNECTION, **_STDIO, **_HTTP, **_AUTHORIZATION, **_LISTS, **_CALLS
}  # fmt: skip
