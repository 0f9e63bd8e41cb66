"""Handlers that really block the loop, until the log names them; nothing waits for a clock."""

import logging
import threading

import pytest
import trio

from noizu_mcp import Context, Server, Tool, connect
from noizu_mcp.telemetry import Watchdog
from noizu_mcp.telemetry import _watchdog as module

#: Seconds; far above what a step of these tests takes by itself, far below `PATIENCE`.
THRESHOLD = 0.05
#: Seconds after which a watchdog that says nothing is a failure.
PATIENCE = 30.0


class Barks(logging.Handler):
    """Keeps what the watchdog says, and lets who blocks the loop wait for it."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.heard = threading.Event()

    def emit(self, record):
        self.lines.append(record.getMessage())
        if "test_watchdog" in self.lines[-1]:
            self.heard.set()

    def about(self, culprit):
        """Give the first and the last line of the incident in which something waits for us.

        On a machine that is busy any other step may take long, too, and be told.
        """
        told = [n for n, line in enumerate(self.lines) if "heard.wait(PATIENCE)" in line]
        (first,) = [n for n in told if self.lines[n].startswith(f"{culprit} has blocked")]
        return self.lines[first], self.lines[first + 1]


@pytest.fixture
def barks():
    barks, logger = Barks(), logging.getLogger("noizu_mcp")
    logger.addHandler(barks)
    yield barks
    logger.removeHandler(barks)


def block(ctx):
    assert ctx.server.barks.heard.wait(PATIENCE)


class Blocks(Tool):
    """Blocks after it has waited."""

    async def call(self, args, ctx: Context):
        await trio.lowlevel.checkpoint()
        block(ctx)


class BlocksAtOnce(Tool):
    """Blocks before it waits."""

    async def call(self, args, ctx: Context):
        block(ctx)


class BlocksInline(Tool, inline=True):
    """Blocks where it is called."""

    def call(self, args, ctx: Context):
        block(ctx)


class BlocksInATask(Tool):
    """Blocks in a task of its own."""

    async def call(self, args, ctx: Context):
        async def work():
            block(ctx)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)


class Waits(Tool):
    """Takes as long, and lets the others run."""

    def call(self, args, ctx: Context):
        ctx.server.looks.wait(PATIENCE)


class Slow(Server, name="slow", version="1"):
    tools = [Blocks, BlocksAtOnce, BlocksInline, BlocksInATask, Waits]

    def __init__(self, barks):
        self.barks = barks
        self.telemetry.add(Watchdog(THRESHOLD))

    async def list_prompts(self, cursor, ctx):
        block(ctx)
        return []


@pytest.mark.parametrize("name", ["blocks", "blocks_at_once", "blocks_inline", "blocks_in_a_task"])
async def test_the_handler_is_named(barks, name):
    """The log says which tool, at which line, once; and once how long it lasted."""
    async with connect(Slow(barks)) as client:
        await client.call_tool(name)

    first, last = barks.about(f"tools/call {name}")
    assert "threading.py:" in first.partition("\n")[0]  # it waits in Event.wait
    assert "assert ctx.server.barks.heard.wait(PATIENCE)" in first
    assert last.startswith(f"tools/call {name} blocked the loop for ")


async def test_a_method_without_a_name(barks):
    """A request without a name is logged with its method."""
    async with connect(Slow(barks)) as client:
        await client.list_prompts()

    _, last = barks.about("prompts/list")
    assert last.startswith("prompts/list blocked the loop for ")


async def test_a_task_that_belongs_to_no_request(barks):
    """Anything else that blocks the loop is named as trio names it."""
    async with connect(Slow(barks)) as client:
        await client.list_tools()
        assert barks.heard.wait(PATIENCE)

    (told,) = [line for line in barks.lines if "assert barks.heard.wait(PATIENCE)" in line]
    assert told.startswith("the task ")


async def test_each_incident_is_told_once(barks, monkeypatch):
    """However long it lasts: the thread looks on and says nothing more."""
    looks = []
    look = module._Pulse._look

    def counted(self):
        look(self)
        looks.append(1)

    monkeypatch.setattr(module._Pulse, "_look", counted)
    more = threading.Event()

    class Long(Tool, inline=True):
        def call(self, args, ctx: Context):
            block(ctx)
            seen = len(looks)
            while len(looks) < seen + 10:
                more.wait(THRESHOLD / 10)

    server = Slow(barks)
    server.tools.add(Long)
    async with connect(server) as client:
        await client.call_tool("long")

    told = [line for line in barks.lines if line.startswith("tools/call long has blocked")]
    assert len(told) == 1


async def test_a_loop_that_waits_is_not_blocked(barks, monkeypatch):
    """A sync handler in a thread, and a loop with nothing to do, are left alone."""
    idle = []
    look = module._Pulse._look
    server = Slow(barks)
    server.looks = threading.Event()

    def counted(self):
        before = len(barks.lines)
        if self._step is None:
            look(self)
            idle.append(len(barks.lines) - before)
            if len(idle) > 3 * module.LOOKS:
                server.looks.set()

    monkeypatch.setattr(module._Pulse, "_look", counted)
    async with connect(server) as client:
        await client.call_tool("waits")

    assert {*idle} == {0}


def test_the_thread_ends_with_the_loop(barks):
    """A thread for each loop, while it runs."""
    alive = []

    async def serve(server):
        for _ in range(2):
            async with connect(server) as client:
                await client.list_tools()
            alive.append([t for t in threading.enumerate() if "watchdog" in t.name])

    server = Slow(barks)
    trio.run(serve, server)
    trio.run(serve, server)

    assert [len(threads) for threads in alive] == [1, 1, 1, 1]
    assert not any(thread.is_alive() for threads in alive for thread in threads)


@pytest.mark.parametrize("threshold", [0, -1, float("inf"), float("nan"), True, "1", None])
def test_thresholds(threshold):
    """It must be a time."""
    with pytest.raises(ValueError, match="threshold must be seconds above 0, not"):
        Watchdog(threshold)
