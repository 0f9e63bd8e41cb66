"""Limits by client: shares by address, slots for health checks, open files."""

import resource
import socket
from contextlib import AsyncExitStack, ExitStack

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.transports.host import HostOptions, serve_asgi
from noizu_mcp.transports.host._pool import ConnectionPool

ONE, OTHER, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"
PROBES = ("/healthz", "/readyz")
#: Slots for health checks.
KEPT_PLACES = 8
#: Connections that are accepted in one iteration of the loop.
ACCEPTED_AT_ONCE = 64


class Waiting:
    """An application that answers; `/long` waits for a disconnect, and records it."""

    def __init__(self, answer):
        self.answer = answer
        self.started = 0
        self.left = []

    async def __call__(self, scope, receive, send):
        if scope["path"] == "/long":
            self.started += 1
            await receive()
            assert (await receive())["type"] == "http.disconnect"
            self.left.append(scope["client"][1])
        await self.answer(send, b"ok")


@pytest.fixture
def waiting(answer):
    return Waiting(answer)


@pytest.fixture
def hang(connect, until, waiting):
    """Start calls that wait, from one address; return their clients."""

    async def begin(host, count, address=ONE):
        clients = []
        for _ in range(count):
            clients.append(await connect(host, address=address))
            before = waiting.started
            await clients[-1].request(path="/long")
            await until(lambda before=before: waiting.started > before)
        return clients

    return begin


@pytest.fixture
def ask(connect):
    """Make a request on a new or an existing connection; return the client."""

    async def ask_once(host, address=ONE, client=None, path="/"):
        client = client or await connect(host, address=address)
        await client.request(path=path)
        assert await client.answer() == (200, b"ok")
        return client

    return ask_once


async def _is_turned_away(client):
    await client.request()
    return (await client.rest()).startswith(b"HTTP/1.1 503")


class Rounds(trio.abc.Instrument):
    """Counts the iterations of the loop."""

    count = 0

    def before_io_wait(self, timeout):
        self.count += 1


async def test_many_connections_are_accepted_together(serve, waiting, until):
    """A busy loop accepts several connections in each iteration."""
    host = await serve(waiting)
    rounds, count = Rounds(), 3 * ACCEPTED_AT_ONCE // 2
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(("127.0.0.1", host.port)))
        trio.lowlevel.add_instrument(rounds)
        await until(lambda: host.connections == count)
        trio.lowlevel.remove_instrument(rounds)
    assert rounds.count < count


async def test_a_client_whose_calls_hang_makes_room(serve, hang, ask, until, waiting):
    """Another address gets the slot of the oldest call, whose application gets a disconnect."""
    host = await serve(waiting, max_connections=3)
    oldest, *_ = await hang(host, 3)
    port = oldest.stream.socket.getsockname()[1]
    await ask(host, OTHER)
    assert await oldest.rest() == b""
    await until(lambda: waiting.left == [port])
    assert host.connections == 3


@pytest.mark.parametrize("used", [True, False])
async def test_the_address_with_the_most_loses_before_one_with_idle_ones(
    serve, connect, hang, ask, waiting, used
):
    """Another client gets a second and a third slot from it, and keeps its idle first one."""
    host = await serve(waiting, max_connections=8)
    busy = await hang(host, 8)
    others = []
    for _ in range(3):
        others.append(await connect(host, address=OTHER))
        if used:
            await ask(host, client=others[-1])
    await ask(host, THIRD)
    for each in others:
        await ask(host, client=each)
    assert [await each.rest() for each in busy[:4]] == [b""] * 4
    assert host.connections == 8


async def test_an_application_that_does_not_listen_hears_of_it_later(
    serve, connect, endless, autojump_clock
):
    """A call that loses its slot before the host watches its client ends with the host."""
    host = await serve(endless, max_connections=2)
    clients = [await connect(host) for _ in range(2)]
    for client in clients:
        await client.request()
    await trio.testing.wait_all_tasks_blocked()
    await (await connect(host, address=OTHER)).request()
    assert await clients[0].rest() == b""
    await trio.sleep(10)
    host.stop()
    await host.ended.wait()
    assert endless.cancelled == 3


async def test_an_address_does_not_take_the_places_of_those_with_fewer(
    serve, connect, hang, ask, waiting
):
    """If all of its own calls hang, its next one is refused; idle connections of others stay."""
    host = await serve(waiting, max_connections=3)
    other = await ask(host, OTHER)
    await hang(host, 2)
    assert await _is_turned_away(await connect(host))
    await ask(host, client=other)


async def test_the_address_with_the_most_loses_an_idle_one_first(serve, hang, ask, waiting):
    """Its oldest idle connection is closed, before older ones of others and before busy ones."""
    host = await serve(waiting, max_connections=4)
    other = await ask(host, OTHER)
    [busy] = await hang(host, 1)
    idle = [await ask(host) for _ in range(2)]
    await ask(host, THIRD)
    assert await idle[0].rest() == b""
    for client in (other, idle[1]):
        await ask(host, client=client)
    await trio.testing.wait_all_tasks_blocked()
    assert waiting.left == []
    await busy.stream.aclose()


async def test_equal_shares_keep_their_busy_connections(serve, connect, hang, waiting):
    """Otherwise two addresses would take the same slot from each other for ever."""
    host = await serve(waiting, max_connections=4)
    await hang(host, 2)
    await hang(host, 2, OTHER)
    await hang(host, 1, THIRD)
    for address in (ONE, OTHER, THIRD):
        assert await _is_turned_away(await connect(host, address=address))
    assert host.connections == 4


async def test_clients_of_a_unix_socket_are_one_address(serve, tmp_path, answer):
    """The connection that was idle for longest is closed."""

    async def app(scope, receive, send):
        await answer(send)

    path = str(tmp_path / "mcp.sock")
    await serve(app, uds=path, max_connections=2)
    async with AsyncExitStack() as stack:
        streams = []
        for _ in range(3):
            streams.append(await stack.enter_async_context(await trio.open_unix_socket(path)))
            await streams[-1].send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await streams[-1].receive_some()).startswith(b"HTTP/1.1 200")
        assert await streams[0].receive_some() == b""


async def test_connections_of_a_trusted_proxy_count_for_themselves(serve, connect, hang, waiting):
    """A proxy carries many clients, so it loses none to an address with fewer connections."""
    host = await serve(waiting, max_connections=3, forwarded_allow_ips=[ONE])
    await hang(host, 3)
    assert await _is_turned_away(await connect(host, address=OTHER))
    assert waiting.left == []


class _Counted:
    """A connection of an address."""

    dropped = False

    def __init__(self, address):
        self.address = address

    def drop(self):
        self.dropped = True

    def watch(self):
        raise AssertionError


@settings(deadline=None)  # starts a loop
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["idle", "busy", "owing", "end"]))),
)
def test_shares(limit, steps):
    """An address with fewer connections loses none; one with two more loses its own first."""

    async def run():
        pool, live = ConnectionPool(limit, 75.0), []

        def count(address):
            return sum(each.address == address for each in live)

        for address, state in steps:
            if state == "end":
                for each in [each for each in live if each.address == address]:
                    live.remove(each)
                    pool.remove(each)
                continue
            own, most = count(address), max((count(each.address) for each in live), default=0)
            counts = {each: count(each.address) for each in live}
            found = pool.make_room(address)
            dropped = [each for each in live if each.dropped]
            assert len(dropped) == (found and len(live) == limit)
            assert all(counts[each] >= own for each in dropped)
            assert most < own + 2 or all(counts[each] == most for each in dropped)
            assert found or (len(live) == limit and most < own + 2)
            for each in dropped:
                live.remove(each)
            if found:
                live.append(_Counted(address))
                pool.add(live[-1], address)
                pool.begin(live[-1])
                if state != "idle":
                    del pool.idle[live[-1]]
                if state == "owing":
                    pool.owing[live[-1]] = trio.current_time() - 2
            assert len(pool) == len(live) <= limit

    trio.run(run)


async def test_no_busy_connection_is_closed_while_a_new_one_may_make_room():
    """A connection that was accepted in this iteration may turn out to be idle."""
    pool = ConnectionPool(3, 75.0)
    made = [_Counted(ONE) for _ in range(3)]
    for each in made:
        pool.add(each, ONE)
    for each in made[:2]:
        pool.begin(each)
        del pool.idle[each]
    assert not pool.make_room(OTHER)
    pool.begin(made[2])
    assert pool.make_room(OTHER)
    assert [each.dropped for each in made] == [False, False, True]


async def test_health_checks_are_answered_while_every_place_is_busy(
    serve, connect, hang, ask, waiting, caplog
):
    """Other requests on the reserved slots are refused."""
    host = await serve(waiting, max_connections=2, probes=PROBES)
    await hang(host, 2)
    for path in PROBES:
        client = await ask(host, path=path)
        assert await client.rest() == b""
    assert await _is_turned_away(await connect(host))
    assert caplog.messages == ["connections are turned away: max_connections=2 are busy"]


@pytest.mark.parametrize("data", [b"", b"GET /healthz HT", b"POST / HTTP/1.1\r\nHost: x\r\n"])
async def test_no_client_keeps_the_reserved_slots(
    serve, connect, hang, ask, waiting, data, autojump_clock
):
    """A client without a complete request loses a reserved slot to the next, or after a while."""
    host = await serve(waiting, max_connections=1, probes=PROBES)
    await hang(host, 1)
    silent = [await connect(host) for _ in range(2 * KEPT_PLACES)]
    for each in silent:
        await each.send(data or b"\r")
    await ask(host, path="/healthz")
    ends = [await each.rest() for each in silent]
    assert ends[0] == b""
    assert all(end == b"" or end.startswith(b"HTTP/1.1 408") for end in ends)


@pytest.fixture
def probe_at_once():
    """Start health checks from many addresses in one iteration; return the sockets."""
    with ExitStack() as stack:

        def probe(host):
            probes = []
            for number in range(8 * KEPT_PLACES):
                source, target = (f"127.0.1.{1 + number}", 0), ("127.0.0.1", host.port)
                each = stack.enter_context(socket.create_connection(target, source_address=source))
                each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                each.setblocking(False)
                probes.append(trio.socket.from_stdlib_socket(each))
            return probes

        yield probe


async def test_a_health_check_is_not_closed_before_it_is_read(serve, hang, waiting, probe_at_once):
    """It is read even if one iteration has more of them than reserved slots."""
    host = await serve(waiting, max_connections=1, probes=PROBES)
    await hang(host, 1)
    with trio.fail_after(60):
        for each in probe_at_once(host):
            assert (await each.recv(1000)).startswith(b"HTTP/1.1 200")


async def test_connections_that_wait_for_a_place_at_the_end_are_closed(
    serve, hang, waiting, probe_at_once
):
    """If the host stops while more wait than have slots, each is answered or closed."""
    host = await serve(waiting, max_connections=1, probes=PROBES)
    await hang(host, 1)
    probes = probe_at_once(host)
    host.stop()
    answers = []
    with trio.fail_after(60):
        for each in probes:
            try:
                answers.append(await each.recv(1000))
            except ConnectionResetError:
                answers.append(b"")
    assert {answer[:12] for answer in answers} <= {b"", b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert answers[-1] == b""


async def test_health_checks_that_hang_are_bounded(serve, connect, endless):
    """If the reserved slots are full, the next connection is closed."""
    host = await serve(endless, max_connections=1, probes=PROBES)
    for _ in range(1 + KEPT_PLACES):
        await (await connect(host)).request(path="/healthz")
        await trio.testing.wait_all_tasks_blocked(0.01)
    for path in PROBES:
        client = await connect(host)
        await client.request(path=path)
        assert await client.rest() == b""
    assert host.connections == 1


async def test_a_port_for_health_checks_alone(serve, connect, hang, ask, waiting):
    """It answers while the main port is full, until the end, and answers nothing else."""
    going_on, stopping = trio.Event(), trio.Event()

    async def wait():
        stopping.set()
        await going_on.wait()

    host = await serve(
        waiting, max_connections=1, probes=PROBES, health_port=0, stopping=wait, health_host=OTHER
    )
    [url] = host.health_urls
    assert url.startswith(f"http://{OTHER}:")

    async def ask_health(path):
        stream = await trio.open_tcp_stream(OTHER, int(url.rpartition(":")[2]))
        async with stream:
            await stream.send_all(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path)
            return (await stream.receive_some())[:13]

    await hang(host, 1)
    assert await ask_health(b"/healthz") == b"HTTP/1.1 200 "
    assert await ask_health(b"/") == b"HTTP/1.1 404 "
    host.stop()
    await stopping.wait()
    assert await ask_health(b"/readyz") == b"HTTP/1.1 200 "
    going_on.set()
    await host.ended.wait()
    with pytest.raises(OSError, match="connect"):
        await ask_health(b"/readyz")


async def test_a_health_port_that_is_taken_is_one_line(serve, waiting):
    """A health port that is taken is one line of error, and nothing is served."""
    host = await serve(waiting)
    with pytest.raises(OSError, match=rf"cannot listen on {host.urls[0]}: address already in use"):
        await serve_asgi(waiting, port=0, config=HostOptions(health_port=host.port))


@pytest.mark.parametrize(
    ("limits", "allowed", "raised", "line"),
    [
        ((2000, 4000), 1000, None, False),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 1000, None, False),
        ((256, 4000), 1000, 1128, False),
        ((256, resource.RLIM_INFINITY), 1000, 1128, False),
        ((256, 1000), 872, 1000, True),
        ((64, 64), 32, None, True),
    ],
)
async def test_connections_follow_the_limit_of_open_files(
    serve, waiting, monkeypatch, caplog, limits, allowed, raised, line
):
    """The soft limit is raised as far as allowed; if that is not enough, one line says so."""
    changes = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, new: changes.append(new[0]))
    await serve(waiting)
    assert changes == ([] if raised is None else [raised])
    expected = f"max_connections=1000 needs 1128 open files, but the limit is {raised or 64}"
    assert [each.startswith(expected) for each in caplog.messages] == [True] * line
    assert all(each.endswith(f"(ulimit -n): {allowed} at most") for each in caplog.messages)


async def test_a_system_that_refuses_more_files_is_believed(serve, waiting, monkeypatch, caplog):
    """If the system refuses to raise the limit, it stays as it is."""

    def refuse(*_args):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    await serve(waiting)
    assert caplog.messages == [
        "max_connections=1000 needs 1128 open files, but the limit is 256 (ulimit -n): 128 at most"
    ]
