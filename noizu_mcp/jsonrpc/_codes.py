"""Error codes, their names and their meanings.

Sources: JSON-RPC 2.0 section 5.1; MCP 2026-07-28 `basic/index` (reserved range -32020..-32099).
"""

from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

#: Before 2026-07-28 only; that revision forbids it and answers INVALID_PARAMS instead.
RESOURCE_NOT_FOUND: Final = -32002
#: 2025-11-25 only; 2026-07-28 asks with an `InputRequiredResult` and must not send this code.
URL_ELICITATION_REQUIRED: Final = -32042

#: 2026-07-28 only: the reserved range admits the codes of the specification, and no others.
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

#: Our own code: MCP has none. It is outside of the range that JSON-RPC reserves (-32768..-32000),
#: as 2026-07-28 `basic/index` asks of applications. HTTP answers 403.
INSUFFICIENT_SCOPE: Final = -31403

#: A client that sees one of these talks to a 2026-07-28 server (versioning: "recognised" errors).
MODERN_CODES: Final = frozenset({HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION})

CODE_NAMES: Final = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    RESOURCE_NOT_FOUND: "Resource not found",
    URL_ELICITATION_REQUIRED: "URL elicitation required",
    HEADER_MISMATCH: "Header mismatch",
    MISSING_CLIENT_CAPABILITY: "Missing required client capability",
    UNSUPPORTED_VERSION: "Unsupported protocol version",
    INSUFFICIENT_SCOPE: "Insufficient scope",
}

#: The HTTP status that 2026-07-28 demands for an error; every other code travels with 200.
HTTP_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
