"""The key ring that seals state: secrets of the server class or of the environment."""

import os
from collections.abc import Sequence
from typing import Final

#: The variable that holds the key ring: secrets separated by commas, the first one seals.
KEYS_VARIABLE: Final = "NOIZU_MCP_STATE_KEYS"
#: Seconds that a client has to come back with answers: long enough for a person to be found, short,
#: since a sealed state can be replayed until then.
STATE_TTL: Final = 3600.0
#: Characters of a secret. A client holds sealed state and can test guesses offline, without limit.
MIN_SECRET: Final = 16


def read_secrets(secrets: Sequence[str] | None) -> list[bytes]:
    """Return the key ring: the given secrets, else the environment's, else an empty one.

    Raises:
        ValueError: A secret is too short.
    """
    if secrets is None:
        given = os.environ.get(KEYS_VARIABLE, "")
        secrets = [part.strip() for part in given.split(",") if part.strip()]
    if any(len(secret) < MIN_SECRET for secret in secrets):
        raise ValueError(f"a state key needs at least {MIN_SECRET} characters")
    return [secret.encode() for secret in secrets]
