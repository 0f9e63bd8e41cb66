"""Allowed hosts and origins, and what pages of other origins may do."""

import pytest

from noizu_mcp.transports.http import HttpLimits, HttpOptions

from ...kit.messages import call, message
from .shop import Shop
from .wire import serving

MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1:1", 200),
        ("[::1]", 200),
        ("[::1]:65535", 200),
        ("example.com", 421),
        ("localhost.example.com", 421),
        ("example.com:80", 421),
        ("localhost.", 421),
        ("localhost@example.com", 421),
        ("localhost:1@example.com", 421),
        ("example.com#localhost", 421),
        ("localhost/x", 421),
        ("localhost:", 421),
        ("localhost:x", 421),
        ("localhost:123456", 421),
        ("::1", 421),
        ("[::1", 421),
        ("[::2]:1", 421),
        ("loc\talhost", 421),
        ("*", 421),
        ("", 421),
        (None, 421),
    ],
)
async def test_hosts(autojump_clock, caplog, host, status):
    """By default only local hosts are served: a rebound name is refused, and logged."""
    async with serving(Shop()) as wire:
        done = await wire.send("POST", call("echo"), {**MODERN, "host": host})
        assert done.status == (400 if status == 200 else 421)  # `_meta` is missing
        assert ("allowed_hosts" in caplog.text) == (status == 421)
        if status == 421:
            assert "allowed_hosts" in done.json["error"]["message"]
            assert "access-control-allow-origin" not in done.headers


async def test_what_is_refused_again_is_logged_once(autojump_clock, caplog):
    """A refused host is logged once, with both ways to allow it."""
    async with serving(Shop()) as wire:
        for host in ("evil.example",) * 3 + ("other.example",):
            await wire.send("POST", call("echo"), {**MODERN, "host": host})
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        f"its Host '{name}.example' is not in allowed_hosts (--allow-host)"
        for name in ("evil", "other")
    ]


async def test_a_host_that_comes_twice(autojump_clock):
    """Two Host headers are refused, since a proxy may have used either."""
    async with serving(Shop()) as wire:
        for value in ("localhost, localhost", "localhost:1, example.com:80"):
            done = await wire.send("POST", call("echo"), {**MODERN, "host": value})
            assert done.status == 421
        scope = [(b"host", b"localhost"), (b"host", b"example.com")]
        exchange = wire.make("POST", call("echo"))
        exchange.scope["headers"] = scope
        await exchange.run()
        assert exchange.status == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://localhost:3000", 200),
        ("https://127.0.0.1", 200),
        ("http://[::1]:5", 200),
        ("https://app.example.com", 200),
        ("HTTPS://APP.example.com", 200),
        ("http://app.example.com", 403),
        ("https://app.example.com:8443", 403),
        ("https://app.example.com.evil.com", 403),
        ("https://localhost@evil.com", 403),
        ("http://localhost.evil.com", 403),
        ("ftp://localhost", 403),
        ("localhost", 403),
        ("null", 403),
        ("", 403),
        ("http://", 403),
        ("http://*", 403),
    ],
)
async def test_origins(autojump_clock, caplog, origin, status):
    """A page is served if its origin is allowed, or belongs to a served host."""
    async with serving(Shop(), allowed_origins=["https://app.example.com/"]) as wire:
        done = await wire.send_modern(call("echo"), {"origin": origin})
        assert done.status == status
        allowed = done.headers.get("access-control-allow-origin")
        assert allowed == (origin if status == 200 else None)
        assert ("allowed_origins" in caplog.text) == (status == 403)
        if status == 403:
            assert ("allowed_origins" in done.json["error"]["message"], done.error) == (
                True,
                -32600,
            )
        elif origin:
            assert done.headers["vary"] == "Origin"
            assert "Mcp-Session-Id" in done.headers["access-control-expose-headers"]


async def test_pages_may_read_streams_and_errors(autojump_clock):
    """Every response has the CORS headers that allow it."""
    async with serving(Shop()) as wire:
        origin = {"origin": "http://localhost"}
        session = await wire.session(headers=origin)
        stream = await session.post(call("wait", {"seconds": 2}))
        missing = await wire.send("POST", call("echo"), {**origin, "mcp-session-id": "x"})
        for done in (stream, missing):
            assert done.headers["access-control-allow-origin"] == "http://localhost"


async def test_names_may_have_ports(autojump_clock):
    """An entry with a port allows that port only; `*` allows everything."""
    hosts = ["Example.com:8000", "api.example.com"]
    async with serving(Shop(), allowed_hosts=hosts) as wire:
        for host, served in (
            ("example.com:8000", True),
            ("example.com", False),
            ("example.com:8001", False),
            ("api.example.com:5", True),
            ("localhost", False),
        ):
            done = await wire.send_modern(call("echo"), {"host": host})
            assert (done.status == 200) == served
            done = await wire.send_modern(
                call("echo"), {"host": "api.example.com", "origin": f"http://{host}"}
            )
            assert (done.status == 200) == served


async def test_everybody(autojump_clock):
    """Allowing every host does not allow every origin."""
    async with serving(Shop(), allowed_hosts=["*"]) as wire:
        assert (await wire.send_modern(call("echo"), {"host": "any.thing"})).status == 200
        headers = {"host": "any.thing", "origin": "http://any.thing"}
        assert (await wire.send_modern(call("echo"), headers)).status == 403
    async with serving(Shop(), allowed_origins=["*"]) as wire:
        done = await wire.send_modern(call("echo"), {"origin": "null"})
        assert (done.status, done.headers["access-control-allow-origin"]) == (200, "null")


async def test_what_a_browser_asks_before(autojump_clock):
    """The preflight response lists the methods and headers of the protocol."""
    async with serving(Shop()) as wire:
        asked = {
            "origin": "http://localhost:1",
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type, Mcp-Param-Region,x-evil",
        }
        done = await wire.send("OPTIONS", None, asked)
        assert (done.status, done.body) == (200, b"")
        assert done.headers["access-control-allow-methods"] == "GET, POST, DELETE"
        names = done.headers["access-control-allow-headers"].lower().split(", ")
        assert {"authorization", "mcp-session-id", "mcp-name", "last-event-id"} < set(names)
        assert "mcp-param-region" in names
        assert "x-evil" not in names
        for name in (
            "Mcp-Param-a b",
            "Mcp-Param-",
            "Mcp-Param-a:b",
            "Mcp-Param-\xe9",
            "x, Mcp-Param-",
        ):
            headers = {**asked, "access-control-request-headers": name}
            done = await wire.send("OPTIONS", None, headers)
            assert "mcp-param-" not in done.headers["access-control-allow-headers"].lower()
        evil = await wire.send("OPTIONS", None, {**asked, "origin": "http://evil.com"})
        assert (evil.status, "access-control-allow-methods" in evil.headers) == (403, False)
        assert (await wire.send("OPTIONS")).status == 405


async def test_the_guard_comes_first(autojump_clock):
    """Nothing is read or done for an origin that is not allowed."""
    async with serving(Shop()) as wire:
        session = await wire.session()
        for method in ("GET", "DELETE", "POST"):
            headers = {**session.headers, "origin": "http://evil.com"}
            done = await wire.send(method, message("ping", {}, 1), headers)
            assert done.status == 403
        assert (await session.post(call("echo"))).status == 200


@pytest.mark.parametrize(
    "option",
    [
        {"path": "mcp"},
        {"path": None},
        {"allowed_hosts": "localhost"},
        {"allowed_hosts": 1},
        {"allowed_origins": [1]},
    ],
)
def test_options_are_checked(option):
    """A single string is refused, since it would be a list of letters."""
    (name,) = option
    with pytest.raises(ValueError, match=name):
        HttpOptions(**option)


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("allowed_hosts", "", False),
        ("allowed_hosts", "https://mcp.example.com", False),
        ("allowed_hosts", "*.example.com", False),
        ("allowed_hosts", "::1", False),
        ("allowed_hosts", "mcp.example.com/x", False),
        ("allowed_hosts", "MCP.example.com:8000", True),
        ("allowed_hosts", "[::1]", True),
        ("allowed_hosts", "*", True),
        ("allowed_origins", "", False),
        ("allowed_origins", "app.example.com", False),
        ("allowed_origins", "https://*.example.com", False),
        ("allowed_origins", "https://app.example.com/page", False),
        ("allowed_origins", "https://me@app.example.com", False),
        ("allowed_origins", "https://App.example.com:8443/", True),
        ("allowed_origins", "http://[::1]:3000", True),
        ("allowed_origins", "vscode-webview://abc", True),
        ("allowed_origins", "null", True),
        ("allowed_origins", "*", True),
    ],
)
def test_what_can_never_match_is_refused(name, value, good):
    """An entry that cannot match any header is refused; the error says what is expected."""
    if good:
        assert getattr(HttpOptions(**{name: [value]}), name) == [value]
        return
    what = {"allowed_hosts": "names or addresses like", "allowed_origins": "origins like https://"}
    with pytest.raises(ValueError, match=f"{name} must be {what[name]}") as caught:
        HttpOptions(**{name: ["*", value]})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, "1", None, True, float("nan")])
@pytest.mark.parametrize("name", ["grace", "sessions"])
def test_limits_are_checked(name, value):
    """Limits are positive; counts are integers."""
    with pytest.raises(ValueError, match=rf"HttpLimits\.{name} must be an? .* above 0"):
        HttpLimits(**{name: value})
    with pytest.raises(ValueError, match="an integer"):
        HttpLimits(sessions=1.5)
    assert HttpLimits(grace=0.5, sessions=1).grace == 0.5
