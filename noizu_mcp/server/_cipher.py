"""Encryption with a ring of keys: for state that clients carry, and for records of a backend."""

import functools
import os
from collections.abc import Sequence
from typing import Any, Final

# Bytes of the layout: key id, nonce, ciphertext with tag. The key id selects a key of the ring in
# one lookup; it is derived, so it tells nothing about the secret.
_KID: Final = 4
_KEY: Final = 32
# 96 bits, the size that GCM is specified for; random, since replicas share keys but no counter.
_NONCE: Final = 12
_TAG: Final = 16


class ForeignError(ValueError):
    """Bytes that were not sealed with any key of a ring."""


class Cipher:
    """Encrypts and authenticates bytes with a key ring: the first key encrypts, every key decrypts.

    Args:
        secrets: The secrets of the ring, at least one.
        purpose: The input of key derivation. One ring serves several purposes, and bytes of one
            purpose cannot be decrypted for another.
    """

    def __init__(self, secrets: Sequence[bytes], purpose: bytes) -> None:
        self._secrets = secrets
        self._purpose = purpose

    @functools.cached_property
    def _keys(self) -> dict[bytes, Any]:
        """The ciphers by the public names of their keys, in order of the ring."""
        # Loaded on first use: most servers never seal a state.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        keys = {}
        for secret in self._secrets:
            derived = HKDF(SHA256(), _KID + _KEY, salt=None, info=self._purpose).derive(secret)
            keys[derived[:_KID]] = AESGCM(derived[_KID:])
        return keys

    def encrypt(self, plain: bytes, place: bytes = b"") -> bytes:
        """Encrypt bytes.

        Args:
            plain: The bytes.
            place: What the bytes belong to; `decrypt` needs an equal one.
        """
        kid, cipher = next(iter(self._keys.items()))
        nonce = os.urandom(_NONCE)
        # The key id is authenticated as associated data, so it cannot be replaced.
        sealed: bytes = cipher.encrypt(nonce, plain, kid + place)
        return kid + nonce + sealed

    def decrypt(self, raw: bytes, place: bytes = b"") -> bytes:
        """Decrypt bytes that `encrypt` returned for the same place.

        Raises:
            ValueError: They were encrypted with another ring, for another place, or were changed.
        """
        from cryptography.exceptions import InvalidTag

        if len(raw) < _KID + _NONCE + _TAG:
            raise ForeignError("it is too short")
        kid, nonce, sealed = raw[:_KID], raw[_KID : _KID + _NONCE], raw[_KID + _NONCE :]
        cipher = self._keys.get(kid)
        if cipher is None:
            raise ForeignError("it was sealed with a key that is not, or no longer, in the ring")
        try:
            plain: bytes = cipher.decrypt(nonce, sealed, kid + place)
        except InvalidTag:
            raise ValueError("it was changed on its way") from None
        return plain


@functools.cache
def process_secret() -> bytes:
    """Return the random secret of this process."""
    # Cached for the process: two servers in one process can open each other's state, like two
    # replicas with a key ring.
    return os.urandom(_KEY)
