"""Requests to configured URLs, over real sockets."""

import contextlib
import gzip
import json
import ssl
import sys

import httpcore2
import pytest
import trio

from noizu_mcp.auth import FetchError, FetchRequest, FetchResponse, HTTPFetcher

from ..transports.http.certificate import make_certificate


async def failure(fetcher, url):
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(FetchRequest(url=url))
    return str(caught.value)


async def test_a_get(peer):
    """Status and body are returned; no compression is requested."""
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
    """The body is sent unchanged."""
    peer.say("/x", {})

    await HTTPFetcher().fetch(FetchRequest(url=peer.url("/x"), method="POST", body=b"token=t"))

    (got,) = peer.received
    assert (got.method, got.body) == ("POST", b"token=t")


async def test_redirects_are_answers(peer):
    """Redirects are not followed: the configured URL is the intended one."""
    peer.say("/old", b"", status=302, location=peer.url("/new"))
    peer.say("/new", {"keys": []})

    answer = await HTTPFetcher().fetch(FetchRequest(url=peer.url("/old")))

    assert answer.status == 302
    assert [each.target for each in peer.received] == ["/old"]
    with pytest.raises(FetchError, match="it answered 302"):
        answer.good_body  # noqa: B018 - reading it is what raises
    assert FetchResponse(200, b"x").good_body == b"x"


async def test_large_answers_are_cut(peer):
    """A large response is read up to the limit, to the byte."""
    fetcher = HTTPFetcher(max_size=10)
    peer.say("/ten", b"x" * 10)
    peer.say("/eleven", b"x" * 11)

    assert (await fetcher.fetch(FetchRequest(url=peer.url("/ten")))).body == b"x" * 10
    assert await failure(fetcher, peer.url("/eleven")) == "the answer has more than 10 bytes"


async def test_an_endless_answer_is_cut(peer):
    """The connection to a server that never stops sending is closed."""
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


@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip", "identity, deflate", "br", "x"])
async def test_compressed_answers_are_refused(peer, coding):
    """They are refused: a kilobyte can expand to a gigabyte."""
    peer.say("/", gzip.compress(b"{}"), content_encoding=coding)

    assert "compressed" in await failure(HTTPFetcher(), peer.url("/"))


async def test_silence_ends(peer):
    """A server that does not respond costs the timeout."""
    peer.go = trio.Event()

    assert await failure(HTTPFetcher(timeout=0.05), peer.url("/")) == "no answer within 0.05 s"
    peer.go.set()


async def test_a_closed_port():
    """A closed port raises our own exception, not the library's."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()

    assert "ConnectError" in await failure(HTTPFetcher(), f"http://127.0.0.1:{port}/")


async def test_no_http(peer):
    """A response that is not HTTP raises it, too."""

    async def garbage(stream):
        await stream.send_all(b"SSH-2.0-OpenSSH\r\n\r\n")

    peer.answers["/"] = garbage

    assert "RemoteProtocolError" in await failure(HTTPFetcher(), peer.url("/"))


async def test_tls_is_verified(peer):
    """A server without TLS is refused for https; a custom context is used."""
    context = ssl.create_default_context()
    url = peer.url("/").replace("http:", "https:")

    assert await failure(HTTPFetcher(ssl_context=context, timeout=1), url)


async def test_cancelled_is_cancelled(peer, nursery):
    """Cancellation raises no `FetchError`."""
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
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "httpx2", None)

    with pytest.raises(ImportError, match=r"needs httpx2: pip install 'noizu-mcp\[auth\]'"):
        HTTPFetcher()


def test_secrets_are_not_shown():
    """Representations of requests and responses may be logged, so they hide secrets."""
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
def test_invalid_limits(options, message):
    """Invalid limits are refused where they are written."""
    with pytest.raises(ValueError, match=message):
        HTTPFetcher(**options)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("::10.0.0.1", False),
        ("2002:0a00:0001::", False),
        ("2002:5db8:d822::", True),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::5db8:d822", True),
    ],
)
async def test_what_is_a_public_address(monkeypatch, address, public):
    """For an IPv6 address that embeds an IPv4 address the latter decides."""

    async def connect_tcp(self, *args, **options):
        raise httpcore2.ConnectError("reached")

    resolving(monkeypatch, a_example=[address])
    monkeypatch.setattr(httpcore2.TrioBackend, "connect_tcp", connect_tcp)
    said = await failure(HTTPFetcher(public_only=True), "http://a.example/")

    assert ("reached" in said) is public
    assert ("which is no public address" in said) is not public


def resolving(monkeypatch, **names):
    """Make names resolve to addresses; a list has one result for each lookup."""
    looked_up = []

    async def getaddrinfo(host, port, **options):
        looked_up.append(host)
        found = names.get(host.replace(".", "_"))
        if found is None:
            raise OSError("unknown")
        return [(2, 1, 6, "", (each, port)) for each in found]

    monkeypatch.setattr(trio.socket, "getaddrinfo", getaddrinfo)
    return looked_up


async def test_private_addresses_are_not_reached(monkeypatch, peer):
    """A name or URL with a private address is refused, even beside public ones."""
    resolving(monkeypatch, a_example=["93.184.216.34", "10.0.0.1"], **{"127_0_0_1": ["127.0.0.1"]})
    fetcher = HTTPFetcher(public_only=True)

    assert await failure(fetcher, "https://a.example/") == (
        "a.example is at 10.0.0.1, which is no public address; allow_private=True permits it"
    )
    assert "127.0.0.1 is at 127.0.0.1, which is no" in await failure(fetcher, peer.url("/"))
    assert "b.example has no address: unknown" in await failure(fetcher, "https://b.example/")
    assert peer.received == []


async def test_the_address_that_was_checked_is_used(monkeypatch, peer):
    """A second lookup could differ. The server still gets its own name in Host."""
    looked_up = resolving(monkeypatch, a_example=["127.0.0.1"])
    monkeypatch.setattr("noizu_mcp.auth._fetch.is_public", lambda address: True)
    peer.say("/x", {}, x_more="yes")

    answer = await HTTPFetcher(public_only=True).fetch(
        FetchRequest(url=f"http://a.example:{peer.port}/x")
    )

    assert answer.headers["x-more"] == "yes"
    assert looked_up.count("a.example") == 1
    assert peer.received[0].headers["host"] == f"a.example:{peer.port}"


async def test_the_name_of_a_certificate_is_checked(monkeypatch, nursery, peer, tmp_path):
    """The certificate must match the name in the URL, although the connection uses an address."""
    path = make_certificate(tmp_path, "a.example")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(path)

    async def handle(stream):
        with contextlib.suppress(trio.BrokenResourceError):
            tls = trio.SSLStream(stream, server, server_side=True, https_compatible=True)
            await peer.handle(tls)

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, handle, [listener])
    port = listener.socket.getsockname()[1]
    peer.say("/x", {})
    resolving(monkeypatch, a_example=["127.0.0.1"], b_example=["127.0.0.1"])
    monkeypatch.setattr("noizu_mcp.auth._fetch.is_public", lambda address: True)
    fetcher = HTTPFetcher(public_only=True, ssl_context=ssl.create_default_context(cafile=path))

    assert (await fetcher.fetch(FetchRequest(url=f"https://a.example:{port}/x"))).status == 200
    assert "CERTIFICATE_VERIFY_FAILED" in await failure(fetcher, f"https://b.example:{port}/x")
