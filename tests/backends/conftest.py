"""A Redis for all tests of a worker that do not disturb it."""

from secrets import token_hex

import pytest

from ..kit.redis import REDIS, RedisServer


@pytest.fixture(scope="session")
def redis():
    """Yield a Redis on a Unix socket."""
    if REDIS is None:
        pytest.skip("redis-server is not installed")
    with RedisServer() as server:
        yield server


@pytest.fixture
def prefix():
    """Return a prefix of keys that no other test has."""
    return token_hex(8)
