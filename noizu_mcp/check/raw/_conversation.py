"""A conversation with a server in one revision."""

from collections.abc import Mapping
from typing import Final

from ..._value import JSON, JSONObject
from ..._version import __version__
from ...jsonrpc import Request
from ...protocol import LATEST_HANDSHAKE, STATELESS, mirroring_headers
from ...types import META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_PROTOCOL_VERSION
from ._exchange import Exchange, Link, RawMessage

#: Names of HTTP headers.
SESSION: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"


class Conversation:
    """A conversation.

    Args:
        link: The connection.
        patience: Seconds to wait for an answer.
        stateless: True for 2026-07-28, False for the revisions with a handshake.
        name: The name of the client.

    Attributes:
        version: The negotiated revision.
        session: The HTTP session, or None.
        times: Seconds that answers took.
        mirrored: The path of the property that each `Mcp-Param-*` header mirrors, by tool.
    """

    def __init__(self, link: Link, patience: float, *, stateless: bool, name: str) -> None:
        self.patience = patience
        self.stateless = stateless
        self.version = STATELESS.name if stateless else LATEST_HANDSHAKE.name
        self.session: str | None = None
        self.times: list[float] = []
        self.mirrored: dict[str, Mapping[str, tuple[str, ...]]] = {}
        self._client = {"name": name, "version": __version__}
        self._link = link
        self._next_id = 0

    @property
    def light_method(self) -> str:
        """A method that every server answers at once."""
        return "server/discover" if self.stateless else "ping"

    async def ask(
        self,
        method: str,
        params: Mapping[str, JSON] | None = None,
        *,
        patience: float | None = None,
        meta: Mapping[str, JSON] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Exchange:
        """Send a request and wait for its answer.

        Args:
            method: The method.
            params: Its params; `_meta` of 2026-07-28 is added.
            patience: Seconds to wait; by default the conversation's.
            meta: Replaces `_meta`.
            headers: HTTP headers to replace; None removes a header.
        """
        message: JSONObject = {"jsonrpc": "2.0", "id": self.new_id(), "method": method}
        full = dict(params or {})
        if self.stateless:
            full["_meta"] = dict(self.envelope() if meta is None else meta)
        if full:
            message["params"] = full
        patience = self.patience if patience is None else patience
        found = await self.send(message, headers, patience)
        if found.answer is not None:
            self.times.append(found.seconds)
        return found

    def new_id(self) -> str:
        """Make the id of a request; ids of both eras differ, since one process may get both."""
        self._next_id += 1
        return f"{'d' if self.stateless else 'h'}{self._next_id}"

    async def tell(self, method: str, params: JSONObject | None = None) -> Exchange:
        """Send a notification."""
        message: JSONObject = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        return await self.send(message, None, self.patience)

    async def send(
        self, message: RawMessage, headers: Mapping[str, str | None] | None, patience: float
    ) -> Exchange:
        """Send a message unchanged, or several in a list; see `ask`."""
        first = message[0] if isinstance(message, list) else message
        given: dict[str, str | None] = {**self.headers_of(first), **(headers or {})}
        shown = {name: value for name, value in given.items() if value is not None}
        found = await self._link.exchange(message, shown, patience)
        found.sent = f"{first.get('method')} ({self.version})"
        return found

    def headers_of(self, message: JSONObject) -> dict[str, str]:
        """Return the HTTP headers of a message, names in lower case."""
        if self.stateless:
            method, params = message.get("method"), message.get("params")
            # Malformed messages are sent, too; a header must be printable.
            is_name = isinstance(method, str) and method.isascii() and method.isprintable()
            request = Request(
                0,
                str(method) if is_name else "",
                params if isinstance(params, dict) else None,
            )
            try:
                mirrored = mirroring_headers(request, self.mirrored)
            except UnicodeEncodeError:  # half a surrogate pair, which headers cannot contain
                meta = {"_meta": (request.params or {}).get("_meta")}
                mirrored = mirroring_headers(request._replace(params=meta), {})
            return {name.lower(): value for name, value in mirrored.items()}
        if message.get("method") == "initialize":
            return {}
        session = {} if self.session is None else {SESSION: self.session}
        return {VERSION: self.version, **session}

    def greeting(self) -> JSONObject:
        """Return the params of `initialize`."""
        return {"protocolVersion": self.version, "capabilities": {}, "clientInfo": self._client}

    def envelope(self, version: str | None = None) -> JSONObject:
        """Make the `_meta` of a request of 2026-07-28."""
        return {
            META_PROTOCOL_VERSION: version or self.version,
            META_CLIENT_CAPABILITIES: {},
            META_CLIENT_INFO: self._client,
        }
