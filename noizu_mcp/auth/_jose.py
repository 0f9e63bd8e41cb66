"""Headers, signatures, claims and keys of JWTs, with PyJWT; loaded with the first JWT verifier.

The sender of a token controls its header. It can only choose among the algorithms and keys that the
configuration allows (RFC 8725 sections 3.1 and 3.2).
"""

import functools
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import attrs
import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from .._errors import InvalidToken
from .._value import JSONObject
from ..jsonrpc import parse_json
from ._claims import TIMES, ClaimRules, read_time, shown

#: Minimum size of RSA keys in bits (RFC 7518 section 3.3).
MIN_RSA: Final = 2048
#: Maximum number of keys in a set. Issuers have two or three.
MAX_KEYS: Final = 64

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

_RSA: Final[tuple[str, ...]] = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_PUBLIC_MEMBERS: Final = ("kty", "crv", "x", "y", "n", "e")

_jwt: Final = jwt.PyJWT({"enforce_minimum_key_length": True})

# PyJWT raises these before it checks claims; other exceptions are about claims.
_NOT_VERIFIED: Final = (jwt.DecodeError, jwt.InvalidAlgorithmError, jwt.InvalidKeyError)


class NotSigned(InvalidToken):
    """The token was not signed with any of the given keys."""


@attrs.frozen
class JoseHeader:
    """The unverified header of a token."""

    alg: str
    kid: str | None
    typ: str | None


@attrs.frozen
class VerificationKey:
    """A public key with its algorithms."""

    kid: str | None
    algorithms: frozenset[str]
    key: PublicKey = attrs.field(repr=False)


def read_header(token: str) -> JoseHeader:
    """Read the header of a token in compact form.

    Raises:
        InvalidToken: The token is not a JWS, or its header has an extension that is not supported.
    """
    return _read_header(token.partition(".")[0])


# All tokens of one key have equal headers. Made-up headers can only evict them from the cache.
@functools.lru_cache(maxsize=64)
def _read_header(segment: str) -> JoseHeader:
    try:
        header = jwt.get_unverified_header(f"{segment}..")
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise InvalidToken(f"it is not a JWT: {shown(str(error))}") from None
    alg, typ = header.get("alg"), header.get("typ")
    if not isinstance(alg, str) or not (typ is None or isinstance(typ, str)):
        raise InvalidToken("`alg` or `typ` of its header is not a string")
    return JoseHeader(alg, header.get("kid"), typ)


def decode(
    token: str, alg: str, keys: Iterable[PublicKey | bytes], rules: ClaimRules
) -> JSONObject:
    """Verify the signature of a token and its registered claims.

    Args:
        token: A JWS in compact form.
        alg: The algorithm, which the caller has found in the list of allowed algorithms.
        keys: Keys that may have signed the token; the first matching key is used.
        rules: The rules for its claims.

    Returns:
        All claims of the token.

    Raises:
        NotSigned: The token was not signed with any of the keys.
        InvalidToken: Its claims are malformed, or it was signed with a key and they violate a rule.
    """
    # Claims are first parsed as strict JSON. PyJWT uses `json.loads`, and its errors for malformed
    # times could not be distinguished from a bad signature.
    claims = _read_claims(token)
    reason = "there is no key"
    for key in keys:
        try:
            _jwt.decode(
                token,
                key,
                algorithms=[alg],
                options={"require": list(rules.required)},
                audience=rules.audience,
                issuer=rules.issuer,
                leeway=rules.leeway,
            )
        except (*_NOT_VERIFIED, ValueError, TypeError) as error:
            reason = str(error)
        except jwt.PyJWTError as error:
            # PyJWT reports "Invalid issuer" without its value; the log should have it.
            rules.check(claims)
            raise InvalidToken(f"its claims break RFC 7519: {shown(str(error))}") from None
        else:
            return claims
    raise NotSigned(f"no trusted key has signed it: {shown(reason)}")


def _read_claims(token: str) -> JSONObject:
    parts = token.split(".")
    if len(parts) != 3:  # RFC 7515 section 7.1
        raise InvalidToken("it is not a JWT: it must have three parts")
    try:
        claims = parse_json(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError) as error:
        raise InvalidToken(f"its claims are not JSON: {shown(str(error))}") from None
    if not isinstance(claims, dict):
        raise InvalidToken("its claims are not an object")
    # PyJWT reads times with `int`, which accepts "9999999999", True and numbers of any size.
    for name in TIMES:
        if read_time(claims, name) is None and name in claims:
            raise InvalidToken(f"`{name}` is not a number of seconds")
    return claims


def check_secret(secret: bytes) -> None:
    """Check that a shared secret is not a key that others may know.

    Raises:
        ValueError: It is empty, or looks like a public key (RFC 8725 section 2.1).
    """
    try:
        jwt.get_algorithm_by_name("HS256").prepare_key(secret)
    except jwt.InvalidKeyError as error:
        raise ValueError(f"this cannot be a shared secret: {error}") from None


def read_key_set(document: object) -> list[VerificationKey]:
    """Read a JWK Set (RFC 7517 section 5), ignoring keys that cannot verify tokens.

    Returns:
        The keys. An empty list is valid: the issuer has withdrawn all of its keys.

    Raises:
        ValueError: It is not a key set, or has more than `MAX_KEYS` keys.
    """
    found = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(found, list) or len(found) > MAX_KEYS:
        raise ValueError(f"not a JWK Set, or one with more than {MAX_KEYS} keys")
    keys: list[VerificationKey] = []
    for jwk in found:
        with suppress(ValueError):  # RFC 7517 section 5: keys not understood should be ignored
            keys.append(read_jwk(jwk))
    # Only an empty set, or a set of other keys, withdraws the known keys; invalid data must not.
    if not keys and not all(isinstance(jwk, Mapping) for jwk in found):
        raise ValueError("not a JWK Set: it holds something else than keys")
    return keys


def read_jwk(jwk: object) -> VerificationKey:
    """Read one public key (RFC 7517 section 4).

    Raises:
        ValueError: It is not a public key, not for signatures, or too weak.
    """
    if not isinstance(jwk, Mapping):
        raise ValueError("a JWK is an object")
    if "d" in jwk or "k" in jwk:
        raise ValueError("a private or secret key; only public keys belong here")
    use, operations = jwk.get("use", "sig"), jwk.get("key_ops", ["verify"])
    if use != "sig" or not isinstance(operations, list) or "verify" not in operations:
        raise ValueError("the key is not for signatures")
    public = {name: jwk[name] for name in _PUBLIC_MEMBERS if name in jwk}
    try:
        key = jwt.PyJWK(public).key
    except (jwt.PyJWTError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"the JWK cannot be read: {type(error).__name__}") from None
    kid = jwk.get("kid")
    return _make_key(key, kid if isinstance(kid, str) else None, jwk.get("alg"))


def read_keys(keys: object) -> list[VerificationKey]:
    """Read the option `keys`: a JWK Set, or one or several of PEM, JWK and public key objects.

    Raises:
        ValueError: One of them is not a public key, or there is no key at all.
    """
    if isinstance(keys, Mapping) and "keys" in keys:
        found = read_key_set(keys)
    else:
        if isinstance(keys, str | bytes) or not isinstance(keys, Sequence):
            keys = [keys]
        found = [_read_any(key) for key in keys]
    if not found:
        raise ValueError("keys= has no key that could verify a signature")
    return found


def _read_any(key: object) -> VerificationKey:
    if isinstance(key, Mapping):
        return read_jwk(key)
    if isinstance(key, str | bytes):
        try:
            key = load_pem_public_key(key.encode() if isinstance(key, str) else key)
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("a key must be a public key in PEM, or a JWK") from None
    return _make_key(key)


def _make_key(key: object, kid: str | None = None, alg: object = None) -> VerificationKey:
    """Make a key for its algorithms, or only for `alg`."""
    if isinstance(key, RSAPublicKey):
        if key.key_size < MIN_RSA:
            raise ValueError(f"an RSA key needs {MIN_RSA} bits, not {key.key_size}")
        known = _RSA
    elif isinstance(key, EllipticCurvePublicKey) and key.curve.name in _CURVES:
        known = (_CURVES[key.curve.name],)
    elif isinstance(key, Ed25519PublicKey):
        known = ("EdDSA",)
    else:
        raise ValueError(f"{type(key).__name__} is not a public key that can verify tokens")
    algorithms = frozenset(each for each in known if alg in (None, each))
    if not algorithms:
        raise ValueError(f"a key of this kind is not for {alg!r}")
    return VerificationKey(kid, algorithms, key)
