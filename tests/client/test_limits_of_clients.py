"""`connect(limits=…)`: the size of what the server may send, over every transport."""

import sys
from functools import partial
from pathlib import Path

import pytest
import trio

import noizu_mcp
from noizu_mcp import (
    Limits,
    McpError,
    ProtocolError,
    Server,
    Stdio,
    Toolkit,
    connect,
    mcp,
    serve_http,
)

SMALL = Limits(message_size=2000)
ROOT = str(Path(noizu_mcp.__file__).parents[1])
PROGRAM = f"""
import sys
sys.path.insert(0, {ROOT!r})
from noizu_mcp import Server, Toolkit, mcp
class Kit(Toolkit):
    @mcp
    def text(self, n: int) -> str:
        return "x" * n
class Big(Server, name="big", version="1"):
    tools = [Kit]
Big().run()
"""


class Kit(Toolkit):
    @mcp
    def text(self, n: int) -> str:
        """Some text."""
        return "x" * n


class Big(Server, name="big", version="1"):
    tools = [Kit]


async def refuses(target, error, text):
    async with connect(target, limits=SMALL) as client:
        assert len((await client.call_tool("text", {"n": 1000})).text) == 1000
        with pytest.raises(error, match=text):
            await client.call_tool("text", {"n": 3000})
        # The connection goes on.
        await client.ping()
    async with connect(target) as client:
        assert len((await client.call_tool("text", {"n": 3000})).text) == 3000


@pytest.mark.parametrize("target", [Big, Stdio(sys.executable, "-c", PROGRAM)])
async def test_a_result_over_the_limit(target):
    """The error names the option; with a larger limit the result arrives."""
    text = r"^Message over 2000 bytes; limits=Limits\(message_size=…\) allows more"
    await refuses(target, McpError, text)


async def test_a_result_over_the_limit_over_http():
    """Over HTTP the body of the response exceeds the limit."""
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, Big(), port=0))
        text = r"is over the size limit of 2000 bytes; limits=Limits\(message_size=…\) allows more"
        await refuses(f"{host.urls[0]}/mcp", ProtocolError, text)
        host.stop()


async def test_other_limits():
    """They apply to the client, too, from the first message on."""
    with pytest.raises(McpError, match=r"limits=Limits\(message_values=…\) allows more"):
        async with connect(Big, limits=Limits(message_values=3)):
            pass


@pytest.mark.parametrize("limits", [5, None, Limits])
async def test_what_is_no_limit(limits):
    """An invalid value raises before a connection is made."""
    with pytest.raises(TypeError, match=r"^limits must be Limits\(…\), not "):
        async with connect(Big, limits=limits):
            pass
