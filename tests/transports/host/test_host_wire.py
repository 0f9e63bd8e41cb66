"""Writes in order, sockets that are not ready, and TLS alerts."""

import errno
import socket
import ssl

import httptools
import pytest
import trio
import trio.testing

from noizu_mcp.transports.host import HostOptions
from noizu_mcp.transports.host._wire import ClientSocket


class Hesitant(socket.socket):
    """A socket that is not ready at first, although the system reported it."""

    hesitation = 1

    def recv(self, size):
        if self.hesitation:
            self.hesitation -= 1
            raise BlockingIOError
        return super().recv(size)


@pytest.fixture
async def wires():
    """Make a wire and the peer's socket."""
    opened = []

    def make(**options):
        ours, theirs = socket.socketpair()
        hesitant = Hesitant(ours.family, ours.type, 0, ours.detach())
        hesitant.setblocking(False)
        opened.extend([hesitant, theirs])
        return ClientSocket(hesitant, HostOptions(**options)), theirs

    yield make
    for each in opened:
        each.close()


async def test_a_wire_waits_for_what_is_not_there(wires):
    """If a socket that was reported as readable has no data, the wire waits again."""
    wire, theirs = wires()
    theirs.send(b"1")
    assert await wire.receive() == b"1"
    wire.close()
    assert await wire.receive() == b""


async def test_writes_stay_in_order(wires):
    """A write that comes while another one waits is sent after it."""
    wire, theirs = wires()
    size = 10_000_000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wire.send, b"1" * size)
        await trio.testing.wait_all_tasks_blocked()
        assert (wire.is_busy, wire.is_free, wire.write(b"3")) == (True, False, 0)
        nursery.start_soon(wire.send, b"2")
        await trio.testing.wait_all_tasks_blocked()
        reader = trio.socket.from_stdlib_socket(theirs)
        got = bytearray()
        while len(got) <= size:
            got += await reader.recv(1_000_000)
    assert got == b"1" * size + b"2"


async def test_a_wire_that_breaks_fails_all_writers(wires, autojump_clock):
    """After a timeout no writer raises or waits, and nothing more is written."""
    wire, _theirs = wires(write_timeout=30.0)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(wire.send, b"1" * 10_000_000)
    assert trio.current_time() == pytest.approx(30)
    assert wire.broken
    await wire.send(b"2")
    assert wire.write(b"2") == 0


@pytest.mark.parametrize("how", ["write", "send"])
async def test_a_client_that_has_gone_breaks_the_wire(wires, how):
    """The next write notices it."""
    wire, theirs = wires()
    assert wire.is_free
    theirs.close()
    if how == "write":
        assert wire.write(b"1") == 0
    else:
        await wire.send(b"1")
    assert wire.broken
    assert not wire.is_free


async def test_a_full_wire_takes_nothing_at_once(wires):
    """A write that cannot begin waits; cancelling it breaks the wire."""
    wire, _theirs = wires()
    while wire.write(b"1" * 100_000):
        pass
    assert wire.is_free
    with trio.move_on_after(0.01) as scope:
        await wire.send(b"2")
    assert scope.cancelled_caught
    assert wire.broken
    wire.abort()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda context: context.set_ciphers("AES128-SHA"), "HANDSHAKE_FAILURE"),
        (lambda context: context.set_alpn_protocols(["h9"]), None),
    ],
)
async def test_a_failed_handshake_gets_its_alert(
    serve, connect, echo, certificate, change, reason, caplog
):
    """The client gets a TLS alert, and nothing is logged."""
    host = await serve(echo, certfile=certificate)
    client = await connect(host)
    context = ssl.create_default_context(cafile=certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    change(context)
    stream = trio.SSLStream(client.stream, context, server_hostname="127.0.0.1")
    if reason is None:  # without a common protocol in ALPN the connection is HTTP/1.1
        await stream.do_handshake()
        assert stream.selected_alpn_protocol() is None
    else:
        with pytest.raises(trio.BrokenResourceError) as caught:
            await stream.do_handshake()
        assert reason in caught.value.__cause__.reason
    await trio.aclose_forcefully(stream)
    assert caplog.records == []


async def test_without_descriptors_the_oldest_idle_connection_goes(
    serve, connect, echo, monkeypatch, caplog
):
    """A new client is accepted without waiting for another one to leave."""
    accept, failures = socket.socket.accept, []

    def failing(listener):
        if failures:
            raise failures.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", failing)
    host = await serve(echo)
    first, second = await connect(host), await connect(host)
    for client in (first, second):
        await client.request(b"1")
        assert await client.answer() == (200, b"1")
    failures.append(OSError(errno.EMFILE, "Too many open files"))
    third = await connect(host)
    await third.request(b"3")
    assert await third.answer() == (200, b"3")
    assert await first.rest() == b""
    await second.request(b"2")
    assert await second.answer() == (200, b"2")
    assert caplog.messages == ["no room for another connection: Too many open files"]


async def test_a_head_that_llhttp_does_not_end_is_refused(serve, connect, echo, monkeypatch):
    """A head is refused if llhttp does not end it at the same byte."""

    class Silent:
        def __init__(self, protocol):
            pass

        def feed_data(self, data):
            pass

    monkeypatch.setattr(httptools, "HttpRequestParser", Silent)
    client = await connect(await serve(echo))
    await client.request()
    assert (await client.rest()).startswith(b"HTTP/1.1 400")
