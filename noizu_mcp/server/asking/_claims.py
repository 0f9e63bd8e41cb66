"""States of questions on 2026-07-28: each is used once, by one node.

A client sends its retry to any node. A node that opens a state claims it in the backend. The first
claim wins; the other nodes refuse the state as used. If the handler that sent the state waits at
another node, that node gives it up. While the backend cannot answer, nodes use states
without a claim, as they would alone: only retries ask the backend, and none of them fails for it.
"""

from typing import Final

from ..._errors import McpError
from ..._value import JSONObject
from ...jsonrpc import INVALID_PARAMS
from ..nodes._node import Node
from ..nodes._records import digest_of
from ._parked import ParkedHandlers
from ._seal import USED_STATE, Sealer

#: Characters at the end of a state by which a node finds its handler: the seal ends with a random
#: looking tag of 22 characters.
TAIL: Final = 32


class StateClaims:
    """The claims of one node.

    Args:
        node: The node.
        parked: The handlers that wait at this node.
        sealer: Opens states.
        ttl: Seconds for which a state is valid.
    """

    def __init__(self, node: Node, parked: ParkedHandlers, sealer: Sealer, ttl: float) -> None:
        self._node = node
        self._parked = parked
        self._sealer = sealer
        self._ttl = ttl
        node.receivers["resumed"] = self._give_up

    async def take(self, state: str, binding: JSONObject) -> None:
        """Claim the state of a retry whose handler does not wait at this node.

        Args:
            state: The state.
            binding: The owner of the retry's states.

        Raises:
            McpError: The state is not valid for the retry, or was used (-32602).
        """
        # First: only a state of this server may take room in the backend.
        self._sealer.open(state, binding)
        if not await self.claim(state):
            raise McpError(INVALID_PARAMS, USED_STATE)
        self._node.tell("resumed", state[-TAIL:])

    async def claim(self, state: str) -> bool:
        """Claim a state of this server; False if it was used."""
        return await self._node.claim(f"state:{digest_of(state)}", self._ttl) is not False

    def _give_up(self, _sender: str, tail: str) -> None:
        self._parked.give_up(tail)
