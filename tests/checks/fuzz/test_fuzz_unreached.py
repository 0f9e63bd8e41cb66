"""Runs that are too short for every component."""

import trio

from noizu_mcp import Server, Toolkit, mcp
from noizu_mcp.check.fuzz import fuzz


class Kit(Toolkit):
    @mcp
    async def stall(self) -> str:
        """Never answer."""
        await trio.sleep_forever()

    @mcp
    async def later(self) -> str:
        """Answer at once."""
        return "late"


class Slow(Server, name="slow", version="1"):
    tools = [Kit]


async def test_what_was_not_called_is_named(autojump_clock):
    """If one tool uses up the time of a run, the report lists the tools that were not called."""
    report = await fuzz(Slow, budget=8.0)

    assert report.unreached == ["later"]
    assert report.to_json()["unreached"] == ["later"]
    assert "not called, the time was over (--budget gives more): later" in report.lines()
