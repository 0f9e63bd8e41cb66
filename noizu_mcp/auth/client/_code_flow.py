"""The authorization code flow of a person, with PKCE (OAuth 2.1 section 4.1).

Theory of operation. One login is one `CodeFlow`: made with new secrets, used once.

1. `url` is opened in a browser. It names the client, the scopes, the resource, a random `state`,
   and the digest of a random verifier;
2. the answer comes back as the query of a redirect, and is checked, in this order: `state` belongs
   to this login; `iss` is the issuer that the browser was sent to (RFC 9207), compared as strings,
   before anything else of the answer is believed; then `error`, or `code`;
3. `code`, with the verifier, is exchanged for tokens at the token endpoint of the same issuer.

Sources: 2026-07-28 `basic/authorization`, "Authorization Flow" and its security considerations.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from ..._errors import AuthError
from ._discovery import Discovered, IssuerMetadata
from ._tokens import ClientRegistration, explain

_OFFLINE: Final = "offline_access"


class CodeFlow:
    """One login.

    Args:
        found: The authorization server and the resource.
        client: The client registered there.
        redirect_uri: The redirect URI for the answer.
        scopes: The scopes to request.
    """

    def __init__(
        self,
        found: Discovered,
        client: ClientRegistration,
        redirect_uri: str,
        scopes: tuple[str, ...],
    ) -> None:
        self._found = found
        self._client = client
        self._redirect_uri = redirect_uri
        self._scopes = scopes
        self._state = secrets.token_urlsafe(32)
        self._verifier = secrets.token_urlsafe(48)

    @property
    def url(self) -> str:
        """The URL for the browser."""
        digest = hashlib.sha256(self._verifier.encode()).digest()
        params = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": self._redirect_uri,
            "state": self._state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "scope": " ".join(self._scopes),
            "resource": self._found.resource or "",
            # OpenID Connect Core section 11 requires consent for a refresh token.
            "prompt": "consent" if _OFFLINE in self._scopes else "",
        }
        query = urlencode({name: value for name, value in params.items() if value})
        endpoint = self._found.issuer.authorization_endpoint
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    def is_answer(self, answer: Mapping[str, str]) -> bool:
        """Tell whether the parameters of a redirect answer this login, by their `state`."""
        return hmac.compare_digest(answer.get("state", "").encode(), self._state.encode())

    def code_of(self, answer: Mapping[str, str]) -> str:
        """Check the answer and return its code.

        Args:
            answer: The parameters of the redirect.

        Raises:
            AuthError: It is not the answer to this login, comes from another issuer, or is a
                refusal.
        """
        issuer = self._found.issuer
        if not self.is_answer(answer):
            raise AuthError(
                "the answer of the browser has another state than the login that was begun; it is"
                " not used. Try again"
            )
        named = answer.get("iss")
        if named is None and issuer.sends_iss:
            raise AuthError(
                f"the answer of the browser does not name its issuer, as {issuer.issuer} promises;"
                " it is not used"
            )
        if named is not None and named != issuer.issuer:
            raise AuthError(
                f"the answer of the browser comes from {named[:200]!r}, not from {issuer.issuer};"
                " it is not used"
            )
        if "error" in answer:
            raise AuthError(f"{issuer.issuer} did not log in: {explain(answer)}")
        if not answer.get("code"):
            raise AuthError("the answer of the browser has no code")
        return answer["code"]

    def token_params(self, code: str) -> dict[str, str | None]:
        """Make the parameters that exchange a code for tokens.

        Args:
            code: The code.
        """
        return {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": self._verifier,
            "resource": self._found.resource,
        }


def check_login(issuer: IssuerMetadata) -> None:
    """Check that people can log in at an issuer safely.

    Args:
        issuer: The authorization server.

    Raises:
        AuthError: It has no authorization endpoint, or does not support PKCE with S256.
    """
    if not issuer.authorization_endpoint:
        raise AuthError(f"{issuer.issuer} has no authorization_endpoint: it logs in no people")
    methods = issuer.challenge_methods
    # A client must refuse when the list is missing (2025-11-25 `basic/authorization`,
    # "Authorization Code Protection"); servers of 2025-03-26 have none.
    if methods is None and issuer.assumed:
        return
    if "S256" not in (methods or ()):
        raise AuthError(
            f"{issuer.issuer} does not promise PKCE with S256 (code_challenge_methods_supported in"
            " its metadata): a code could be stolen"
        )
