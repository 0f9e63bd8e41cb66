"""Many rounds with misbehaving servers: nothing leaks, and clients do not mix up answers."""

import gc
import itertools
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from noizu_mcp import ConnectionClosed, Limits, connect
from noizu_mcp.engine import _dispatcher

from . import test_chaos, test_chaos_http
from .misbehaving_http import misbehaving

ERAS = ("2025-11-25", "2026-07-28")
PATIENCE = 60
#: Number of rounds; a round with a process takes more time.
ROUNDS = {"stdio": 200, "http": 400}
#: Rounds that run concurrently.
SIDE_BY_SIDE = 5
#: Objects that may remain by chance: caches of the interpreter, and the log.
SLACK = 2_000


@asynccontextmanager
async def _stdio():
    yield test_chaos.SERVER, test_chaos


@asynccontextmanager
async def _http():
    async with misbehaving() as server:
        yield server.url, test_chaos_http


SERVERS = {"stdio": _stdio, "http": _http}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    """Shorten the wait for servers that do not read."""
    monkeypatch.setattr(_dispatcher, "LAST_WORDS", test_chaos.NEVER)


async def _one_round(target, chaos, tool, era):
    """Connect, call a tool that misbehaves, and leave."""
    kind, text = chaos.FATES[tool]
    async with connect(target, version=era, limits=Limits(message_size=chaos.MOST)) as client:
        outcome = await chaos.outcome_of(client, tool, "mine", kind)
    assert (outcome == text) if kind is None else (type(outcome) is kind)


async def _all_rounds(target, chaos, rounds):
    """Run several rounds concurrently: most of them wait for a server."""

    async def work():
        for tool, era in rounds:
            await _one_round(target, chaos, tool, era)

    async with trio.open_nursery() as nursery:
        for _ in range(SIDE_BY_SIDE):
            nursery.start_soon(work)
    # Connections of this server end when its tasks have read that the client has gone.
    await trio.testing.wait_all_tasks_blocked(0.05)


def _left():
    """Count what a round could leak: descriptors, threads, tasks, processes, and objects."""
    gc.collect()
    children = "".join(each.read_text() for each in Path("/proc/self/task").glob("*/children"))
    counts = {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "tasks": trio.lowlevel.current_statistics().tasks_living,
        "processes": len(children.split()),
    }
    return counts, len(gc.get_objects())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.parametrize("transport", SERVERS)
@pytest.mark.time_limit(360)
async def test_nothing_is_left_of_many_rounds(transport):
    """Hundreds of rounds of every kind leak no descriptor, thread, task, process or memory."""
    async with SERVERS[transport]() as (target, chaos):
        rounds = list(itertools.product(chaos.FATES, ERAS))
        await _all_rounds(target, chaos, iter(rounds))
        before, objects = _left()
        more_rounds = itertools.islice(itertools.cycle(rounds), ROUNDS[transport])
        await _all_rounds(target, chaos, more_rounds)
        after, more = _left()
    assert {name: count for name, count in after.items() if count > before[name]} == {}
    assert more - objects < SLACK


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", SERVERS)
async def test_clients_do_not_mix_up_answers(transport, era):
    """If servers answer late, twice and in any order, each of two clients gets its own answers."""
    answers = []

    async def call(client, tool, token):
        result = await client.call_tool(tool, {"token": token}, timeout=PATIENCE)
        answers.append((token, result.text))

    async def use(target, name):
        async with connect(target, version=era) as client, trio.open_nursery() as nursery:
            for number in range(30):
                # Groups of three are answered in the reverse order.
                tool = "out_of_order" if number % 2 else "twice"
                nursery.start_soon(call, client, tool, f"{name}-{number}")

    with trio.fail_after(PATIENCE):
        async with SERVERS[transport]() as (target, _), trio.open_nursery() as nursery:
            for name in ("one", "two"):
                nursery.start_soon(use, target, name)
    assert len(answers) == 60
    assert all(token == text for token, text in answers)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", SERVERS)
async def test_a_late_answer_is_dropped(transport, era):
    """The answer to a call that timed out arrives before that of the next one, and is dropped."""
    tool = {"stdio": "late", "http": "half_body_and_hang"}[transport]
    with trio.fail_after(PATIENCE):
        async with SERVERS[transport]() as (target, chaos), connect(target, version=era) as client:
            for number in range(5):
                await chaos.outcome_of(client, tool, "lost", chaos.SILENT[0])
                assert await chaos.outcome_of(client, "echo", f"{number}", None) == f"{number}"


@pytest.mark.parametrize("transport", SERVERS)
async def test_the_end_of_one_server_is_no_matter_of_another(transport):
    """A client goes on while the server of another client dies."""
    async with SERVERS[transport]() as (target, chaos):
        with trio.fail_after(PATIENCE):
            async with connect(target) as client:
                with pytest.raises(ConnectionClosed):
                    async with connect(target) as other:
                        await other.call_tool("leave", {"token": "mine"})
                assert await chaos.outcome_of(client, "echo", "mine", None) == "mine"
