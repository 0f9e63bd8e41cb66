"""The seam to the JWT library: keys, headers and signatures; loads with the first JWT verifier.

PyJWT and cryptography do the cryptography. What a header says about how to verify it is believed
only as far as a choice among what the configuration allows (RFC 8725 sections 3.1 and 3.2).
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from .._errors import InvalidToken
from ..jsonrpc import parse_json
from ._claims import shown

#: Bits of an RSA key below which it could be factored (RFC 7518 section 3.3).
MIN_RSA: Final = 2048
#: Keys of one set. Issuers have two or three.
MAX_KEYS: Final = 64

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_PUBLIC_MEMBERS: Final = ("kty", "crv", "x", "y", "n", "e")

_jws: Final = jwt.PyJWS(options={"verify_signature": True, "enforce_minimum_key_length": True})


class NotSigned(InvalidToken):
    """None of the given keys has signed the token; another one may have."""


@attrs.frozen
class Header:
    """The header of a token; nobody has vouched for it yet."""

    alg: str
    kid: str | None
    typ: str | None


@attrs.frozen
class Key:
    """A public key, and the algorithms that it is for."""

    kid: str | None
    algorithms: frozenset[str]
    key: Any = attrs.field(repr=False)


def read_header(token: str) -> Header:
    """Read the header of a token in compact form.

    Raises:
        InvalidToken: It is no JWS, or says something that must be understood and is not.
    """
    return _read_header(token.partition(".")[0])


# All tokens of one key have the same first part; those that somebody makes up push it out at worst.
@functools.lru_cache(maxsize=64)
def _read_header(segment: str) -> Header:
    try:
        header = jwt.get_unverified_header(f"{segment}..")
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise InvalidToken(f"it is no JWT: {shown(str(error))}") from None
    alg, typ = header.get("alg"), header.get("typ")
    if not isinstance(alg, str) or not (typ is None or isinstance(typ, str)):
        raise InvalidToken("`alg` or `typ` of its header is no text")
    return Header(alg, header.get("kid"), typ)


def verify_signature(token: str, alg: str, keys: Iterable[Any]) -> dict[str, Any]:
    """Check the signature of a token against keys, and read its claims.

    Args:
        token: A JWS in compact form.
        alg: The algorithm, one that was allowed beforehand.
        keys: Those that may have signed it; the first one that did counts.

    Raises:
        NotSigned: None of them did.
        InvalidToken: What was signed is no object of JSON.
    """
    reason = "there is no key"
    for key in keys:
        try:
            payload = _jws.decode(token, key, algorithms=[alg])
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            reason = str(error)
        else:
            return _read_claims(payload)
    raise NotSigned(f"no trusted key has signed it: {shown(reason)}")


def check_secret(secret: bytes) -> None:
    """Check that a shared secret is not a key that others may know.

    Raises:
        ValueError: It is empty, or looks like a public key (RFC 8725 section 2.1).
    """
    try:
        jwt.get_algorithm_by_name("HS256").prepare_key(secret)
    except jwt.InvalidKeyError as error:
        raise ValueError(f"this cannot be a shared secret: {error}") from None


def _read_claims(payload: bytes) -> dict[str, Any]:
    try:
        claims = parse_json(payload)
    except (ValueError, RecursionError) as error:
        raise InvalidToken(f"its claims are no JSON: {shown(str(error))}") from None
    if not isinstance(claims, dict):
        raise InvalidToken("its claims are no object")
    return claims


def read_key_set(document: Any) -> list[Key]:
    """Read a JWK Set (RFC 7517 section 5); keys that are not for this are left out.

    Returns:
        The keys; none is an answer, too: that of an issuer that has withdrawn them all.

    Raises:
        ValueError: It is no key set, or has too many keys.
    """
    found = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(found, list) or len(found) > MAX_KEYS:
        raise ValueError(f"no JWK Set, or one with more than {MAX_KEYS} keys")
    keys = [key for jwk in found if (key := _usable(jwk)) is not None]
    # Garbage withdraws no keys.
    if not keys and not all(isinstance(jwk, Mapping) for jwk in found):
        raise ValueError("no JWK Set: it holds something else than keys")
    return keys


def _usable(jwk: Any) -> Key | None:
    # RFC 7517 section 5: kinds that are not understood should be ignored.
    try:
        return read_jwk(jwk)
    except ValueError:
        return None


def read_jwk(jwk: Any) -> Key:
    """Read one public key (RFC 7517 section 4).

    Raises:
        ValueError: It is no public key, is for something else, or is too weak.
    """
    if not isinstance(jwk, Mapping):
        raise ValueError("a JWK is an object")
    if "d" in jwk or "k" in jwk:
        raise ValueError("a private or secret key; only public keys belong here")
    use, operations = jwk.get("use", "sig"), jwk.get("key_ops", ["verify"])
    if use != "sig" or not isinstance(operations, list) or "verify" not in operations:
        raise ValueError("the key is not for signatures")
    key, alg, kid = _load_jwk(jwk), jwk.get("alg"), jwk.get("kid")
    algorithms = frozenset(each for each in _algorithms(key) if alg in (None, each))
    if not algorithms:
        raise ValueError(f"a key of this kind is not for {alg!r}")
    return Key(kid if isinstance(kid, str) else None, algorithms, key)


def _load_jwk(jwk: Mapping[str, Any]) -> Any:
    public = {name: jwk[name] for name in _PUBLIC_MEMBERS if name in jwk}
    try:
        return jwt.PyJWK(public).key
    except (jwt.PyJWTError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"the JWK cannot be read: {type(error).__name__}") from None


def read_pem(pem: str | bytes) -> Key:
    """Read a public key in PEM.

    Raises:
        ValueError: It is none, or is too weak.
    """
    data = pem.encode() if isinstance(pem, str) else pem
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("a key must be a public key in PEM, or a JWK") from None
    return Key(None, _algorithms(key), key)


def read_keys(keys: Any) -> list[Key]:
    """Read the option `keys=`: a JWK Set, or one or several of PEM, JWK and public key objects.

    Raises:
        ValueError: One of them is no public key, or there is none.
    """
    if isinstance(keys, Mapping) and "keys" in keys:
        found = read_key_set(keys)
    else:
        several = isinstance(keys, Sequence) and not isinstance(keys, str | bytes)
        found = [_read_any(key) for key in (keys if several else [keys])]
    if not found:
        raise ValueError("keys= has no key that could verify a signature")
    return found


def _read_any(key: Any) -> Key:
    if isinstance(key, str | bytes):
        return read_pem(key)
    if isinstance(key, Mapping):
        return read_jwk(key)
    return Key(None, _algorithms(key), key)


def _algorithms(key: Any) -> frozenset[str]:
    if isinstance(key, RSAPublicKey):
        if key.key_size < MIN_RSA:
            raise ValueError(f"an RSA key needs {MIN_RSA} bits, not {key.key_size}")
        return frozenset(_RSA)
    if isinstance(key, EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return frozenset({_CURVES[key.curve.name]})
    if isinstance(key, Ed25519PublicKey):
        return frozenset({"EdDSA"})
    raise ValueError(f"{type(key).__name__} is no public key that tokens are signed for")
