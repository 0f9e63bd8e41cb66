"""Handlers that really block the loop, until the log names them; tests do not wait for a clock."""

import asyncio
import logging
import multiprocessing
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
import trio

import noizu_mcp
from noizu_mcp import Context, DefinitionError, Server, Tool, connect, serve_http
from noizu_mcp.telemetry import _watchdog as module
from noizu_mcp.telemetry import watching

#: Seconds; far more than a step of these tests needs, far less than `PATIENCE`.
THRESHOLD = 0.05
#: Seconds after which a silent watchdog is a failure.
PATIENCE = 30.0
ROOT = str(Path(noizu_mcp.__file__).parents[1])


class Barks(logging.Handler):
    """Records what the watchdog logs, and lets the blocking code wait for it."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.stacks = []
        self.heard = threading.Event()

    def emit(self, record):
        text = record.getMessage()
        if record.levelno == logging.DEBUG:
            self.stacks.append(text)
        elif "has blocked the event loop" in text:
            self.lines.append(text)
            if "test_watchdog.py:" in text.partition(" has blocked")[0]:
                self.heard.set()

    def about(self, culprit):
        """Return the one line about a culprit: on a busy machine others may be slow, too."""
        (line,) = [line for line in self.lines if culprit in line]
        return line


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
    """Blocks in a task of its own, which knows the request."""

    async def call(self, args, ctx: Context):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_a_task, ctx)


async def in_a_task(ctx):
    block(ctx)


class Waits(Tool):
    """Takes as long, and lets the others run."""

    def call(self, args, ctx: Context):
        ctx.server.looks.wait(PATIENCE)


class Slow(Server, name="slow", version="1", watchdog=THRESHOLD):
    tools = [Blocks, BlocksAtOnce, BlocksInline, BlocksInATask, Waits]

    def __init__(self, barks):
        self.barks = barks

    async def list_prompts(self, cursor, ctx):
        block(ctx)
        return []


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("blocks", "Blocks.call"),
        ("blocks_at_once", "BlocksAtOnce.call"),
        ("blocks_inline", "BlocksInline.call"),
        ("blocks_in_a_task", "in_a_task"),
    ],
)
async def test_the_handler_is_named(barks, name, function):
    """One line has the tool, the function, its place, and the current line."""
    with watching(THRESHOLD):
        async with connect(Slow(barks)) as client:
            await client.call_tool(name)

    line = barks.about(f"tools/call {name}: ")
    assert line.startswith(f"tools/call {name}: {function} (")
    assert "test_watchdog.py:" in line.partition(" has blocked the event loop for ")[0]
    assert "threading.py:" in line  # it waits in Event.wait
    assert line.endswith("; make it a plain def, or call what blocks with trio.to_thread.run_sync")
    assert "\n" not in line


async def test_the_stack_is_there_for_who_debugs(barks):
    """At level DEBUG the line is logged once more, with the stack."""
    logger = logging.getLogger("noizu_mcp")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        with watching(THRESHOLD):
            async with connect(Slow(barks)) as client:
                await client.call_tool("blocks")
    finally:
        logger.setLevel(level)
    assert any("assert ctx.server.barks.heard.wait(PATIENCE)" in stack for stack in barks.stacks)


async def test_a_method_without_a_name(barks):
    """A request without a name is logged with its method."""
    with watching(THRESHOLD):
        async with connect(Slow(barks)) as client:
            await client.list_prompts()

    assert barks.about("prompts/list: ").startswith("prompts/list: Slow.list_prompts (")


async def test_a_task_that_belongs_to_no_request(barks):
    """Other code that blocks the loop is named by its function."""

    async def blocking():
        assert barks.heard.wait(PATIENCE)

    with watching(THRESHOLD):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(blocking)

    name = "test_a_task_that_belongs_to_no_request.<locals>.blocking ("
    assert barks.about("blocking").startswith(name)


def test_a_guest_is_watched(barks):
    """If trio is a guest of asyncio, a blocking asyncio task is named, too."""

    async def host():
        done = asyncio.get_running_loop().create_future()

        async def guest():
            with watching(THRESHOLD):
                blocking.set()
                await ended.wait()

        ended = trio.Event()
        blocking = asyncio.Event()
        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=asyncio.get_running_loop().call_soon_threadsafe,
            done_callback=done.set_result,
        )
        await blocking.wait()
        in_asyncio(barks)
        ended.set()
        (await done).unwrap()

    asyncio.run(host())
    assert barks.about("host").startswith("test_a_guest_is_watched.<locals>.host (")


def in_asyncio(barks):
    assert barks.heard.wait(PATIENCE)


async def test_code_of_this_package_has_a_name_too(barks):
    """If no frame belongs to the user, the innermost one is named."""
    told = []

    def bark(self, about, text, *args):
        told.append(args[0])
        barks.heard.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module, "_BETWEEN", frozenset({__name__.partition(".")[0], "pytest_trio", "threading"})
        )
        patch.setattr(module.ThrottledLog, "warning", bark)
        with watching(THRESHOLD):
            assert barks.heard.wait(PATIENCE)
    assert "Condition.wait (" in told[0]


async def test_each_incident_is_logged_once(barks, monkeypatch):
    """However long it lasts, it is logged once."""
    looks = []
    look = module._Pulse.look

    def counted(self):
        look(self)
        looks.append(1)

    monkeypatch.setattr(module._Pulse, "look", counted)
    more = threading.Event()

    class Long(Tool, inline=True):
        def call(self, args, ctx: Context):
            block(ctx)
            seen = len(looks)
            while len(looks) < seen + 10:
                more.wait(THRESHOLD / 10)

    server = Slow(barks)
    server.tools.add(Long)
    with watching(THRESHOLD):
        async with connect(server) as client:
            await client.call_tool("long")

    barks.about("tools/call long: ")


async def test_a_loop_that_waits_is_not_blocked(barks, monkeypatch):
    """A sync handler in a thread, and an idle loop, are not reported."""
    idle = []
    look = module._Pulse.look
    server = Slow(barks)
    server.looks = threading.Event()

    def counted(self):
        before = len(barks.lines)
        look(self)
        if self._seen is None:
            idle.append(len(barks.lines) - before)
            if len(idle) > 3 * module.LOOKS:
                server.looks.set()

    monkeypatch.setattr(module._Pulse, "look", counted)
    with watching(THRESHOLD):
        async with connect(server) as client:
            await client.call_tool("waits")

    assert {*idle} == {0}


async def test_what_was_read_of_a_loop_that_went_on(barks, monkeypatch):
    """A report that comes too late describes another moment, and is dropped."""
    describe, late = module._describe, threading.Event()

    def slowly(frames, seconds):
        told = describe(frames, seconds)
        pulse = module._pulse_of_test
        pulse._beat()
        late.set()
        return told

    monkeypatch.setattr(module, "_describe", slowly)
    with watching(THRESHOLD):
        monkeypatch.setattr(module, "_pulse_of_test", module._pulse.get(), raising=False)
        assert late.wait(PATIENCE)
    assert not [line for line in barks.lines if "test_what_was_read" in line]


async def test_one_loop_is_watched_once(barks):
    """Several servers in it, or nested blocks, have one instrument and one thread."""
    with watching(THRESHOLD), watching(99.0):
        with watching(THRESHOLD):
            assert len(_threads()) == 1
        block_here = Slow(barks)
        async with connect(block_here) as client:
            await client.call_tool("blocks")
    barks.about("tools/call blocks: ")
    assert _threads() == []


def _threads():
    return [each for each in threading.enumerate() if each.name == "noizu_mcp watchdog"]


def test_one_thread_for_all_loops():
    """It watches each loop, and ends with the last of them."""
    alive = []

    async def watched(enter, leave):
        with watching(THRESHOLD):
            enter.wait(PATIENCE)
            alive.append(len(_threads()))
            leave.wait(PATIENCE)

    both = threading.Barrier(2)
    loops = [threading.Thread(target=trio.run, args=(watched, both, both)) for _ in range(2)]
    for each in loops:
        each.start()
    for each in loops:
        each.join(PATIENCE)
    assert alive == [1, 1]
    assert _threads() == []


async def test_serving_over_http_watches(barks):
    """The option of the server enables it, while it is served."""
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, Slow(barks), port=0))
        async with connect(f"{host.urls[0]}/mcp") as client:
            await client.call_tool("blocks")
        host.stop()
    barks.about("tools/call blocks: ")
    assert _threads() == []


class Unwatched(Server, name="unwatched", version="1", watchdog=None):
    pass


class Usual(Server, name="usual", version="1"):
    pass


async def test_who_is_watched():
    """By default served servers are watched, with a second; not with None, and not in memory."""
    assert Usual().options.watchdog == 1.0
    for server, threads in ((Unwatched(), 0), (Usual(), 1)):
        async with trio.open_nursery() as nursery:
            host = await nursery.start(partial(serve_http, server, port=0))
            assert len(_threads()) == threads
            host.stop()
    async with connect(Usual):
        assert _threads() == []
    with watching(None):
        assert _threads() == []


PROGRAM = f"""
import logging, os, sys, threading
sys.path.insert(0, {ROOT!r})
from noizu_mcp import Server, Toolkit, mcp

class Heard(logging.Handler):
    def emit(self, record):
        print(record.getMessage(), file=sys.stderr)
        heard.set()

heard = threading.Event()
logging.getLogger("noizu_mcp").addHandler(Heard())

class Kit(Toolkit):
    @mcp
    async def block(self) -> bool:
        return heard.wait({PATIENCE})

    @mcp
    async def forks(self) -> int:
        child = os.fork()
        if not child:
            names = [each.name for each in threading.enumerate()]
            os._exit(7 if "noizu_mcp watchdog" not in names else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

class Program(Server, name="program", version="1", watchdog={THRESHOLD}):
    tools = [Kit]

Program().run()
"""


@pytest.mark.slow
def test_a_program_on_stdio(tmp_path):
    """The line is written to stderr; forking and the end are not affected."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    words = [sys.executable, "-m", "noizu_mcp", "call", "--timeout", f"{PATIENCE}"]
    for tool, answer in (("block", "true\n"), ("forks", "7\n")):
        done = subprocess.run(
            [*words, tool, "--", sys.executable, str(file)],
            check=True,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            cwd=ROOT,
        )
        assert done.stdout == answer
        assert ("tools/call block: Kit.block (" in done.stderr) == (tool == "block")


async def test_a_child_forgets(monkeypatch):
    """After a fork nothing of the parent's loops remains."""
    monkeypatch.setattr(module, "_watch", module._watch)
    with watching(THRESHOLD):
        before = module._watch
        module._forget()
        assert module._watch is not before
        module._watch = before


def _in_a_child(found):
    async def watched():
        with watching(THRESHOLD):
            found.put(len(_threads()))

    trio.run(watched)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
async def test_a_child_watches_its_own_loops():
    """A thread does not survive a fork; the child starts its own."""
    fork = multiprocessing.get_context("fork")
    found = fork.SimpleQueue()
    with watching(THRESHOLD):
        child = fork.Process(target=_in_a_new_thread, args=(found,))
        child.start()
        await trio.to_thread.run_sync(child.join)
    assert (child.exitcode, found.get()) == (0, 1)


def _in_a_new_thread(found):
    # trio knows that a loop runs in the thread that was forked.
    thread = threading.Thread(target=_in_a_child, args=(found,))
    thread.start()
    thread.join()


@pytest.mark.parametrize("threshold", [0, -1, float("inf"), float("nan"), True, "1"])
def test_thresholds(threshold):
    """A threshold must be positive seconds, in the option of a server, too."""
    with pytest.raises(ValueError, match="threshold must be seconds above 0, or None, not"):
        watching(threshold).__enter__()
    with pytest.raises(DefinitionError, match=r"watchdog: must be seconds above 0, got"):
        type(Server)("Wrong", (Server,), {}, name="w", version="1", watchdog=threshold)
