"""The contract of what tells good tokens from bad ones."""

import logging
from abc import ABC, abstractmethod
from typing import Final

from .._errors import InvalidToken, VerifierUnavailable
from ..types import Principal
from ._request import AUTHORIZATION, AuthRequest

#: What no client may hear goes here: why a token was refused.
logger: Final = logging.getLogger("noizu_mcp.auth")


class TokenVerifier(ABC):
    """Tells who the bearer of a token is; subclass it for tokens of your own.

    One verifier serves all requests at the same time. Every request is verified, also those of a
    session (2026-07-28, basic/authorization: a session id is no authentication).

    Attributes:
        headers: The headers that its tokens stand in, in lower case: `authorization` after
            `Bearer`, any other one as its whole value.
    """

    headers: tuple[str, ...] = (AUTHORIZATION,)

    @abstractmethod
    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token.

        Args:
            token: What the client sent, not empty.
            request: The request that it came with.

        Returns:
            Who sent it. Nothing else is an answer: None, which says "not good" to other frameworks,
            is taken for a broken verifier (500), and lets nobody in.

        Raises:
            InvalidToken: It is not good, or not for this server.
            InsufficientScope: It is good, and does not allow this.
            VerifierUnavailable: Nobody can say at present.
        """


async def ask(verifier: TokenVerifier, token: str, request: AuthRequest) -> Principal:
    """Let a verifier verify a token; see `TokenVerifier.verify`.

    Raises:
        TypeError: What it gave is no `Principal`. A handler that hears of no principal serves
            everybody, so this must never pass for one.
    """
    given: object = await verifier.verify(token, request)
    if not isinstance(given, Principal):
        raise TypeError(
            f"{type(verifier).__name__}.verify gave {type(given).__name__}: return a Principal for"
            " a good token, and raise InvalidToken for any other"
        )
    return given


class AnyVerifier(TokenVerifier):
    """Asks several verifiers in turn; the first one that takes a token says who it is.

    Args:
        verifiers: At least one. Each sees only tokens of the headers that it reads.

    Raises:
        ValueError: There is none.
    """

    def __init__(self, *verifiers: TokenVerifier) -> None:
        if not verifiers:
            raise ValueError("AnyVerifier needs at least one verifier")
        self._verifiers = verifiers
        names = (name for verifier in verifiers for name in verifier.headers)
        self.headers = tuple(dict.fromkeys(names))

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`.

        A verifier that is unavailable counts only if no other one takes the token.
        """
        reasons: list[str] = []
        unavailable: VerifierUnavailable | None = None
        for verifier in self._verifiers:
            if request.header in verifier.headers:
                try:
                    return await ask(verifier, token, request)
                except InvalidToken as error:
                    reasons.append(f"{type(verifier).__name__}: {error.reason}")
                except VerifierUnavailable as error:
                    unavailable = error
        raise unavailable or InvalidToken("; ".join(reasons) or "no verifier reads this header")
