"""Addresses from trusted proxies: which headers are used, and which entry of them."""

import ipaddress
from functools import partial

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.engine import single_failure
from noizu_mcp.transports.host import HostOptions, serve_asgi, serve_hypercorn

#: This machine is a proxy, too, so what it sends is read.
PROXIES = ["127.0.0.0/8", "10.0.0.0/8", "2001:db8::7"]
REAL = "192.0.2.9"


async def _read(*requests, proxies=PROXIES):
    """Send requests with these headers; return the client and the scheme of each.

    None stands for the address and the scheme of the connection.
    """
    seen = []

    async def app(scope, receive, send):
        own = scope["client"] == (client.socket.getsockname())
        scheme = None if scope["scheme"] == "http" else scope["scheme"]
        seen.append((None if own else scope["client"], scheme))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with trio.open_nursery() as nursery:
        config = HostOptions(forwarded_allow_ips=proxies)
        host = await nursery.start(partial(serve_asgi, app, port=0, config=config))
        async with await trio.open_tcp_stream("127.0.0.1", host.port) as client:
            for headers in requests:
                lines = ["GET / HTTP/1.1", "host: x", *headers, "", ""]
                await client.send_all("\r\n".join(lines).encode("latin-1"))
                assert (await client.receive_some()).startswith(b"HTTP/1.1 204")
        nursery.cancel_scope.cancel()
    return seen


@pytest.mark.parametrize(
    ("headers", "client", "scheme"),
    [
        ([], None, None),
        (["x-forwarded-for: 192.0.2.1"], ("192.0.2.1", 0), None),
        (["x-forwarded-for: 192.0.2.1:443"], ("192.0.2.1", 443), None),
        (["x-forwarded-for: 2001:DB8::1"], ("2001:db8::1", 0), None),
        (["x-forwarded-for: [2001:db8::1]:80"], ("2001:db8::1", 80), None),
        (["x-forwarded-for: 192.0.2.1, 192.0.2.2 ,10.1.1.1"], ("192.0.2.2", 0), None),
        (["x-forwarded-for: 192.0.2.1, 192.0.2.2", "x-forwarded-for: 10.1.1.1, 2001:db8::7"],
         ("192.0.2.2", 0), None),
        # All of them are proxies: the request came from the first.
        (["x-forwarded-for: 10.2.2.2, 10.1.1.1"], ("10.2.2.2", 0), None),
        (["x-forwarded-for: 192.0.2.1, unknown"], None, None),
        (["x-forwarded-for: 192.0.2.1, unknown, 10.1.1.1"], None, None),
        (["x-forwarded-for: 192.0.2.1, "], None, None),
        (["x-forwarded-for: 192.0.2.300"], None, None),
        (["x-forwarded-for: 192.0.2.1:66000"], None, None),
        (["x-forwarded-for: 192.0.2.1", "x-forwarded-proto: https"], ("192.0.2.1", 0), "https"),
        (["x-forwarded-proto: HTTPS"], None, "https"),
        (["x-forwarded-proto: HTTP"], None, None),
        (["x-forwarded-proto: https, http"], None, None),
        (["x-forwarded-proto: ftp"], None, None),
        (["forwarded: for=192.0.2.1"], ("192.0.2.1", 0), None),
        (['forwarded: For="[2001:db8::1]:47"'], ("2001:db8::1", 47), None),
        (["forwarded: for=192.0.2.1;proto=HTTPS;by=10.0.0.1, for=10.1.1.1;proto=http"],
         ("192.0.2.1", 0), "https"),
        ([r'forwarded: for="192.0.2\.1" ; host="a,b;\"c"'], ("192.0.2.1", 0), None),
        (["forwarded: for=192.0.2.1;proto=ftp"], ("192.0.2.1", 0), None),
        (["forwarded: proto=https"], None, "https"),
        (["forwarded: for=_hidden, for=10.1.1.1"], None, None),
        (["forwarded: for=192.0.2.1;for=192.0.2.2"], None, None),
        (["forwarded: for=192.0.2.1:80"], None, None),
        (['forwarded: for=", for=192.0.2.1'], None, None),
        (["forwarded: "], None, None),
        # Both headers: only what they agree on counts.
        (["forwarded: for=192.0.2.1", "x-forwarded-for: 192.0.2.1:7"], ("192.0.2.1", 0), None),
        (["forwarded: for=192.0.2.2", "x-forwarded-for: 192.0.2.1"], None, None),
        (["forwarded: for=", "x-forwarded-for: 192.0.2.1"], None, None),
        (["forwarded: for=192.0.2.1;proto=https", "x-forwarded-proto: https"],
         ("192.0.2.1", 0), "https"),
        (["forwarded: for=192.0.2.1;proto=https", "x-forwarded-proto: http"],
         ("192.0.2.1", 0), None),
    ],
)  # fmt: skip
async def test_the_headers_of_a_proxy(headers, client, scheme):
    """The last address that is not a proxy is the client; malformed headers change nothing."""
    assert await _read(headers) == [(client, scheme)]


async def test_every_peer_is_believed_only_about_its_own_client():
    """With `*` the last entry is the client, unless its address is listed as well."""
    headers = ["x-forwarded-for: 192.0.2.1, 192.0.2.2, 10.1.1.1"]
    assert await _read(headers, proxies=["*"]) == [(("10.1.1.1", 0), None)]
    assert await _read(headers, proxies=["*", "10.0.0.0/8"]) == [(("192.0.2.2", 0), None)]


async def test_the_number_of_proxies_is_limited():
    """The search stops after 20 entries: a client may fill the whole head with them."""
    found = await _read(
        *(
            [f"x-forwarded-for: {', '.join(['192.0.2.1', *['10.1.1.1'] * proxies])}"]
            for proxies in (19, 20)
        )
    )
    assert found == [(("192.0.2.1", 0), None), (("10.1.1.1", 0), None)]


_JUNK = st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"]))
_PROXY = st.integers(0, 2**24 - 1).map(lambda n: str(ipaddress.ip_address((10 << 24) + n)))
_CHAIN = st.lists(_PROXY, max_size=5)


#: Each example is a connection; it has some requests.
_JUNKS = st.lists(st.tuples(_JUNK | st.just('for="'), _CHAIN), min_size=1, max_size=10)


@pytest.mark.slow
@settings(max_examples=15)
@given(_JUNKS)
def test_nothing_that_a_client_writes_hides_its_address(requests):
    """Entries before the address of the first proxy are ignored."""
    chains = (", ".join([junk, REAL, *chain]) for junk, chain in requests)
    found = trio.run(partial(_read, *([f"x-forwarded-for: {each}"] for each in chains)))
    assert found == [((REAL, 0), None)] * len(requests)


@pytest.mark.slow
@settings(max_examples=15)
@given(_JUNKS)
def test_nothing_that_a_client_writes_is_another_address(requests):
    """A client can make `Forwarded` unreadable, but cannot make it name another client."""
    written = []
    for junk, chain in requests:
        nodes = ", ".join(f"for={each}" for each in (REAL, *chain))
        written.append([f"forwarded: {junk}, {nodes}"])
        written.append([f"forwarded: {nodes}", f"x-forwarded-for: {junk}"])
    assert {client for client, _ in trio.run(partial(_read, *written))} <= {(REAL, 0), None}


_NAMES = st.sampled_from(["forwarded", "x-forwarded-for", "x-forwarded-proto", "more"])
_HEADER = st.tuples(_NAMES, _JUNK | st.text('for="\\,; 10.[]:ahtps')).map(": ".join)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.lists(_HEADER), min_size=1, max_size=10))
def test_any_text_is_read(requests):
    """Any headers result in an address and a scheme, or in nothing."""
    for client, scheme in trio.run(partial(_read, *requests)):
        assert scheme in (None, "https")
        if client is not None:
            assert str(ipaddress.ip_address(client[0])) == client[0]
            assert 0 <= client[1] <= 65535


@pytest.fixture
def scopes(answer):
    """An application that stores its scopes in a list."""

    async def app(scope, receive, send):
        app.seen.append((scope["client"], scope["scheme"]))
        await answer(send)

    app.seen = []
    return app


HEADERS = ("X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https")


@pytest.mark.parametrize("allowed", [["127.0.0.0/8"], ["127.0.0.2"], []])
async def test_only_listed_peers_are_believed(serve, connect, scopes, allowed):
    """For other peers the scope has the address of the connection."""
    client = await connect(await serve(scopes, forwarded_allow_ips=allowed))
    for headers in (HEADERS, ("X-Forwarded-For: junk",)):
        await client.request(b"", *headers)
        assert await client.answer() == (200, b"")
    plain = (client.stream.socket.getsockname(), "http")
    believed = (("192.0.2.1", 0), "https") if allowed == ["127.0.0.0/8"] else plain
    assert scopes.seen == [believed, plain]


@pytest.mark.parametrize("allowed", ["*", "127.0.0.1"])
async def test_a_proxy_on_a_unix_socket(serve, tmp_path, scopes, allowed):
    """A proxy on a Unix socket has no address, so only `*` matches it."""
    path = str(tmp_path / "mcp.sock")
    await serve(scopes, uds=path, forwarded_allow_ips=[allowed])
    async with await trio.open_unix_socket(path) as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    assert scopes.seen == [(("192.0.2.1", 0) if allowed == "*" else None, "http")]


async def test_hypercorn_believes_the_same(nursery, connect, scopes):
    """On hypercorn clients of HTTP/1.1 and HTTP/2 have the same addresses."""

    async def run(task_status):
        config = HostOptions(forwarded_allow_ips=["127.0.0.1"])
        with single_failure():
            await serve_hypercorn(scopes, port=0, config=config, task_status=task_status)

    client = await connect(host := await nursery.start(run))
    await client.request(b"", *HEADERS)
    assert await client.answer() == (200, b"")
    assert scopes.seen == [(("192.0.2.1", 0), "https")]
    host.stop()


async def test_hypercorn_has_no_port_for_health_checks():
    """A port for health checks is refused with hypercorn; the error says what to do."""
    with pytest.raises(OSError, match="use server='noizu'"), single_failure():
        await serve_hypercorn(None, port=0, config=HostOptions(health_port=0))


async def test_a_proxy_on_a_unix_socket_of_hypercorn(nursery, tmp_path, scopes):
    """A proxy on a Unix socket has no address on hypercorn, either."""
    config = HostOptions(uds=str(tmp_path / "mcp.sock"), forwarded_allow_ips=["10.0.0.0/8"])

    async def run(task_status):
        with single_failure():
            await serve_hypercorn(scopes, port=0, config=config, task_status=task_status)

    host = await nursery.start(run)
    async with await trio.open_unix_socket(config.uds) as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    assert ("192.0.2.1", 0) not in [client for client, _ in scopes.seen]
    host.stop()
