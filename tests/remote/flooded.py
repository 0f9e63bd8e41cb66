"""A client of hostile servers over stdio, or of a gateway to them, which measures its memory.

`python flooded.py several|gateway NAME…` prints the maximum growth of its memory in bytes, and the
text of the last answer of each server.
"""

import json
import sys
from pathlib import Path

import trio
from conftest import front_of

from noizu_mcp import (
    ConnectionClosed,
    Limits,
    McpError,
    ProtocolError,
    Remote,
    RequestTimeout,
    Stdio,
    connect,
    connect_all,
)

HOSTILE = Path(__file__).with_name("hostile.py")
LIMITS = Limits(message_size=2_000_000, list_size=4_000_000)
FAILURES = (ConnectionClosed, McpError, ProtocolError, RequestTimeout)
#: Number of requests to each server; one of them has a new list each time.
ROUNDS = 5


def memory(name):
    """Read a number of `/proc/self/status`, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


async def attempt(request, *args, **options):
    try:
        return await request(*args, **options)
    except FAILURES as error:
        return error


async def use(client, names, told):
    """Use the tools of all servers at the same time."""

    async def call(name):
        for _ in range(ROUNDS):
            answer = await attempt(client.call_tool, f"{name}_echo", {}, progress=lambda _: None)
            told[name] = getattr(answer, "text", None) or repr(answer)

    for _ in range(ROUNDS):
        await attempt(client.list_tools)
        await trio.sleep(0.1)
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(call, name)


async def main(mode, names):
    targets = {name: Stdio(sys.executable, str(HOSTILE), name) for name in names}
    told = {}
    before = memory("VmRSS")
    if mode == "several":
        async with connect_all(targets, limits=LIMITS) as clients, clients.tools:
            await use(clients, names, told)
    else:
        servers = [Remote(each, prefix=name, limits=LIMITS) for name, each in targets.items()]
        async with connect(front_of(*servers)) as client:
            await use(client, names, told)
    sys.stdout.write(json.dumps({"grew": memory("VmHWM") - before, "told": told}))


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2:])
