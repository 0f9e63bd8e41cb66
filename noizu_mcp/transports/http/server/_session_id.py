"""Session ids: random, or the sealed result of the handshake.

A sealed id contains the result of `initialize`, so every process that has the keys can serve the
session, also after a restart. Values that handlers stored with `put_session` are not in it, and
`init` of the server runs again. Source: 2025-11-25 `basic/transports`, "Session Management".
"""

import hashlib
import logging
import secrets
from collections import OrderedDict
from typing import Any, Final

from ...._errors import McpError
from ...._value import JSONMapping
from ....engine import logger
from ....server import Sealer, Server

#: Random bytes of an id: 192 bits, so that it cannot be guessed.
ENTROPY: Final = 24
#: Maximum characters of a sealed id; proxies allow slightly longer headers. Else it is random.
MAX_NAME: Final = 4096
#: Seconds in which a process that does not know the session can restore it from a sealed id.
LIFE: Final = 24 * 3600.0
#: Sessions ended by their clients that are remembered, so that they are not restored.
MAX_ENDED: Final = 10_000
_PURPOSE: Final = b"noizu_mcp Mcp-Session-Id v1"
_NO_KEYS: Final = (
    "seal_sessions is set, and no keys are: no session outlives this process, and no other serves"
    " it; set state_keys of the server, or the environment variable NOIZU_MCP_STATE_KEYS"
)


class SessionIds:
    """Makes the ids of sessions, and reads sealed ones.

    Args:
        server: The server of the sessions; its `state_keys` seal the ids.
        sealed: True if ids are sealed, so that other processes may serve the sessions as well.
        in_process: True if all servers of the sessions are in this process, and need no keys.

    Attributes:
        sealed: See Args.
    """

    def __init__(self, server: Server, *, sealed: bool, in_process: bool = False) -> None:
        self._server = server.options.name
        self.sealed = sealed
        self._sealer: Sealer | None = None
        if sealed:
            self._sealer = Sealer(
                server.options.state_keys,
                LIFE,
                purpose=_PURPOSE,
                noun="an Mcp-Session-Id",
                # Random ids, and ids of other servers, are common, and need no warning in the log.
                foreign=logging.DEBUG,
            )
            if not (self._sealer.lasting or in_process):
                logger.warning(_NO_KEYS)
        self._ended: OrderedDict[bytes, None] = OrderedDict()

    def make(self, agreed: JSONMapping, owner: str | None) -> str:
        """Make the id of a session whose handshake has begun.

        Args:
            agreed: The result of the handshake; see `Handshake.agreed`.
            owner: The key of the principal that began it.
        """
        if self._sealer is not None:
            name = self._sealer.seal(agreed, self._binding(owner))
            if len(name) <= MAX_NAME:
                return name
        # A secure generator, and visible ASCII only, as 2025-11-25 `basic/transports` requires.
        return secrets.token_urlsafe(ENTROPY)

    def read(self, name: str, owner: str | None) -> dict[str, Any] | None:
        """Read the handshake from a sealed id; None if it is not sealed, or has another owner.

        Args:
            name: The `Mcp-Session-Id` of the request.
            owner: The key of the principal of the request.
        """
        # The length is checked first: the time to open a seal grows with it.
        if self._sealer is None or len(name) > MAX_NAME or _digest(name) in self._ended:
            return None
        try:
            opened: dict[str, Any] = self._sealer.open(name, self._binding(owner))
        except McpError:
            return None
        return opened

    def end(self, name: str) -> None:
        """Do not read an id again: its client has ended the session."""
        if self._sealer is not None:
            # A digest: an id can have 4096 characters, and there may be thousands of them.
            self._ended[_digest(name)] = None
            if len(self._ended) > MAX_ENDED:
                self._ended.popitem(last=False)

    def _binding(self, owner: str | None) -> dict[str, Any]:
        # An id that was stolen, or made for another server with these keys, cannot be opened
        # (security best practices, "Session Hijacking").
        return {"server": self._server, "principal": owner}


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()
