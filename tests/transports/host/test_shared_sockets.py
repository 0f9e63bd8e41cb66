"""Several processes on one listening socket: who accepts, and how one of them leaves."""

import os
import socket
from collections import Counter
from contextlib import AsyncExitStack

import pytest
import trio

from noizu_mcp.transports.host import HostOptions, serve_asgi, serve_hypercorn
from noizu_mcp.workers import Balance, SharedSockets, open_balance

from ...kit.http_client import RawClient


@pytest.fixture
def listener():
    """A socket that listens."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
async def start(nursery, answer, listener):
    """Start a host on the socket, as one of some processes; it answers with its number."""
    with open_balance(3) as file:

        async def start(number, serve=serve_asgi, made=listener):
            async def app(_scope, _receive, send):
                await answer(send, b"%d" % number)

            balance = Balance(file.fileno(), number)
            shared = SharedSockets([os.dup(made.fileno())], balance)
            ended = trio.Event()

            async def run(task_status):
                await serve(app, config=HostOptions(), shared=shared, task_status=task_status)
                ended.set()

            host = await nursery.start(run)
            return host, ended

        yield start


@pytest.fixture
async def connect(listener):
    """Connect to the socket."""
    async with AsyncExitStack() as stack:

        async def connect():
            address = listener.getsockname()
            return RawClient(await stack.enter_async_context(await trio.open_tcp_stream(*address)))

        yield connect


async def ask(client):
    """Send a request; return the number of the host, and the headers."""
    await client.request()
    status, headers, body = await client.whole_answer()
    assert status == 200
    return int(body), headers


async def test_kept_connections_are_shared(start, connect):
    """Each of two hosts gets its part, also where many come at once."""
    for number in range(2):
        await start(number)
    clients = [await connect() for _ in range(16)]
    counts = Counter([(await ask(each))[0] for each in clients])
    assert min(counts[0], counts[1]) >= 3


async def test_short_connections_are_shared(start, connect):
    """They are shared by time, since none is open when the next one comes."""
    for number in range(2):
        await start(number)
    counts = Counter()
    for _ in range(20):
        client = await connect()
        counts[(await ask(client))[0]] += 1
        await client.stream.aclose()
    assert min(counts[0], counts[1]) >= 5


@pytest.mark.parametrize("in_memory", [True, False])
async def test_a_process_that_hangs_is_not_waited_for(autojump_clock, monkeypatch, in_memory):
    """Connections that it should accept are accepted by another one, on any system."""
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    with open_balance(3) as file:
        hanging = Balance(file.fileno(), 2)
        await hanging.wait_turn(0)
        shared = Balance(file.fileno(), 0)
        shared.note(1)
        turns = []
        for _ in range(9):
            turns.append(await shared.wait_turn(1))
            shared.note(turns[-1])
        assert turns == [2, 4, 8, 16, 32, 64, 64, 64, 64]
        shared.note(0)
        assert await shared.wait_turn(1) == 1
        hanging.leave()
        assert await shared.wait_turn(1) == 1


async def test_a_retired_host_answers_what_is_on_its_way(start, connect):
    """It accepts nothing, and each connection ends with the next answer."""
    first, ended = await start(0)
    kept = await connect()
    idle = await connect()
    assert [(await ask(each))[0] for each in (kept, idle)] == [0, 0]
    first.retire()
    await start(1)
    assert (await ask(await connect()))[0] == 1
    number, headers = await ask(kept)
    assert (number, headers["connection"]) == (0, "close")
    assert await kept.rest() == b""
    first.stop()
    assert await idle.rest() == b""
    await ended.wait()
    assert (await ask(await connect()))[0] == 1


async def test_a_path_belongs_to_the_process_that_opened_it(start, tmp_path):
    """The end of another one leaves it."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)
        made.listen()
        host, ended = await start(0, made=made)
        assert (host.urls, host.port) == ((f"unix:{path}",), None)
        async with await trio.open_unix_socket(path) as client:
            assert (await ask(RawClient(client)))[0] == 0
        host.stop()
        await ended.wait()
        async with await trio.open_unix_socket(path):
            pass


async def test_hypercorn_on_a_shared_socket(start, connect):
    """It accepts until it retires."""
    pytest.importorskip("hypercorn")
    host, ended = await start(0, serve=serve_hypercorn)
    client = await connect()
    assert (await ask(client))[0] == 0
    host.retire()
    await start(1)
    assert (await ask(await connect()))[0] == 1
    host.stop()
    await ended.wait()
