"""The alternative host: an application on hypercorn, through its documented interface."""

import logging
import ssl
import sys
from contextlib import asynccontextmanager
from functools import partial

import h2.connection
import h2.events
import pytest
import trio

from noizu_mcp.engine import single_failure
from noizu_mcp.transports.host import HostOptions, ListenError, serve_hypercorn


@pytest.fixture
def serve(nursery):
    """Start hypercorn for an application; return the host with its `ended` event."""

    async def start(app, *, lifespan=None, config=None, **given):
        ended = trio.Event()

        async def run(task_status):
            with single_failure():
                await serve_hypercorn(
                    app,
                    port=0,
                    lifespan=lifespan,
                    config=config,
                    task_status=task_status,
                    **given,
                )
            ended.set()

        return await nursery.start(run), ended

    return start


async def _end(host, ended):
    host.stop()
    with trio.fail_after(60):
        await ended.wait()


async def test_requests_are_answered(serve, connect, echo):
    """HTTP/1.1 works as on the other host, and the shutdown is orderly."""
    log = []

    @asynccontextmanager
    async def lifespan():
        log.append("enter")
        yield
        log.append("leave")

    async def stopping():
        log.append("stopping")

    host, ended = await serve(
        echo, lifespan=lifespan(), leaving=partial(log.append, "leaving"), stopping=stopping
    )
    assert host.urls == (f"http://127.0.0.1:{host.port}",)
    client = await connect(host)
    await client.request(b"1", "Connection: close")
    assert await client.answer() == (200, b"1")
    await _end(host, ended)
    assert log == ["enter", "leaving", "stopping", "leave"]


async def test_http_2_over_tls(serve, connect, echo, certificate):
    """A client that offers HTTP/2 uses it."""
    host, ended = await serve(echo, config=HostOptions(certfile=certificate))
    assert host.urls == (f"https://127.0.0.1:{host.port}",)
    context = ssl.create_default_context(cafile=certificate)
    context.set_alpn_protocols(["h2"])
    plain = (await connect(host)).stream
    stream = trio.SSLStream(plain, context, server_hostname="127.0.0.1", https_compatible=True)
    await stream.do_handshake()
    assert stream.selected_alpn_protocol() == "h2"
    client = h2.connection.H2Connection()
    client.initiate_connection()
    names = (":method", "POST"), (":scheme", "https"), (":authority", "x"), (":path", "/")
    client.send_headers(1, names)
    client.send_data(1, b"hello", end_stream=True)
    events = []
    with trio.fail_after(60):
        while not any(isinstance(each, h2.events.StreamEnded) for each in events):
            await stream.send_all(client.data_to_send() or b"")
            events += client.receive_data(await stream.receive_some())
    parts = [each.data for each in events if isinstance(each, h2.events.DataReceived)]
    assert b"".join(parts) == b"hello"
    await trio.aclose_forcefully(stream)
    await _end(host, ended)


async def test_a_unix_socket(serve, echo, tmp_path):
    """The socket has the path and the mode of the options, and is removed at the end."""
    path = tmp_path / "mcp.sock"
    host, ended = await serve(echo, config=HostOptions(uds=str(path)))
    assert (host.urls, host.port) == ((f"unix:{path}",), None)
    async with await trio.open_unix_socket(path) as stream:
        await stream.send_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1")
        with trio.fail_after(60):
            assert b"200" in await stream.receive_some()
    await _end(host, ended)
    assert not path.exists()


async def test_a_lifespan_that_does_not_end_is_cancelled(serve, echo, caplog):
    """The end of the lifespan has a timeout."""

    @asynccontextmanager
    async def lifespan():
        yield
        await trio.sleep_forever()

    host, ended = await serve(echo, lifespan=lifespan(), config=HostOptions(lifespan_timeout=0.01))
    await _end(host, ended)
    assert caplog.messages == ["leaving the lifespan took too long and was cancelled"]


async def test_where_it_cannot_listen_is_one_line(serve, echo):
    """The error is the same as that of our own host."""
    host, ended = await serve(echo)
    with pytest.raises(ListenError, match=f"cannot listen on {host.urls[0]}: address already"):
        await serve_hypercorn(echo, port=host.port)
    with pytest.raises(ListenError, match="cannot set up TLS: cannot read /nowhere"):
        await serve_hypercorn(echo, port=0, config=HostOptions(certfile="/nowhere"))
    await _end(host, ended)


async def test_no_header_is_logged_by_the_codec(serve, echo):
    """A log at DEBUG must not show tokens; a level that shows less is kept."""
    codec = logging.getLogger("hpack")
    before = codec.level
    try:
        for level, kept in ((logging.NOTSET, logging.INFO), (logging.ERROR, logging.ERROR)):
            codec.setLevel(level)
            await _end(*await serve(echo))
            assert codec.level == kept
    finally:
        codec.setLevel(before)


async def test_the_library_may_be_missing(monkeypatch, echo):
    """The error says what to install, before anything is opened."""
    monkeypatch.setitem(sys.modules, "hypercorn.trio", None)
    with pytest.raises(ImportError, match=r"needs hypercorn: pip install 'noizu-mcp\[http\]'"):
        await serve_hypercorn(echo)
