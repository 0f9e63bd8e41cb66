"""The server under attack: `python attacked.py MEMORY CONNECTIONS IDLE PORT SERVER`.

It gives its clients so many bytes and connections, and so many seconds to their idle sessions; 0 is
a free port. It runs on `noizu` or `hypercorn`; with `asgi` this program runs hypercorn by itself.
It writes its address to stderr, and ends with a signal.
"""

import signal
import sys
from functools import partial

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


async def run_hypercorn(app, port):
    from hypercorn.config import Config
    from hypercorn.trio import serve

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.errorlog = None
    config.graceful_timeout = 2
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            serving = partial(serve, app, config, shutdown_trigger=anext_of(signals))
            [url] = await nursery.start(serving)
            sys.stderr.write(f"{url}\n")


def anext_of(signals):
    async def wait():
        await anext(signals)

    return wait


if __name__ == "__main__":
    memory, connections, idle, port = (int(float(word)) for word in sys.argv[1:5])
    limits = HttpLimits(memory=memory, session_idle=idle, stall=5.0, grace=1.0, body_time=5.0)
    options = {"limits": limits, "metrics": True}
    if sys.argv[5] == "asgi":
        trio.run(run_hypercorn, Attacked().asgi(**options, health=True), port)
    else:
        server = {"server": sys.argv[5], "max_connections": connections}
        Attacked().run_http(port=port, **options, **server)
