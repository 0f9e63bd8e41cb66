"""Results of trio tasks for code of another thread or loop."""

from concurrent.futures import Future

import pytest
import trio

from noizu_mcp.engine import settle


async def test_a_stop_iteration_is_explained():
    """A future of asyncio cannot raise it, so it becomes a `RuntimeError`."""
    ended = Future()

    def work():
        raise StopIteration(3)

    await settle(work, trio.CancelScope(), ended, RuntimeError)

    with pytest.raises(RuntimeError, match=r"the trio code raised StopIteration\(3\)"):
        ended.result()
