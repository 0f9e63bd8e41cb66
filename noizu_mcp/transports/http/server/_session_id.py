"""Session ids: random, or the sealed result of the handshake.

A sealed name lets any process that has the keys serve the session, and a new one after a restart:
what `initialize` agreed on stands in it. What handlers stored with `put_session` does not; `init`
of the server runs again. Source: 2025-11-25 `basic/transports`, "Session Management".
"""

import hashlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...._errors import McpError
from ....engine import logger
from ....server import Sealer, Server

if TYPE_CHECKING:
    from ._http_session import HttpSession

#: Random bytes of a name.
ENTROPY: Final = 24
#: Characters of a sealed name; proxies allow a header some more. A longer one is random instead.
MAX_NAME: Final = 4096
#: Seconds in which a sealed name can be taken up by a process that does not know the session.
LIFE: Final = 24 * 3600.0
#: Sessions that their clients have ended, and that must not come back here.
MAX_ENDED: Final = 10_000
_PURPOSE: Final = b"noizu_mcp Mcp-Session-Id v1"
_NO_KEYS: Final = (
    "seal_sessions is set, and no keys are: no session outlives this process, and no other serves"
    " it; set state_keys of the server, or the environment variable NOIZU_MCP_STATE_KEYS"
)


class SessionIds:
    """Makes the names of sessions, and reads them.

    Args:
        server: Whose sessions they are; its `state_keys` seal them.
        sealed: True if they are sealed: then other processes may serve the sessions as well.

    Attributes:
        sealed: See Args.
    """

    def __init__(self, server: Server, *, sealed: bool) -> None:
        self._server = server.options.name
        self.sealed = sealed
        self._sealer: Sealer | None = None
        if sealed:
            self._sealer = _make_sealer(server.options.state_keys)
            if not self._sealer.lasting:
                logger.warning(_NO_KEYS)
        self._ended: OrderedDict[bytes, None] = OrderedDict()

    def make(self, session: "HttpSession") -> str:
        """Name a session whose handshake has begun."""
        if self._sealer is not None:
            name = self._sealer.seal(session.peer.handshake.agreed(), self._binding(session.owner))
            if len(name) <= MAX_NAME:
                return name
        return secrets.token_urlsafe(ENTROPY)

    def read(self, name: str, owner: str | None) -> dict[str, Any] | None:
        """Read what a session began with; None if the name does not say it, or not to this owner.

        Args:
            name: What the client sent as `Mcp-Session-Id`.
            owner: Names the principal who asks.
        """
        if self._sealer is None or len(name) > MAX_NAME or _digest(name) in self._ended:
            return None
        try:
            agreed: dict[str, Any] = self._sealer.open(name, self._binding(owner))
        except McpError:
            return None
        return agreed

    def end(self, name: str) -> None:
        """Read a name no more: its client has ended the session."""
        if self._sealer is not None:
            self._ended[_digest(name)] = None
            if len(self._ended) > MAX_ENDED:
                self._ended.popitem(last=False)

    def _binding(self, owner: str | None) -> dict[str, Any]:
        return {"server": self._server, "principal": owner}


def _make_sealer(keys: Sequence[str] | None) -> Sealer:
    # Ids of sessions that were random, or of other servers, are nothing that anybody must see.
    noun, foreign = "an Mcp-Session-Id", logging.DEBUG
    return Sealer(keys, LIFE, purpose=_PURPOSE, noun=noun, foreign=foreign)


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()
