"""Make a storm of calls to a server with handlers on asyncio, and report what leaks.

    python storm.py FACE TRANSPORT CALLS CONNECTIONS WORD…

FACE is the client: `trio`, `asyncio` or `threads`. TRANSPORT is one of `serve_over`, `process` for
the command of the other words, or `uvicorn`. `python storm.py serve` is that command. The clock is
the real one: the timers of the loops and the descriptors meet as they do in a program. A blocked
loop cannot be cancelled, so the program ends itself then, with a traceback.
"""

import asyncio
import faulthandler
import gc
import logging
import random
import socket
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

import trio
import trio.testing

from noizu_mcp import (
    Context,
    RequestTimeout,
    Server,
    Stdio,
    SyncClient,
    ToolError,
    Toolkit,
    aio,
    connect,
    mcp,
)
from noizu_mcp.testing import serve_over

#: Seconds after which the program ends itself, since something waits for ever.
PATIENCE = 100
#: Calls at a time.
WAVE = 40
#: Seconds that a handler sleeps, and after which a call is cancelled or abandoned.
NAPS = (0, 0.001, 0.003)
LONGEST = 0.006


class Tools(Toolkit, loop="asyncio"):
    """Tools that wait in every way that asyncio has."""

    @mcp
    async def at_once(self, token: str) -> str:
        return token

    @mcp
    async def nap(self, token: str) -> str:
        await asyncio.sleep(random.choice(NAPS))
        return token

    @mcp
    async def report(self, token: str, ctx: Context) -> str:
        await asyncio.gather(*(ctx.report_progress(number) for number in (1, 2)))
        return token

    @mcp
    async def time_out(self, token: str) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(random.choice(NAPS)):
                await asyncio.Event().wait()
        return token

    @mcp
    async def clean_up(self, token: str) -> str:
        try:
            await asyncio.sleep(random.choice(NAPS))
        finally:
            await asyncio.sleep(0.001)
        return token

    @mcp
    async def fail(self, token: str) -> str:
        await asyncio.to_thread(len, token)
        raise ToolError(token)


class Stormed(Server, name="stormed", version="1", loop="asyncio"):
    tools = [Tools]

    @asynccontextmanager
    async def lifespan(self):
        async with asyncio.TaskGroup():
            yield


TOOLS = ("at_once", "nap", "nap", "report", "time_out", "clean_up", "fail")


def choose():
    """Choose a tool, a token, and the options of a call; some calls have short timeouts."""
    token = str(random.random())
    options = {"timeout": random.uniform(0.0001, LONGEST)} if random.random() < 0.2 else {}
    return random.choice(TOOLS), token, options


def ignore(_):
    """Ignore progress."""


def check(result, tool, token):
    assert (result.text, result.is_error) == (token, tool == "fail"), (tool, result)


# The client in a program on trio


@asynccontextmanager
async def limited_on_trio():
    with trio.move_on_after(random.uniform(0, LONGEST)):
        yield


async def all_on_trio(works):
    async with trio.open_nursery() as nursery:
        for work in works:
            nursery.start_soon(work)


async def tasks_on_trio():
    async def tasks():
        return len(asyncio.all_tasks())

    left = await aio.run(tasks)
    await trio.testing.wait_all_tasks_blocked(0.01)
    return left, trio.lowlevel.current_statistics().tasks_living


# The client in a program on asyncio


@asynccontextmanager
async def limited_on_asyncio():
    with suppress(TimeoutError):
        async with asyncio.timeout(random.uniform(0, LONGEST)):
            yield


async def all_on_asyncio(works):
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work())


async def tasks_on_asyncio():
    await asyncio.sleep(0.01)
    return len(asyncio.all_tasks())


@asynccontextmanager
async def on_uvicorn():
    """Serve in this asyncio program: client and server share its loop as guests."""
    import uvicorn

    config = uvicorn.Config(Stormed().asgi(), log_level="warning", lifespan="on")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = uvicorn.Server(config)
        async with asyncio.TaskGroup() as group:
            group.create_task(host.serve([listener]))
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            host.should_exit = True


FACES = {
    "trio": (connect, limited_on_trio, all_on_trio, tasks_on_trio),
    "asyncio": (aio.connect, limited_on_asyncio, all_on_asyncio, tasks_on_asyncio),
}


class Storm:
    """A storm of calls, and one of connections, from a program on trio or asyncio."""

    def __init__(self, face, make_target, calls, connections):
        self.connect, self.limited, self.all, self.tasks = FACES[face]
        self.make_target, self.calls, self.connections = make_target, calls, connections

    async def call(self, client):
        tool, token, options = choose()
        async with self.limited() if random.random() < 0.3 else nullcontext():
            with suppress(RequestTimeout) if options else nullcontext():
                check(
                    await client.call_tool(tool, {"token": token}, progress=ignore, **options),
                    tool,
                    token,
                )

    async def many_calls(self, calls):
        async with self.connect(self.make_target()) as client:
            for _ in range(0, calls, WAVE):
                await self.all([partial(self.call, client)] * WAVE)
                # The next call is answered, whatever happened to the others.
                check(await client.call_tool("nap", {"token": "next"}), "nap", "next")

    async def short_connection(self):
        async with (
            self.limited() if random.random() < 0.2 else nullcontext(),
            self.connect(self.make_target()) as client,
        ):
            await self.call(client)

    async def run(self):
        await self.many_calls(WAVE)
        before = await self.tasks()
        await self.many_calls(self.calls)
        for _ in range(0, self.connections, WAVE):
            await self.all([self.short_connection] * WAVE)
        await self.many_calls(WAVE)
        after = await self.tasks()
        assert after == before, (before, after)


def storm_of_threads(make_target, calls, connections):
    """Make calls from threads, which cannot cancel a call, but use timeouts."""

    def call(client):
        tool, token, options = choose()
        with suppress(RequestTimeout) if options else nullcontext():
            check(client.call_tool(tool, {"token": token}, progress=ignore, **options), tool, token)

    def short_connection(_):
        with SyncClient(make_target()) as client:
            call(client)

    with ThreadPoolExecutor(8) as pool:
        with SyncClient(make_target()) as client:
            list(pool.map(lambda _: call(client), range(calls)))
            check(client.call_tool("nap", {"token": "next"}), "nap", "next")
        list(pool.map(short_connection, range(connections)))


def left():
    """Count the descriptors and threads of this process; trio keeps idle threads for a while."""
    gc.collect()
    threads = [each.name for each in threading.enumerate() if "trio" not in each.name.lower()]
    return len(list(Path("/dev/fd").iterdir())), sorted(threads)


def storm(face, transport, calls, connections, command):
    """Run the storm, and check for leaks."""

    def make_target():
        return Stdio(*command) if transport == "process" else serve_over(Stormed, transport)

    if face == "threads":
        storm_of_threads(make_target, calls, connections)
    elif transport == "uvicorn":

        async def main():
            async with on_uvicorn() as url:
                await Storm(face, lambda: url, calls, connections).run()

        asyncio.run(main())
    else:
        run = trio.run if face == "trio" else lambda main: asyncio.run(main())
        run(Storm(face, make_target, calls, connections).run)


def main(role, *words):
    if role == "serve":
        Stormed().run()
        return
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    logging.basicConfig(level=logging.WARNING)
    warnings.simplefilter("default")
    transport, calls, connections, *command = words
    storm(role, transport, 0, 0, command)
    before = left()
    storm(role, transport, int(calls), int(connections), command)
    assert left() == before, (before, left())
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
