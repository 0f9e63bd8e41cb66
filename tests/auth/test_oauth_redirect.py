"""The listener for the redirect of a browser, over real sockets."""

import socket
from contextlib import asynccontextmanager, suppress

import pytest
import trio

from noizu_mcp import AuthError
from noizu_mcp.auth.client import _redirect
from noizu_mcp.auth.client._redirect import open_listener


async def say(port, data, host="127.0.0.1"):
    """Send bytes with the port of the listener, and return the whole response."""
    stream = await trio.open_tcp_stream(host, port)
    async with stream:
        await stream.send_all(data.replace(b"PORT", str(port).encode()))
        return b"".join([part async for part in stream]).decode()


def get(target, method="GET", host="127.0.0.1:PORT"):
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def is_answer(answer):
    """Tell whether a query belongs to the login of these tests."""
    return answer.get("state", "s") == "s"


def port_of(listener):
    return int(listener.uri.partition("127.0.0.1:")[2].partition("/")[0])


@asynccontextmanager
async def listening(*args):
    """Open a listener; yields its port, and its results."""
    answers = []

    async def wait():
        answers.append(await listener.wait(is_answer))

    with trio.fail_after(60):
        async with open_listener(*args) as listener, trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            yield port_of(listener), answers


async def test_an_answer():
    """Its parameters are returned, and the page for the user has no scripts."""
    async with listening("", 0) as (port, answers):
        page = await say(port, get("/callback?code=a%20b&state=s&iss="))

    assert answers == [{"code": "a b", "state": "s", "iss": ""}]
    head, _, body = page.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert "Content-Security-Policy: default-src 'none'" in head
    assert f"Content-Length: {len(body)}" in head
    assert "You can close this window." in body
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", port)


async def test_a_refusal_is_an_answer_too():
    """The page shows the error as text."""
    async with listening("", 0) as (port, answers):
        page = await say(port, get("/callback?error=%3Cscript%3E&state=s"))

    assert answers == [{"error": "<script>", "state": "s"}]
    assert "The login failed" in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (get("/favicon.ico"), "404 Not Found"),
        (get("/callback"), "404 Not Found"),
        (get("/other?code=x"), "404 Not Found"),
        (get("/callback?code=x", host="evil.example.com"), "404 Not Found"),
        (get("/callback?code=x", host="127.0.0.1"), "404 Not Found"),
        (get("/callback?code=x", host="127.0.0.1:PORT\r\nHost: x"), "404 Not Found"),
        (b"GET /callback?code=x HTTP/1.1\r\n\r\n", "404 Not Found"),
        (get("/callback?code=x&state=other"), "400 Bad Request"),
        (get("/callback?error=x&state="), "400 Bad Request"),
        (get("/callback?code=x", "POST"), "400 Bad Request"),
        (get("/callback?code=x", "HEAD"), "400 Bad Request"),
        (get("/callback?" + "&".join(["code=x"] * 60)), "400 Bad Request"),
        (b"nonsense\r\n\r\n", "400 Bad Request"),
        (b"x" * 20_000, "400 Bad Request"),
    ],
)
async def test_other_requests_are_no_answer(data, status):
    """The listener continues to wait."""
    async with listening("", 0) as (port, answers):
        assert (await say(port, data)).startswith(f"HTTP/1.1 {status}\r\n")
        assert answers == []
        await say(port, get("/callback?code=x"))

    assert answers == [{"code": "x"}]


async def test_silent_connections_do_not_block(monkeypatch):
    """Browsers open connections without requests; above a number they are closed at once."""
    monkeypatch.setattr(_redirect, "MAX_CONNECTIONS", 2)
    async with listening("", 0) as (port, answers):
        silent = await trio.open_tcp_stream("127.0.0.1", port)
        other = await trio.open_tcp_stream("127.0.0.1", port)
        await trio.testing.wait_all_tasks_blocked()
        with suppress(trio.BrokenResourceError):
            assert await say(port, get("/callback?code=x")) == ""
        await other.aclose()
        await trio.testing.wait_all_tasks_blocked()
        await say(port, get("/callback?code=x"))
        await silent.aclose()

    assert answers == [{"code": "x"}]


async def test_a_connection_that_breaks():
    """The next connection brings the answer, even if it ends early."""
    async with listening("", 0) as (port, answers):
        broken = socket.create_connection(("127.0.0.1", port))
        # Closed with a reset.
        broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        broken.close()
        await trio.testing.wait_all_tasks_blocked()
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(get("/callback?code=x", host=f"127.0.0.1:{port}")[:-4])
        await stream.send_eof()
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 OK")
        await stream.aclose()

    assert answers == [{"code": "x"}]


async def test_the_port_of_before_is_best():
    """The previous port is used if it is free, and otherwise any other."""
    async with open_listener("", 0) as first:
        port = port_of(first)
        async with open_listener("", 0, port) as other:
            assert port_of(other) != port
    async with open_listener("", 0, port) as again:
        assert port_of(again) == port


async def test_a_port_that_is_in_use():
    """A fixed port has no alternative."""
    async with open_listener("", 0) as first:
        port = port_of(first)
        with pytest.raises(AuthError, match=f"cannot be received on port {port}"):
            async with open_listener("", port):
                raise AssertionError


async def test_a_fixed_uri():
    """The listener uses its host, port and path."""
    async with open_listener("", 0) as first:
        port = port_of(first)
    uri = f"http://127.0.0.1:{port}/back"
    async with listening(uri, 0) as (found, answers):
        assert found == port
        await say(port, get("/back?code=x"))

    assert answers == [{"code": "x"}]
