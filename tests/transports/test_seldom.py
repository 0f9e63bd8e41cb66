"""Lines of the log that others can cause."""

import logging

import trio

from noizu_mcp.transports._seldom import PERIOD, Seldom

logger = logging.getLogger("noizu_mcp.test")


async def test_a_kind_is_logged_once_a_minute(caplog, autojump_clock):
    """What was left out is counted in the next line; another kind is another matter."""
    log = Seldom(logger)
    for number in range(3):
        log.say("a", "refused %d", number)
    log.say("b", "full")
    assert caplog.messages == ["refused 0", "full"]
    caplog.clear()
    await trio.sleep(PERIOD)
    log.say("a", "refused %d", 3)
    log.say("b", "full")
    assert caplog.messages == ["refused 3 (and 2 more of them before)", "full"]
