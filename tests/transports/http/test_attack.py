"""All attacks at once, from several addresses, on a process with little memory."""

import sys

import pytest

from .attack import MIB, run

MEMORY = 32 * MIB
SECONDS = 6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
@pytest.mark.time_limit(360)
async def test_other_clients_do_not_notice_an_attack():
    """Memory stays bounded, health checks and honest calls are answered, and all of it ends."""
    report = await run(SECONDS, MEMORY)
    assert report.judge(MEMORY) == []
