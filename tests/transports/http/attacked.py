"""The server under attack: `python attacked.py MEMORY CONNECTIONS IDLE PORT SERVER [CERTIFICATE]`.

MEMORY is in bytes, IDLE the seconds after which an idle session ends, and PORT 0 a free port.
SERVER is `noizu` or `hypercorn`; with a certificate it has TLS. It writes its address to stderr,
and ends with a signal.
"""

import sys

import trio

from noizu_mcp import Schema, Server, Tool
from noizu_mcp.transports.http import HttpLimits


class Echo(Tool):
    """Say it again."""

    class Input(Schema):
        text: str

    async def call(self, args):
        await trio.lowlevel.checkpoint()
        return args.text


class Big(Tool):
    """Answer with so many bytes."""

    class Input(Schema):
        size: int

    async def call(self, args):
        await trio.lowlevel.checkpoint()
        return "x" * args.size


class Hang(Tool, timeout=5):
    """Take anything, and do not answer."""

    input = {"type": "object"}

    async def call(self, args):
        await trio.sleep_forever()


class Tasks(Tool):
    """Count the tasks of the process."""

    async def call(self):
        await trio.lowlevel.checkpoint()
        return str(trio.lowlevel.current_statistics().tasks_living)


class Attacked(Server, name="attacked", version="1"):
    tools = [Echo, Big, Hang, Tasks]


if __name__ == "__main__":
    memory, connections, idle, port = (int(float(word)) for word in sys.argv[1:5])
    limits = HttpLimits(memory=memory, session_idle=idle, stall=5.0, grace=1.0)
    options = {"metrics": True, "max_connections": connections, "server": sys.argv[5]}
    if len(sys.argv) > 6:
        options["certfile"] = sys.argv[6]
    Attacked().run_http(port=port, limits=limits, **options)
