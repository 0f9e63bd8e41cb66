"""Addresses, sockets and options of a host."""

import errno
import socket
import ssl
import stat
from contextlib import asynccontextmanager

import pytest
import trio

from noizu_mcp.transports.host import HostOptions, serve_asgi
from noizu_mcp.transports.host._tls import make_context

from ...kit.http_client import RawClient


async def _resolve_to(monkeypatch, *addresses):
    async def getaddrinfo(*_args, **_kwargs):
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, 1, 6, "", (each, 0))
            for each in addresses
        ]

    monkeypatch.setattr(trio.socket, "getaddrinfo", getaddrinfo)


async def test_an_ipv4_address(serve, echo):
    """The host listens on that address only."""
    host = await serve(echo)
    assert host.urls == (f"http://127.0.0.1:{host.port}",)
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.2", host.port)


@pytest.mark.parametrize("host", ["::1", "[::1]"])
async def test_an_ipv6_address(serve, echo, host):
    """The address may have brackets, as in a URL."""
    made = await serve(echo, host=host)
    assert made.urls == (f"http://[::1]:{made.port}",)


async def test_a_name_with_both_families(serve, echo, monkeypatch):
    """The host listens on every address of the name, with the same port."""
    await _resolve_to(monkeypatch, "::1", "127.0.0.1", "127.0.0.1")
    made = await serve(echo, host="both")
    assert made.urls == (f"http://[::1]:{made.port}", f"http://127.0.0.1:{made.port}")


async def test_a_family_that_the_machine_lacks_is_left_out(serve, echo, monkeypatch):
    """One working address is enough; without any there is an error."""
    await _resolve_to(monkeypatch, "2001:db8::1", "127.0.0.1")
    made = await serve(echo, host="both")
    assert made.urls == (f"http://127.0.0.1:{made.port}",)
    await _resolve_to(monkeypatch, "2001:db8::1")
    with pytest.raises(OSError, match=r"cannot listen on http://none:0: cannot assign"):
        await serve(echo, host="none")


async def test_a_port_that_is_taken_at_one_address_is_not_the_free_one(serve, echo, monkeypatch):
    """With port 0 another port is tried, five times in all."""
    await _resolve_to(monkeypatch, "127.0.0.1", "127.0.0.2")
    bind, failures = socket.socket.bind, []

    def failing(self, address):
        if address[0] == "127.0.0.2" and len(failures) < limit:
            failures.append(OSError(errno.EADDRINUSE, "Address already in use"))
            raise failures[-1]
        return bind(self, address)

    monkeypatch.setattr(socket.socket, "bind", failing)
    limit = 2
    assert len((await serve(echo, host="both")).urls) == 2
    limit = 100
    failures.clear()
    with pytest.raises(OSError, match="already in use"):
        await serve(echo, host="both")
    assert len(failures) == 5


async def test_a_port_that_is_taken_is_one_line(serve, echo):
    """The error has the address and the reason."""
    host = await serve(echo)
    with pytest.raises(OSError, match="in use") as raised:
        await serve_asgi(echo, port=host.port)
    text = f"[Errno {errno.EADDRINUSE}] cannot listen on {host.urls[0]}: address already in use"
    assert str(raised.value) == text


async def test_an_unknown_name_is_an_error(serve, echo, monkeypatch):
    """The error of the resolver is raised."""

    async def getaddrinfo(*_args, **_kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(trio.socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(OSError, match="http://nowhere:80: name or service not known"):
        await serve(echo, host="nowhere", port=80)


async def test_a_unix_socket(serve, echo, tmp_path):
    """The socket is accessible to its owner only, has no address, and is removed at the end."""
    path = tmp_path / "mcp.sock"
    scopes = []

    async def app(scope, receive, send):
        scopes.append(scope)
        await echo(scope, receive, send)

    host = await serve(app, uds=str(path))
    assert host.urls == (f"unix:{path}",)
    assert host.port is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with await trio.open_unix_socket(path) as stream:
        await stream.send_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1")
        assert (await stream.receive_some()).endswith(b"\r\n\r\n1")
    assert (scopes[0]["client"], scopes[0]["server"]) == (None, None)
    host.stop()
    await host.ended.wait()
    assert not path.exists()


async def test_a_unix_socket_left_behind_is_replaced(serve, echo, tmp_path):
    """The socket of a server that was killed is replaced."""
    path = tmp_path / "mcp.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    await serve(echo, uds=str(path), uds_mode=0o660)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


@pytest.mark.parametrize("other", ["file", "socket", "nothing"])
async def test_the_path_of_a_unix_socket_is_removed_only_if_it_is_still_ours(
    serve, echo, tmp_path, other
):
    """Another server may have replaced the socket in the meantime; then it stays."""
    path = tmp_path / "mcp.sock"
    host = await serve(echo, uds=str(path))
    path.unlink()
    if other == "file":
        path.write_text("mine")
    elif other == "socket":
        with socket.socket(socket.AF_UNIX) as taken:
            taken.bind(str(path))
    host.stop()
    await host.ended.wait()
    assert path.exists() is (other != "nothing")


@pytest.mark.parametrize("backlog", [0, 1])
async def test_a_unix_socket_in_use_is_left_alone(serve, echo, tmp_path, backlog):
    """The socket of a live server is kept, even if that accepts nothing; so is a regular file."""
    path = str(tmp_path / "mcp.sock")
    with socket.socket(socket.AF_UNIX) as alive, socket.socket(socket.AF_UNIX) as waiting:
        alive.bind(path)
        alive.listen(backlog)
        waiting.connect(path)
        with pytest.raises(OSError, match=f"cannot listen on unix:{path}: address already in use"):
            await serve(echo, uds=path)
    plain = tmp_path / "file"
    plain.touch()
    with pytest.raises(OSError, match="address already in use"):
        await serve(echo, uds=str(plain))
    assert plain.exists()


async def test_tls_is_served(serve, connect, echo, certificate):
    """A TLS client is served with the scheme https; a plain HTTP client is disconnected."""
    scopes = []

    async def app(scope, receive, send):
        scopes.append(scope)
        await echo(scope, receive, send)

    host = await serve(app, certfile=certificate)
    assert host.urls == (f"https://127.0.0.1:{host.port}",)
    client = await connect(host)
    context = ssl.create_default_context(cafile=certificate)
    client.stream = trio.SSLStream(client.stream, context, server_hostname="127.0.0.1")
    for _ in range(2):
        await client.request(b"x" * 300_000)
        assert await client.answer() == (200, b"x" * 300_000)
    assert scopes[0]["scheme"] == "https"
    await client.request(b"1", "Connection: close")
    assert await client.answer() == (200, b"1")
    client.stream.transport_stream.socket.setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
    )
    await trio.aclose_forcefully(client.stream)
    plain = await connect(host)
    await plain.request(b"1")
    assert b"HTTP" not in await plain.rest()


async def test_a_handshake_has_its_time(serve, connect, echo, certificate, caplog, autojump_clock):
    """An incomplete handshake is closed after a timeout, without a log entry."""
    host = await serve(echo, certfile=certificate, handshake_timeout=10.0)
    for data in (b"", b"\x16\x03\x01\x01\x00"):
        client = await connect(host)
        start = trio.current_time()
        if data:
            await client.send(data)
        assert await client.rest() == b""
        assert trio.current_time() - start == pytest.approx(10)
    assert caplog.records == []


@asynccontextmanager
async def _in_tls(client, certificate):
    context = ssl.create_default_context(cafile=certificate)
    client.stream = trio.SSLStream(client.stream, context, server_hostname="127.0.0.1")
    await client.stream.do_handshake()
    yield client
    await trio.aclose_forcefully(client.stream)


async def test_a_handshake_makes_room(serve, connect, echo, certificate, caplog, until):
    """Connections without a handshake are closed to make room for new ones."""
    host = await serve(echo, certfile=certificate, max_connections=2)
    silent = [await connect(host) for _ in range(3)]
    assert await silent[0].rest() == b""
    async with _in_tls(await connect(host), certificate) as client:
        await client.request(b"1")
        assert await client.answer() == (200, b"1")
        assert await silent[1].rest() == b""
        assert host.connections == 2
    assert caplog.records == []


async def test_busy_hosts_say_nothing_without_a_handshake(
    serve, connect, held, certificate, autojump_clock
):
    """A connection above the limit is closed."""
    host = await serve(held, certfile=certificate, max_connections=1)
    async with _in_tls(await connect(host), certificate) as client:
        await client.request(path="/long")
        await held.started.wait()
        assert await (await connect(host)).rest() == b""
        held.go_on.set()
        assert await client.answer() == (200, b"")


async def test_health_checks_on_their_own_port_are_plain(serve, connect, echo, certificate):
    """A host with TLS answers plain HTTP on its health port."""
    host = await serve(echo, certfile=certificate, health_port=0, probes=("/healthz",))
    port = int(host.health_urls[0].rpartition(":")[2])
    client = RawClient(await trio.open_tcp_stream("127.0.0.1", port))
    await client.request(path="/healthz", method="GET")
    assert (await client.answer())[0] == 200
    await client.stream.aclose()


@pytest.mark.parametrize("is_known", [True, False])
async def test_settings_of_tls_are_handed_through(serve, connect, echo, certificate, is_known):
    """Client certificates and ciphers are used as they were set."""
    options = {"ca_certs": certificate, "verify_mode": ssl.CERT_REQUIRED}
    cipher = "ECDHE-ECDSA-AES256-GCM-SHA384"
    client = await connect(await serve(echo, certfile=certificate, ciphers=cipher, **options))
    context = ssl.create_default_context(cafile=certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    if is_known:
        context.load_cert_chain(certificate)
    stream = trio.SSLStream(client.stream, context, server_hostname="127.0.0.1")
    if is_known:
        await stream.do_handshake()
        assert stream.cipher()[0] == cipher
    else:
        with pytest.raises(trio.BrokenResourceError):
            await stream.do_handshake()
    await trio.aclose_forcefully(stream)


def test_old_features_of_tls_are_off(certificate):
    """Versions before 1.2, renegotiation and compression, which a Python client cannot try."""
    context = make_context(HostOptions(certfile=certificate))
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert ssl.OP_NO_RENEGOTIATION & context.options
    assert ssl.OP_NO_COMPRESSION & context.options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_connections": 0}, "HostOptions.max_connections must be an integer of at least 1"),
        ({"max_streams": True}, "HostOptions.max_streams must be an integer of at least 1"),
        ({"write_timeout": 0}, "HostOptions.write_timeout must be seconds above 0, not 0"),
        ({"lead": -1}, "HostOptions.lead must be seconds from 0 on, not -1"),
        ({"lead": True}, "HostOptions.lead must be seconds from 0 on, not True"),
        ({"health_port": 65536}, "HostOptions.health_port must be from 0 to 65535, not 65536"),
        ({"health_port": "80"}, "HostOptions.health_port must be from 0 to 65535, not '80'"),
        *(
            ({"forwarded_allow_ips": each}, "forwarded_allow_ips must be a list of addresses, net")
            for each in ("10.0.0.1", ["proxy"], [5], ["10.0.0.1/8"], None)
        ),
        ({"uds": ""}, "HostOptions.uds must be the path of a Unix socket, not ''"),
        ({"body_timeout": "1"}, "HostOptions.body_timeout must be seconds above 0, not '1'"),
        ({"keyfile": "k"}, "HostOptions.keyfile needs certfile"),
        ({"verify_mode": ssl.CERT_REQUIRED}, "HostOptions.verify_mode needs certfile"),
    ],
)
def test_wrong_options_are_refused(options, text):
    """The error names the option."""
    with pytest.raises(ValueError, match=text):
        HostOptions(**options)
