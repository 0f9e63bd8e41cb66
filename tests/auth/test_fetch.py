"""Requests to configured URLs, over real sockets."""

import gzip
import json
import ssl
import sys

import pytest
import trio

from noizu_mcp.auth import FetchError, FetchRequest, FetchResponse, HTTPFetcher


async def failure(fetcher, url):
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(FetchRequest(url=url))
    return str(caught.value)


async def test_a_get(peer):
    """Status and body come back; nothing compressed is asked for."""
    peer.say("/keys?a=b", {"keys": []}, status=203)

    answer = await HTTPFetcher().fetch(
        FetchRequest(url=peer.url("/keys?a=b"), headers=(("accept", "application/json"),))
    )

    assert (answer.status, json.loads(answer.body)) == (203, {"keys": []})
    (got,) = peer.received
    assert (got.method, got.target, got.body) == ("GET", "/keys?a=b", b"")
    assert got.headers["accept"] == "application/json"
    assert got.headers["accept-encoding"] == "identity"


async def test_a_post(peer):
    """The body is sent as it is."""
    peer.say("/x", {})

    await HTTPFetcher().fetch(FetchRequest(url=peer.url("/x"), method="POST", body=b"token=t"))

    (got,) = peer.received
    assert (got.method, got.body) == ("POST", b"token=t")


async def test_redirects_are_answers(peer):
    """The URL of the configuration is the one that is meant."""
    peer.say("/old", b"", status=302, location=peer.url("/new"))
    peer.say("/new", {"keys": []})

    answer = await HTTPFetcher().fetch(FetchRequest(url=peer.url("/old")))

    assert answer.status == 302
    assert [each.target for each in peer.received] == ["/old"]
    with pytest.raises(FetchError, match="it answered 302"):
        answer.good_body  # noqa: B018 - reading it is what raises
    assert FetchResponse(200, b"x").good_body == b"x"


async def test_large_answers_are_cut(peer):
    """Up to the limit and not a byte more."""
    fetcher = HTTPFetcher(max_size=10)
    peer.say("/ten", b"x" * 10)
    peer.say("/eleven", b"x" * 11)

    assert (await fetcher.fetch(FetchRequest(url=peer.url("/ten")))).body == b"x" * 10
    assert await failure(fetcher, peer.url("/eleven")) == "the answer has more than 10 bytes"


async def test_an_endless_answer_is_cut(peer):
    """A server that never stops sending is left."""
    stopped = trio.Event()

    async def endless(stream):
        try:
            await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                await stream.send_all(b"x" * 65536)
        except trio.BrokenResourceError:
            stopped.set()

    peer.answers["/"] = endless

    assert "more than 1048576 bytes" in await failure(HTTPFetcher(), peer.url("/"))
    with trio.fail_after(60):
        await stopped.wait()


async def test_compressed_answers_are_refused(peer):
    """A kilobyte can unpack to a gigabyte."""
    peer.say("/", gzip.compress(b"{}"), content_encoding="gzip")

    assert "compressed" in await failure(HTTPFetcher(), peer.url("/"))


async def test_silence_ends(peer):
    """A server that takes the request and says nothing costs the timeout."""
    peer.go = trio.Event()

    assert await failure(HTTPFetcher(timeout=0.05), peer.url("/")) == "no answer within 0.05 s"
    peer.go.set()


async def test_nobody_there():
    """A closed port is an error of ours, not of the library."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()

    assert "ConnectError" in await failure(HTTPFetcher(), f"http://127.0.0.1:{port}/")


async def test_no_http(peer):
    """So is an answer that is no HTTP."""

    async def garbage(stream):
        await stream.send_all(b"SSH-2.0-OpenSSH\r\n\r\n")

    peer.answers["/"] = garbage

    assert "RemoteProtocolError" in await failure(HTTPFetcher(), peer.url("/"))


async def test_tls_is_verified(peer):
    """A server that does not speak TLS is no https server; a context of one's own is used."""
    context = ssl.create_default_context()
    url = peer.url("/").replace("http:", "https:")

    assert await failure(HTTPFetcher(ssl_context=context, timeout=1), url)


async def test_cancelled_is_cancelled(peer, nursery):
    """A cancelled request ends without a `FetchError`."""
    peer.go = trio.Event()
    with trio.CancelScope() as scope:
        nursery.start_soon(_cancel_when_started, peer, scope)
        await HTTPFetcher().fetch(FetchRequest(url=peer.url("/")))
    assert scope.cancelled_caught
    peer.go.set()


async def _cancel_when_started(peer, scope):
    await peer.until_asked()
    scope.cancel()


def test_the_library_may_be_missing(monkeypatch):
    """Then the message says what to install."""
    monkeypatch.setitem(sys.modules, "httpx2", None)

    with pytest.raises(ImportError, match=r"needs httpx2: pip install 'noizu-mcp\[auth\]'"):
        HTTPFetcher()


def test_secrets_are_not_shown():
    """Requests and answers may end in a log."""
    request = FetchRequest(url="https://a", headers=(("authorization", "s3cret"),), body=b"s3cret")

    assert "s3cret" not in repr(request) + repr(FetchResponse(200, b"s3cret"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": float("nan")}, "timeout must be a number of seconds above 0, not nan"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0, not 0"),
        ({"max_size": 0}, "max_size must be a whole number above 0, not 0"),
        ({"max_size": 1e6}, "max_size must be a whole number above 0, not 1000000.0"),
    ],
)
def test_limits_that_are_none(options, message):
    """They are errors where they are written."""
    with pytest.raises(ValueError, match=message):
        HTTPFetcher(**options)
