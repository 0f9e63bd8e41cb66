"""Sealed state that travels through the client: encrypted, authenticated, bound to its request.

2026-07-28 `basic/patterns/mrtr`: the client carries `requestState` and may be hostile. AES-256-GCM
seals it; its owner, its request and its expiry are inside. Every invalid state gets one and the
same error, so that a client cannot probe which check failed. The reason goes to the log only.

A state is used once: if its owner sends it again, the error says so. `_UsedStates`
remembers the used states of this process in a bounded table. When the table is full it drops the
state that was used first, and refuses every state that is as old from then on.
"""

import base64
import binascii
import hashlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..._errors import McpError
from ..._value import JSONMapping
from ...engine import ThrottledLog, logger
from ...jsonrpc import INVALID_PARAMS, parse_json, render
from .._cipher import Cipher, ForeignError, process_secret
from ..registry._server_options import STATE_TTL, read_secrets

#: The error text for every state that is not valid.
INVALID_STATE: Final = "Invalid requestState"
#: The error text for a state that its owner has used before.
USED_STATE: Final = "This requestState was used before; make the call again without it"
#: Used states that a server remembers, in about 4 MB.
MAX_USED: Final = 20_000

# The purpose has a version: a new layout gets new keys, and old states are recognized as foreign.
_PURPOSE: Final = b"noizu_mcp requestState v1"


class _UsedStates:
    """The used states; see the docstring of the module."""

    def __init__(self) -> None:
        self._times: dict[bytes, float] = {}  # time of use by digest, in order of use
        self._forgotten = -math.inf  # states sealed until then are refused

    def add(self, state: str, sealed: float, now: float) -> bool:
        """Record that a state is used.

        Args:
            state: The state.
            sealed: The time at which it was sealed.
            now: The current time.

        Returns:
            False if it was used before, or may have been.
        """
        # 128 bits of the digest, since a state has up to 64 KiB.
        name = hashlib.sha256(state.encode()).digest()[:16]
        if name in self._times or sealed <= self._forgotten:
            return False
        # The clock of the server that sealed it may be ahead.
        self._times[name] = max(sealed, now)
        if len(self._times) > MAX_USED:
            self._forgotten = max(self._forgotten, self._times.pop(next(iter(self._times))))
        return True


class Sealer:
    """Seals and opens state that a client carries.

    Args:
        secrets: The key ring: the first key seals, every key opens. None for the environment's, or
            else a random key of this process; states then end with the process.
        ttl: Seconds for which a state is valid.
        purpose: The input of key derivation. One key ring serves several purposes, and a state of
            one purpose cannot be opened for another.
        noun: The kind of state, for the log.
        foreign: The log level for state that was not sealed with these keys.
        clock: Returns the time in seconds. All servers that share the keys must agree on it.

    Attributes:
        lasting: True if there is a key ring. Without one, states end with this process.

    Raises:
        ValueError: A secret is too short, or can be guessed.
    """

    def __init__(
        self,
        secrets: Sequence[str] | None,
        ttl: float = STATE_TTL,
        *,
        purpose: bytes = _PURPOSE,
        noun: str = "a requestState",
        foreign: int = logging.WARNING,
        clock: Callable[[], float] = time.time,
    ) -> None:
        given = read_secrets(secrets)
        self.lasting = bool(given)
        self._cipher = Cipher(given or [process_secret()], purpose)
        self._ttl = ttl
        self._noun = noun
        self._foreign = foreign
        # Anyone can send invalid states: a line for each would fill the log.
        self._throttled_log = ThrottledLog()
        self._clock = clock
        self._used = _UsedStates()

    def seal(self, content: object, binding: JSONMapping) -> str:
        """Seal a state.

        Args:
            content: Any JSON value.
            binding: The owner and the request of the state, JSON values; `open` needs an equal
                binding.

        Returns:
            Text for `requestState`.
        """
        # The expiry is inside the ciphertext, so a client cannot change it.
        plain = render([self._clock() + self._ttl, dict(binding), content])
        return _encode(self._cipher.encrypt(plain))

    def open(self, state: object, binding: JSONMapping) -> Any:
        """Open a state that `seal` made for the same binding.

        Returns:
            The content.

        Raises:
            McpError: The state is not valid for this request, or has expired (-32602). The text
                does not depend on the reason.
        """
        return self._open_or_refuse(state, binding)[1]

    def open_once(self, state: Any, binding: JSONMapping) -> Any:
        """Open a state as `open` does, and mark it as used.

        Raises:
            McpError: The state is not valid, or was used before (-32602).
        """
        expires, content = self._open_or_refuse(state, binding)
        # Checked last, so that only the owner learns that the state was used.
        if not self._used.add(state, expires - self._ttl, self._clock()):
            raise McpError(INVALID_PARAMS, USED_STATE)
        return content

    def use(self, state: str) -> None:
        """Mark a state as used without opening it. `open_once` refuses it from now on."""
        now = self._clock()
        self._used.add(state, now, now)

    def _open_or_refuse(self, state: object, binding: JSONMapping) -> tuple[float, Any]:
        try:
            # `_open` raises ValueError for invalid states. Any other exception is a bug.
            return self._open(state, binding)
        except ValueError as error:
            self._log(error)
            raise McpError(INVALID_PARAMS, INVALID_STATE) from None

    def _log(self, error: ValueError) -> None:
        if isinstance(error, ForeignError) and self._foreign < logging.WARNING:
            logger.log(self._foreign, "%s was refused: %s", self._noun, error)
        else:
            self._throttled_log.warning(str(error), "%s was refused: %s", self._noun, error)

    def _open(self, state: object, binding: JSONMapping) -> tuple[float, Any]:
        expires, bound, content = parse_json(self._cipher.decrypt(_decode(state)))
        # The seal is checked before the content is read.
        if self._clock() >= expires:
            raise ValueError("it has expired")
        if bound != binding:
            differing = [name for name, value in binding.items() if bound.get(name) != value]
            raise ValueError(f"it belongs to another request: {', '.join(differing)} differ")
        return expires, content


def _decode(state: object) -> bytes:
    if not isinstance(state, str) or not state.isascii():
        raise ForeignError("it is no base64 text")
    try:
        raw = base64.b64decode(state + "=" * (-len(state) % 4), b"-_", validate=True)
    except binascii.Error:
        raise ForeignError("it is no base64 text") from None
    # The last base64 character has unused bits, so several texts decode to equal bytes. Only one of
    # them is accepted, since a sealed text is also used as a key.
    if _encode(raw) != state:
        raise ForeignError("it is not the text that was sealed, but another spelling")
    return raw


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
