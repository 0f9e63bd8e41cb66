"""Signatures of a client, by PyJWT: assertions (RFC 7523) and proofs of DPoP (RFC 9449).

Loads with the first strategy that signs.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urlsplit

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from ..._value import JSONObject
from ._strategy import origin_of

PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey

#: Seconds that an assertion is good for: it is sent at once.
ASSERTION_LIFE: Final = 60
#: The algorithm of proofs; every authorization server that knows DPoP knows it.
PROOF_ALGORITHM: Final = "ES256"
#: Longest nonce that is sent back, in characters.
MAX_NONCE: Final = 1024
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


def read_private_key(key: object, algorithm: str | None) -> tuple[PrivateKey, str]:
    """Read a private key and choose its algorithm.

    Args:
        key: The key: PEM without a password, as text or bytes, or an object of `cryptography`.
        algorithm: The algorithm; None: the usual one of such a key.

    Returns:
        The key and the algorithm.

    Raises:
        ValueError: It is not a private key, or not for this algorithm; the text does not show it.
    """
    if isinstance(key, str | bytes):
        try:
            key = load_pem_private_key(key.encode() if isinstance(key, str) else key, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ValueError("key must be a private key in PEM, without a password") from None
    # The usual one is the first.
    if isinstance(key, EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        known: tuple[str, ...] = (_CURVES[key.curve.name],)
    elif isinstance(key, RSAPrivateKey):
        known = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
    elif isinstance(key, Ed25519PrivateKey):
        known = ("EdDSA",)
    else:
        raise ValueError("key must be a private key: RSA, P-256, P-384, P-521 or Ed25519")
    if algorithm is not None and algorithm not in known:
        raise ValueError(f"the key is for {', '.join(sorted(known))}, not {algorithm!r}")
    return key, algorithm or known[0]


def make_assertion(
    client_id: str, audience: str, key: PrivateKey, algorithm: str, key_id: str | None = None
) -> str:
    """Make the assertion by which a client proves that it has its key (RFC 7523 section 3).

    Args:
        client_id: The client, issuer and subject of the assertion.
        audience: The issuer of the authorization server.
        key: The private key.
        algorithm: Its algorithm.
        key_id: The name of the key at the authorization server (`kid`).
    """
    now = int(time.time())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": now,
        "exp": now + ASSERTION_LIFE,
        "jti": secrets.token_urlsafe(16),
    }
    header = None if key_id is None else {"kid": key_id}
    return jwt.encode(claims, key, algorithm, headers=header)


class Prover:
    """Makes proofs of DPoP with one key, and keeps the nonces of the servers.

    Args:
        pem: The key, as `pem` gives it; None: a new one.
    """

    def __init__(self, pem: str | None = None) -> None:
        self._key = generate_private_key(SECP256R1())
        if pem is not None:
            # The algorithm is for this kind of key only.
            key, _ = read_private_key(pem, PROOF_ALGORITHM)
            self._key = cast(EllipticCurvePrivateKey, key)
        self._nonces: dict[str, str] = {}
        # The members that RFC 7638 section 3.2 wants, in its order; PyJWT may add others.
        public = jwt.get_algorithm_by_name(PROOF_ALGORITHM).to_jwk(
            self._key.public_key(), as_dict=True
        )
        self._header = {
            "typ": "dpop+jwt",
            "jwk": {name: public[name] for name in ("crv", "kty", "x", "y")},
        }

    @property
    def pem(self) -> str:
        """The private key, for a store; tokens that are bound to it are useless without it."""
        data = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return str(data.decode())

    def prove(self, method: str, url: str, token: str | None = None) -> str:
        """Make the proof for one request (RFC 9449 section 4.2).

        Args:
            method: The method of the request.
            url: Its URL; the query does not count.
            token: The access token that goes with it; None at the token endpoint.

        Returns:
            The value of the header `DPoP`. It is for this request alone.
        """
        claims: JSONObject = {
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": urlsplit(url)._replace(query="", fragment="").geturl(),
            "iat": int(time.time()),
        }
        if token is not None:
            digest = hashlib.sha256(token.encode()).digest()
            claims["ath"] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if nonce := self._nonces.get(origin_of(url)):
            claims["nonce"] = nonce
        return jwt.encode(claims, self._key, PROOF_ALGORITHM, headers=self._header)

    def take_nonce(self, url: str, headers: Mapping[str, str]) -> bool:
        """Keep the nonce of an answer for later proofs to its origin (RFC 9449 section 8).

        Args:
            url: The URL of the request.
            headers: The headers of the answer; names in lower case, or found in any case.

        Returns:
            True if there is one, and it is new: the request can be sent again.
        """
        nonce, origin = headers.get("dpop-nonce", ""), origin_of(url)
        if not nonce or len(nonce) > MAX_NONCE or nonce == self._nonces.get(origin):
            return False
        self._nonces[origin] = nonce
        return True

    def has_other_nonce(self, url: str, proof: str) -> bool:
        """Tell whether a new proof would have another nonce than a given sent proof.

        Args:
            url: The URL of the request.
            proof: The proof that was sent; empty: none was.
        """
        if not proof:
            return False
        claims = jwt.decode(proof, options={"verify_signature": False})
        return bool(claims.get("nonce") != self._nonces.get(origin_of(url)))
