"""`Network`: delays, reordering, and broken and half-closed connections for a client."""

import asyncio
import socket
import struct
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from noizu_mcp import (
    ConnectionClosed,
    Context,
    RequestTimeout,
    Server,
    Stdio,
    SyncClient,
    TransportError,
    aio,
    connect,
)
from noizu_mcp.testing import Network, Transcript, serve_over
from noizu_mcp.transports import LineStream

REVISIONS = ("2025-11-25", "2026-07-28")


async def echo(number: int, ctx: Context) -> int:
    """Return the number."""
    await ctx.report_progress(number)
    return number


class Demo(Server, name="demo", version="1.0.0"):
    tools = [echo]


async def call_many(client: Any, count: int) -> dict[int, object]:
    """Call a tool many times at once, and record how each call ends."""
    endings: dict[int, object] = {}

    async def call(number: int) -> None:
        try:
            result = await client.call_tool("echo", {"number": number})
        except (ConnectionClosed, TransportError, RequestTimeout) as error:
            endings[number] = type(error)
        else:
            endings[number] = int(result.content[0].text)

    async with trio.open_nursery() as nursery:
        for number in range(1, count + 1):
            nursery.start_soon(call, number)
    return endings


async def talk(network: Network, version: str, count: int = 5) -> tuple[Any, Transcript]:
    """Use a server through a network; return how each call ended, and all messages."""
    transcript = Transcript()
    try:
        async with connect(
            network.between(Demo), version=version, tap=transcript, probe_timeout=60
        ) as client:
            endings: object = await call_many(client, count)
    except (ConnectionClosed, TransportError) as error:
        endings = type(error)
    return endings, transcript


def virtually(function: Any, *args: Any) -> Any:
    return trio.run(function, *args, clock=MockClock(autojump_threshold=0))


@settings(max_examples=30)  # each uses a connection
@given(
    seed=st.integers(0, 99),
    most=st.sampled_from([0.0, 3.0]),
    reorder=st.booleans(),
    drop=st.sampled_from([0.0, 0.1]),
    version=st.sampled_from(REVISIONS),
)
def test_each_call_ends_once(
    seed: int, most: float, reorder: bool, drop: float, version: str
) -> None:
    """A call ends with its own answer, or with a closed connection."""
    network = Network(seed, delay=(0.0, most), reorder=reorder, drop=drop)
    endings, _ = virtually(talk, network, version)

    if isinstance(endings, dict):
        assert endings.keys() == {1, 2, 3, 4, 5}
        assert all(end in (number, ConnectionClosed) for number, end in endings.items())
    else:
        assert issubclass(endings, TransportError | ConnectionClosed)
    if not drop:
        assert endings == {number: number for number in range(1, 6)}


def test_a_seed_gives_the_same_faults_again() -> None:
    """Sequential calls arrive at the same times, and break at the same message."""

    async def session(seed: int) -> list[float]:
        arrivals: list[float] = []
        network = Network(seed, delay=(0.0, 1.0), drop=0.05)
        with suppress(ConnectionClosed, TransportError):
            async with connect(network.between(Demo), version="2026-07-28") as client:
                while True:
                    await client.call_tool("echo", {"number": 1})
                    arrivals.append(trio.current_time())
        return [each - arrivals[0] for each in arrivals]

    first = [virtually(session, seed) for seed in range(3)]

    assert first == [virtually(session, seed) for seed in range(3)]
    assert first[0] != first[1]


def test_answers_overtake_each_other() -> None:
    """With `reorder` and some seeds answers arrive in another order, without it never."""

    def are_in_order(seed: int, reorder: bool) -> bool:
        network = Network(seed, delay=(0.0, 1.0), reorder=reorder)
        _, transcript = virtually(talk, network, "2026-07-28")
        asked = [each["id"] for each in transcript.sent("tools/call")]
        answers = [each["id"] for each in transcript.received() if each.get("id") in asked]
        return asked == answers

    assert not all(are_in_order(seed, reorder=True) for seed in range(5))
    assert all(are_in_order(seed, reorder=False) for seed in range(5))


async def test_time_passes(autojump_clock: MockClock) -> None:
    """A message takes its delay, in each direction."""
    async with connect(Network(delay=(2.0, 2.0)).between(Demo)) as client:
        began = trio.current_time()
        await client.ping() if client.protocol_version < "2026" else await client.list_tools()

        assert trio.current_time() - began == 4.0


async def test_cut_breaks_the_connection(autojump_clock: MockClock) -> None:
    """Open calls fail, and so do later ones."""
    network = Network(delay=(1.0, 1.0))
    async with connect(network.between(Demo)) as client:
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(ConnectionClosed):
                    await client.call_tool("echo", {"number": 1})

            nursery.start_soon(call)
            await trio.sleep(1.5)
            network.cut()
        with pytest.raises(ConnectionClosed):
            await client.call_tool("echo", {"number": 2})
    network.cut()  # nothing remains to be cut


@pytest.mark.parametrize("version", REVISIONS)
async def test_a_server_that_sends_no_more(autojump_clock: MockClock, version: str) -> None:
    """Its sent messages arrive, and then EOF."""
    network = Network(delay=(1.0, 1.0))
    async with connect(network.between(Demo), version=version) as client:
        async with trio.open_nursery() as nursery:
            answers: list[int] = []

            async def call(number: int) -> None:
                result = await client.call_tool("echo", {"number": number})
                answers.append(int(result.content[0].text))

            async def refused(number: int) -> None:
                with pytest.raises(ConnectionClosed):
                    await call(number)

            nursery.start_soon(call, 1)
            await trio.sleep(0.5)
            nursery.start_soon(refused, 2)
            await trio.sleep(0.8)
            network.half_close("server")
        assert answers == [1]


async def test_a_client_that_sends_no_more(autojump_clock: MockClock) -> None:
    """The server answers what has arrived, and ends."""
    network = Network(delay=(1.0, 1.0))
    async with connect(network.between(Demo)) as client:
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                result = await client.call_tool("echo", {"number": 1})
                assert result.content[0].text == "1"

            nursery.start_soon(call)
            await trio.sleep(0.5)
            network.half_close("client")
        with pytest.raises(ConnectionClosed):
            await client.call_tool("echo", {"number": 2})


@pytest.mark.parametrize("version", REVISIONS)
async def test_pieces_over_http_arrive_whole(version: str) -> None:
    """The bytes may be split anywhere, and every answer is right."""
    network = Network(7, delay=(0.0, 0.001))
    target = network.between(serve_over(Demo, "http"))
    async with connect(target, version=version) as client:
        assert await call_many(client, 4) == {1: 1, 2: 2, 3: 3, 4: 4}


@pytest.mark.slow  # a client waits before it resumes a broken stream
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("version", REVISIONS)
async def test_each_call_ends_once_over_http(version: str, seed: int) -> None:
    """With broken connections a call ends with its own answer, or with one exception."""
    network = Network(seed, delay=(0.0, 0.002), drop=0.03)
    with trio.fail_after(60), suppress(ConnectionClosed, TransportError):
        async with connect(
            network.between(serve_over(Demo, "http")), version=version, timeout=10
        ) as client:
            endings = await call_many(client, 8)
            assert endings.keys() == {*range(1, 9)}
            closed = (ConnectionClosed, TransportError, RequestTimeout)
            assert all(end == number or end in closed for number, end in endings.items())


@pytest.mark.parametrize("version", REVISIONS)
async def test_a_client_comes_back_over_http(version: str) -> None:
    """Open calls of a broken connection fail; the next call has a new connection."""
    network = Network()
    async with connect(network.between(serve_over(Demo, "http")), version=version) as client:
        for side in ("client", "server"):
            network.half_close(side)
            network.cut()
            # The first call may use an idle connection that has just ended.
            endings = [await call_many(client, 1) for _ in range(3)]
            assert endings[-1] == {1: 1}


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_network_that_is_down_over_http(version: str) -> None:
    """Every call fails until it is up again; then the same client can be used."""
    network = Network()
    async with connect(network.between(serve_over(Demo, "http")), version=version) as client:
        network.down()
        for _ in range(3):
            with pytest.raises((ConnectionClosed, TransportError)):
                await client.call_tool("echo", {"number": 1})
        network.up()
        assert await call_many(client, 1) == {1: 1}


async def test_a_network_that_is_down_in_memory() -> None:
    """The connection ends, and a new one fails until the network is up again."""
    network = Network()
    async with connect(network.between(Demo)) as client:
        network.down()
        with pytest.raises(ConnectionClosed):
            await client.call_tool("echo", {"number": 1})
    with pytest.raises(TransportError, match="the network is down"):
        async with connect(network.between(Demo)):
            pass
    network.up()
    async with connect(network.between(Demo)) as client:
        assert await call_many(client, 1) == {1: 1}


async def test_all_is_dropped_over_http() -> None:
    """If the network breaks every connection, `connect` raises."""
    network = Network(drop=1.0)
    with pytest.raises(TransportError, match=r"http://127\.0\.0\.1"):
        async with connect(network.between(serve_over(Demo, "http"))):
            pass


async def test_a_server_that_is_not_there() -> None:
    """The relay accepts the connection, and closes it."""
    async with Network().between("http://127.0.0.1:1/mcp") as reached:
        with pytest.raises(TransportError):
            async with connect(reached):
                pass


async def test_a_server_that_resets_its_connections() -> None:
    """The relay resets the connection of the client, too."""

    async def reset(stream: trio.SocketStream) -> None:
        await stream.receive_some(1)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, reset, 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        port = listener.socket.getsockname()[1]
        with pytest.raises(TransportError):
            async with connect(Network().between(f"http://127.0.0.1:{port}/mcp")):
                pass
        nursery.cancel_scope.cancel()


def test_plain_code_uses_it() -> None:
    """The link uses the loop of a `SyncClient`; any thread may break it."""
    network = Network(1, reorder=True)
    with SyncClient(network.between(Demo())) as client:
        assert client.call_tool("echo", {"number": 1}).content[0].text == "1"
        network.cut()
        client.wait_closed()
        with pytest.raises(ConnectionClosed):
            client.call_tool("echo", {"number": 1})


def test_asyncio_uses_it() -> None:
    """It works for asyncio tasks, though the link has its own trio loop."""
    network = Network()

    async def main() -> None:
        async with aio.connect(network.between(Demo)) as client:
            network.half_close("server")
            await client.wait_closed()

    asyncio.run(main())


async def test_targets_without_a_network_are_refused() -> None:
    """Commands and streams have no network in between; TLS cannot be relayed."""
    network = Network()
    for target in (Stdio(sys.executable), serve_over(Demo, "stdio")):
        with pytest.raises(TransportError, match="no network can stand before"):
            async with connect(network.between(target)) as client:
                assert not isinstance(client, LineStream)
    with pytest.raises(TransportError, match="its certificate is for its own host"):
        async with connect(network.between("https://example.com/mcp")):
            pass


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delay": (2.0, 1.0)}, r"delay must be \(least, most\) in seconds"),
        ({"delay": (-1.0, 1.0)}, "delay must be"),
        ({"drop": 1.5}, "drop must be a probability"),
    ],
)
def test_settings_out_of_range_are_refused(options: Any, text: str) -> None:
    """They are refused when the network is made."""
    with pytest.raises(ValueError, match=text):
        Network(**options)


async def test_a_full_link_holds_the_sender_up(autojump_clock: MockClock) -> None:
    """A server that sends more than the capacity waits, and loses nothing."""

    async def flood(ctx: Context) -> str:
        """Send much."""
        for number in range(2500):
            await ctx.report_progress(number)
        return "done"

    class Flooding(Server, name="flooding", version="1"):
        tools = [flood]

    seen: list[float] = []
    async with connect(Network(delay=(0.5, 0.5)).between(Flooding)) as client:
        result = await client.call_tool("flood", progress=lambda each: seen.append(each.progress))

    assert result.content[0].text == "done"
    assert seen == sorted(seen)


async def test_bytes_that_are_no_request_travel_too(autojump_clock: MockClock) -> None:
    """Bytes of a raw client arrive in order, and are answered."""
    async with Network(3, delay=(0.0, 2.0), reorder=True).between(Demo) as stream:
        await stream.send([b"no JSON", b"[3]", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
        answers = [(await stream.receive())[0].data for _ in range(3)]

    assert sum(b'"error"' in each for each in answers) >= 2
