"""A server written with FastMCP, for our clients to drive: all kinds of content."""

import asyncio
import sys

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Audio, File, Image

PNG = bytes.fromhex("89504e470d0a1a0a")
server = FastMCP("foreign", instructions="Call anything.")


@server.tool
def greet(name: str) -> str:
    """Answer with a text."""
    return f"Hello, {name}"


@server.tool
def media() -> list[Image | Audio | File]:
    """Answer with a picture, a sound and a file."""
    return [
        Image(data=PNG, format="png"),
        Audio(data=b"RIFF", format="wav"),
        File(data=b"a,b", format="csv", name="table"),
    ]


@server.tool
def weigh(city: str) -> dict[str, float]:
    """Answer with an object."""
    return {city: 21.5}


@server.tool
def refuse() -> str:
    """Fail in a way that a model can act on."""
    raise ToolError("the shop is closed")


@server.tool
async def steps(count: int, ctx: Context) -> str:
    """Report progress."""
    for number in range(1, count + 1):
        await ctx.report_progress(number, count)
    return "finished"


@server.tool
async def sleep(seconds: float) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return "awake"


@server.resource("note://plum")
def plum() -> str:
    """A text."""
    return "Plums are ripe"


@server.resource("note://number/{number}")
def numbered(number: int) -> str:
    """A template."""
    return f"Note {number}"


@server.prompt
def review(code: str) -> str:
    """Review some code."""
    return f"Review: {code}"


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run(
            "http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="critical"
        )
    else:
        server.run("stdio", show_banner=False, log_level="critical")
