"""An issuer of tokens with real keys."""

import functools
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from noizu_mcp.auth import AuthRequest

ISSUER = "https://issuer.example.com/"
AUDIENCE = "https://mcp.example.com/mcp"
REQUEST = AuthRequest("POST", "/mcp")
MAKERS = {
    "rsa": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "rsa-2": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "weak": lambda: rsa.generate_private_key(public_exponent=65537, key_size=1024),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "k1": lambda: ec.generate_private_key(ec.SECP256K1()),
    "ed": ed25519.Ed25519PrivateKey.generate,
}


@functools.cache
def private(kind):
    """Return a private key, made once for all tests."""
    return MAKERS[kind]()


def public(kind):
    return private(kind).public_key()


def public_pem(kind):
    return public(kind).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_pem(kind):
    return private(kind).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def jwk(kind, **members):
    """Return the public key as a JWK, made by the library that made the key."""
    algorithm = {"r": "RS256", "w": "RS256", "p": "ES256", "k": "ES256K", "e": "EdDSA"}[kind[0]]
    shape = jwt.get_algorithm_by_name(algorithm).to_jwk(public(kind), as_dict=True)
    shape.pop("key_ops", None)
    return {**shape, **members}


def jwks(*keys):
    return {"keys": list(keys)}


def claims(**changed):
    """Return valid claims; claims that are given as None are left out."""
    now = int(time.time())
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600}
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def signed(kind="rsa", alg="RS256", *, headers=None, **changed):
    """Return a token of the issuer."""
    return jwt.encode(claims(**changed), private(kind), alg, headers=headers)
