"""The parts of a connection by themselves: what waits to be received, and the wire."""

import logging
import socket
import sys
from math import inf

import pytest
import trio
import trio.testing

from noizu_mcp.transports.host import serve_asgi
from noizu_mcp.transports.host._config import HostConfig
from noizu_mcp.transports.host._inbox import Inbox
from noizu_mcp.transports.host._options import HostOptions
from noizu_mcp.transports.host._wire import Wire


def _body(data, *, more=True):
    return {"type": "http.request", "body": data, "more_body": more}


async def _nothing():
    pass


@pytest.fixture
def inbox():
    """Make an inbox; gives it with what it says was taken."""

    def make(limit=inf):
        taken = []

        async def take(size):
            taken.append(size)

        made = Inbox(limit=limit, patience=30.0, wanted=_nothing, taken=take, late=_nothing)
        return made, taken

    return make


async def test_pieces_are_joined(inbox):
    """What has come until the application asks is one piece."""
    made, taken = inbox()
    for piece in (b"a", b"", b"b"):
        await made.put(_body(piece))
    assert await made.receive() == _body(b"ab")
    await made.put(_body(b"", more=False))
    assert await made.receive() == _body(b"", more=False)
    assert taken == [2, 0]


async def test_a_whole_body_comes_before_the_disconnect(inbox):
    """A client that sends and goes is heard; half a body is not."""
    made, _ = inbox()
    await made.put(_body(b"all", more=False))
    await made.put({"type": "http.disconnect"})
    assert await made.receive() == _body(b"all", more=False)
    assert await made.receive() == {"type": "http.disconnect"}
    made, _ = inbox()
    await made.put(_body(b"half"))
    await made.put({"type": "http.disconnect"})
    assert await made.receive() == {"type": "http.disconnect"}


async def test_nothing_is_kept_after_the_end(inbox):
    """What comes for an application that has ended is dropped, and counted as taken."""
    made, taken = inbox()
    await made.close()
    await made.put(_body(b"late"))
    assert taken == [0, 4]


async def test_several_tasks_may_wait(inbox):
    """Each of them hears of the disconnect."""
    made, _ = inbox()
    seen = []

    async def receive():
        seen.append(await made.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        await made.put({"type": "http.disconnect"})
    assert seen == [{"type": "http.disconnect"}] * 2


@pytest.mark.parametrize("end", ["receive", "close", "disconnect"])
async def test_a_full_inbox_holds_up_whoever_fills_it(inbox, end):
    """Until something is taken, or nothing will be any more."""
    made, _ = inbox(limit=3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.put, _body(b"much"))
        await trio.testing.wait_all_tasks_blocked()
        assert nursery.child_tasks
        if end == "disconnect":
            await made.put({"type": "http.disconnect"})
        else:
            await getattr(made, end)()


class Hesitant(socket.socket):
    """A socket that is not ready at first, although the system says so."""

    hesitation = 1

    def recv(self, size):
        if self.hesitation:
            self.hesitation -= 1
            raise BlockingIOError
        return super().recv(size)


@pytest.fixture
def wires():
    """Make a wire and the socket at its other end."""
    opened = []

    def make(**options):
        ours, theirs = socket.socketpair()
        hesitant = Hesitant(ours.family, ours.type, 0, ours.detach())
        hesitant.setblocking(False)
        opened.extend([hesitant, theirs])
        return Wire(hesitant, HostOptions(**options)), theirs

    yield make
    for each in opened:
        each.close()


async def test_a_wire_waits_for_what_is_not_there(wires):
    """A socket that was said to be readable, and is not, is asked again."""
    wire, theirs = wires()
    theirs.send(b"1")
    assert await wire.receive() == b"1"
    wire.close()
    assert await wire.receive() == b""


async def _fill(wire):
    """Write until the system takes nothing more; the writer waits in the nursery of the test."""
    await wire.send(b"1" * 10_000_000)


async def test_writes_stay_in_order(wires):
    """Whoever writes while another one waits, waits behind it."""
    wire, theirs = wires()
    size = 10_000_000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_fill, wire)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(wire.send, b"2")
        await trio.testing.wait_all_tasks_blocked()
        reader = trio.socket.from_stdlib_socket(theirs)
        got = bytearray()
        while len(got) <= size:
            got += await reader.recv(1_000_000)
    assert got == b"1" * size + b"2"


async def test_a_wire_that_breaks_fails_all_writers(wires, autojump_clock):
    """None of them raises, none waits on, and nothing is written any more."""
    wire, _theirs = wires(write_timeout=30.0)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(_fill, wire)
    assert trio.current_time() == pytest.approx(30)
    assert wire.broken
    await wire.send(b"2")


async def test_a_wire_that_breaks_takes_nothing_at_once(wires):
    """It is found broken when the rest is sent."""
    wire, theirs = wires()
    assert wire.is_free
    theirs.close()
    assert wire.write(b"1") == 0
    await wire.send(b"1")
    assert wire.broken
    assert not wire.is_free


async def test_a_full_wire_takes_nothing_at_once(wires):
    """A write that cannot begin waits, too; giving it up breaks the wire."""
    wire, theirs = wires()
    theirs.setblocking(False)
    while wire._send_nowait(b"1" * 100_000):
        pass
    with trio.move_on_after(0.01) as scope:
        await wire.send(b"2")
    assert scope.cancelled_caught
    assert wire.broken
    wire.abort()


def test_no_header_is_logged_by_the_codec():
    """Whoever logs everything must not find tokens in it; who wants less keeps it."""
    codec = logging.getLogger("hpack")
    before = codec.level
    try:
        for level, kept in ((logging.NOTSET, logging.INFO), (logging.ERROR, logging.ERROR)):
            codec.setLevel(level)
            HostConfig(HostOptions())
            assert codec.level == kept
    finally:
        codec.setLevel(before)


async def test_the_library_may_be_missing(monkeypatch):
    """Then the message says what to install, before anything is opened."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.transports.host._hypercorn", None)
    monkeypatch.delattr("noizu_mcp.transports.host._hypercorn", raising=False)

    with pytest.raises(ImportError, match=r"needs hypercorn: pip install 'noizu-mcp\[http\]'"):
        await serve_asgi(None, lifespan=None)
