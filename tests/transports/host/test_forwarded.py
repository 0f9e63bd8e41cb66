"""Addresses from trusted proxies: which headers are used, and which entry of them."""

import ipaddress

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.engine import single_failure
from noizu_mcp.transports.host import HostOptions, serve_hypercorn
from noizu_mcp.transports.host._forwarded import MOST_PROXIES, TrustedProxies

PROXIES = TrustedProxies(["10.0.0.0/8", "2001:db8::7"])
REAL = "192.0.2.9"


def _read(*headers, proxies=PROXIES):
    pairs = [line.split(": ", 1) for line in headers]
    return proxies.read([(name.encode(), value.encode("latin-1")) for name, value in pairs])


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
        (["x-forwarded-proto: HTTP"], None, "http"),
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
def test_the_headers_of_a_proxy(headers, client, scheme):
    """The last address that is not a proxy is the client; malformed headers change nothing."""
    assert _read(*headers) == (client, scheme)


def test_every_peer_is_believed_only_about_its_own_client():
    """With `*` the last entry is the client, unless its address is listed as well."""
    header = "x-forwarded-for: 192.0.2.1, 192.0.2.2, 10.1.1.1"
    assert _read(header, proxies=TrustedProxies(["*"]))[0] == ("10.1.1.1", 0)
    assert _read(header, proxies=TrustedProxies(["*", "10.0.0.0/8"]))[0] == ("192.0.2.2", 0)


def test_the_number_of_proxies_is_limited():
    """The search stops after a maximum of entries: a client may fill the whole head with them."""
    header = ", ".join(["192.0.2.1", *["10.1.1.1"] * MOST_PROXIES])
    assert _read(f"x-forwarded-for: {header}")[0] == ("10.1.1.1", 0)


_JUNK = st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"]))
_PROXY = st.integers(0, 2**24 - 1).map(lambda n: str(ipaddress.ip_address((10 << 24) + n)))
_CHAIN = st.lists(_PROXY, max_size=5)


@given(_JUNK, _CHAIN)
def test_nothing_that_a_client_writes_hides_its_address(junk, chain):
    """Entries before the address of the first proxy are ignored."""
    assert _read(f"x-forwarded-for: {', '.join([junk, REAL, *chain])}") == ((REAL, 0), None)


@given(_JUNK | st.just('for="'), _CHAIN)
def test_nothing_that_a_client_writes_is_another_address(junk, chain):
    """A client can make `Forwarded` unreadable, but cannot make it name another client."""
    nodes = [f"for={each}" for each in (REAL, *chain)]
    assert _read(f"forwarded: {', '.join([junk, *nodes])}")[0] in ((REAL, 0), None)
    value = ", ".join(nodes)
    assert _read(f"forwarded: {value}", f"x-forwarded-for: {junk}")[0] in ((REAL, 0), None)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"forwarded", b"x-forwarded-for", b"x-forwarded-proto", b"host"]),
            st.binary() | st.text('for="\\,; 10.[]:ahtps').map(str.encode),
        )
    )
)
def test_any_bytes_are_read(headers):
    """Any bytes result in an address and a scheme, or in nothing."""
    client, scheme = PROXIES.read(headers)
    assert scheme in (None, "http", "https")
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


def test_names_that_are_no_addresses_are_not_trusted():
    """Other hosts report the path of a Unix socket instead of an address; it is not trusted."""
    assert not PROXIES.trust(("unix:", 0))
