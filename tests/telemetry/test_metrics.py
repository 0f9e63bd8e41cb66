"""Metrics: counts, labels, and access."""

import sys
from functools import partial

import httpx2
import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from noizu_mcp import McpError, connect
from noizu_mcp.auth import BearerAuth, StaticVerifier
from noizu_mcp.events import Event
from noizu_mcp.policies import DenyTools
from noizu_mcp.telemetry import Metrics
from noizu_mcp.transports.http import serve_http
from noizu_mcp.types import Principal

from .kit import KNOWS, META, STATELESS, App, Http, Job, begin, over_http, soon

#: Names with their own series.
MAX_NAMES = 500
ISSUERS = {"authorization_servers": ["https://issuer.example"]}


@pytest.fixture
def metrics(server):
    return Metrics(server)


def value(metrics, sample, /, **labels):
    return metrics.registry.get_sample_value(sample, labels)


async def test_calls_and_errors(server, metrics):
    """Requests are counted by name and outcome, with their duration."""
    async with connect(server, version="2026-07-28") as client:
        for _ in range(3):
            await client.call_tool("echo", {"text": "hi"})
        await client.call_tool("fail", {"how": "crash"})

    labels = {"method": "tools/call", "name": "echo"}
    assert value(metrics, "mcp_requests_total", **labels, outcome="ok") == 3
    assert value(metrics, "mcp_request_duration_seconds_count", **labels) == 3
    assert value(metrics, "mcp_request_duration_seconds_bucket", **labels, le="+Inf") == 3
    failed = {"method": "tools/call", "name": "fail", "outcome": "crashed"}
    assert value(metrics, "mcp_requests_total", **failed) == 1
    assert value(metrics, "mcp_received_bytes_total", method="tools/call") > 400
    assert value(metrics, "mcp_sent_bytes_total", method="tools/call") > 400
    listed = {"method": "server/discover", "name": "", "outcome": "ok"}
    assert value(metrics, "mcp_requests_total", **listed) == 1


async def test_requests_in_flight(server, metrics):
    """The gauge increases with a request and decreases with its end, whatever the outcome."""
    async with connect(server) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "hang")
        await soon(server.hanging)
        assert value(metrics, "mcp_requests_in_flight", method="tools/call") == 1
        nursery.cancel_scope.cancel()

    assert value(metrics, "mcp_requests_in_flight", method="tools/call") == 0


async def test_labels_take_few_values(server, metrics):
    """Unknown names, methods and notifications of clients are `other`."""
    async with connect(server, version="2025-11-25") as client:
        for n in range(5):
            for name, method in ((f"tool{n}", "tools/call"), (None, f"made/up{n}")):
                with pytest.raises(McpError):
                    await client.request(method, {"name": name})
            await client.notify(f"notifications/made{n}", {})

    labels = {"name": "other", "outcome": "error"}
    assert value(metrics, "mcp_requests_total", method="tools/call", **labels) == 5
    assert value(metrics, "mcp_requests_total", method="other", name="", outcome="error") == 5
    assert value(metrics, "mcp_notifications_total", method="other", direction="in") == 5
    assert "made" not in metrics.render().decode()


def test_names_that_come_and_go(server, metrics):
    """A server that renames its tools for ever does not fill the memory."""
    for n in range(MAX_NAMES + 3):
        start = Event("start", n, "tools/call", "stdio", name="x", target=f"tool{n}")
        metrics(start)
        metrics(start._replace(kind="stop", outcome="ok", duration=0.1))

    labels = {"method": "tools/call", "outcome": "ok"}
    assert value(metrics, "mcp_requests_total", name="tool0", **labels) == 1
    assert value(metrics, "mcp_requests_total", name="other", **labels) == 3


def test_ends_without_a_beginning(metrics):
    """A request that began before the listener does not decrement a gauge."""
    metrics(Event("stop", 1, "ping", "stdio", outcome="ok", duration=0.1))

    assert value(metrics, "mcp_requests_in_flight", method="ping") is None
    assert value(metrics, "mcp_requests_total", method="ping", name="", outcome="ok") is None


async def test_notifications_and_sessions(server, metrics):
    """Notifications have a direction; sessions, streams and components are read on demand."""
    async with connect(server, version="2025-11-25") as client:
        await client.call_tool("talk")
        assert value(metrics, "mcp_sessions") == 1
        server.tools.remove("talk")

    said = {"method": "notifications/message", "direction": "out"}
    ready = {"method": "notifications/initialized", "direction": "in"}
    assert value(metrics, "mcp_notifications_total", **said) == 1
    assert value(metrics, "mcp_notifications_total", **ready) == 1
    assert value(metrics, "mcp_sessions") == 0
    assert value(metrics, "mcp_streams") == 0
    offered = {
        k: value(metrics, "mcp_registered", kind=k) for k in ("tools", "resources", "prompts")
    }
    assert offered == {"tools": 6, "resources": 2, "prompts": 1}


async def test_a_registry_for_each_server(server, metrics):
    """Servers share nothing, unless they are given one registry, which raises."""
    other = Metrics(App())
    async with connect(server) as client:
        await client.call_tool("now")

    labels = {"method": "tools/call", "name": "now", "outcome": "ok"}
    assert value(metrics, "mcp_requests_total", **labels) == 1
    assert value(other, "mcp_requests_total", **labels) is None
    registry = CollectorRegistry()
    assert Metrics(App(), registry=registry).registry is registry
    with pytest.raises(ValueError, match=r"use one registry for each \(Duplicated"):
        Metrics(App(), registry=registry)


async def test_the_end_of_counting(server, metrics):
    """After `close` nothing is counted."""
    metrics.close()
    async with connect(server) as client:
        await client.call_tool("now")

    assert value(metrics, "mcp_requests_in_flight", method="tools/call") is None
    with pytest.raises(ValueError, match="not in list"):
        metrics.close()


async def test_the_end_of_counting_while_a_call_runs(server, metrics):
    """Nothing stays in flight, whatever ends later."""
    async with connect(server) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "hang")
        await soon(server.hanging)
        metrics.close()
        assert value(metrics, "mcp_requests_in_flight", method="tools/call") == 0
        nursery.cancel_scope.cancel()

    assert value(metrics, "mcp_requests_in_flight", method="tools/call") == 0


def test_the_end_of_counting_in_the_middle_of_an_event(server):
    """An earlier listener may close it during an event that it would count next."""
    server.telemetry.add(lambda _: metrics.close())
    metrics = Metrics(server)

    server.telemetry.emit(Event("start", 1, "ping", "memory"))

    assert value(metrics, "mcp_requests_in_flight", method="ping") is None


@pytest.mark.parametrize("wrong", [App, "app", None])
def test_metrics_of_no_server(wrong):
    """A class is refused: the error says what is expected."""
    with pytest.raises(TypeError, match="give an instance, not "):
        Metrics(wrong)


def call(metrics, name):
    """Send the events of a tool call to the metrics."""
    start = Event("start", id(name), "tools/call", "stdio", name=name, target=name)
    metrics(start)
    metrics(start._replace(kind="stop", outcome="ok", duration=0.1))


async def test_names_are_given_back(server, metrics):
    """A registered tool has its own series, however many were removed before it."""
    for n in range(MAX_NAMES):
        call(metrics, f"tool{n}")
    call(metrics, "now")
    labels = {"method": "tools/call", "outcome": "ok"}
    assert value(metrics, "mcp_requests_total", name="now", **labels) is None  # nothing changed
    server.tools.remove("talk")

    for name in ("now", "echo", "now"):
        call(metrics, name)

    assert value(metrics, "mcp_requests_total", name="now", **labels) == 2
    assert value(metrics, "mcp_requests_total", name="echo", **labels) == 1
    assert value(metrics, "mcp_requests_total", name="other", **labels) == 1
    assert '"tool0"' not in metrics.render().decode()


async def test_what_is_registered_keeps_its_series(server, metrics):
    """Only removed names are given back."""
    call(metrics, "now")
    for n in range(MAX_NAMES - 1):
        call(metrics, f"tool{n}")
    server.tools.remove("talk")
    call(metrics, "echo")

    labels = {"method": "tools/call", "outcome": "ok"}
    assert value(metrics, "mcp_requests_total", name="now", **labels) == 1
    assert value(metrics, "mcp_requests_total", name="echo", **labels) == 1


async def test_tasks(server, metrics, autojump_clock):
    """Ended tasks are counted by outcome, kept ones by state."""
    server.tools.add(Job)
    async with connect(server, capabilities=KNOWS) as client:
        await begin(client, "job", how="ok")
        await begin(client, "job", how="crash")
        await begin(client, "job", how="wait")
        await trio.testing.wait_all_tasks_blocked()
        states = ("working", "completed", "failed", "cancelled")
        held = [value(metrics, "mcp_tasks_held", state=state) for state in states]

    ended = [
        value(metrics, "mcp_tasks_total", name="job", outcome=outcome)
        for outcome in ("ok", "crashed", "cancelled")
    ]
    assert held == [1, 2, 0, 0]  # a crash has a result that says so
    assert ended == [1, 1, 1]
    assert value(metrics, "mcp_tasks_held", state="completed") == 0
    labels = {"method": "tools/call", "name": "job", "outcome": "ok"}
    assert value(metrics, "mcp_requests_total", **labels) == 3  # each was answered with its task
    assert value(metrics, "mcp_requests_in_flight", method="tools/call") == 0


async def test_over_http(server):
    """With the option `/metrics` is in the format of Prometheus."""
    async with over_http(server, metrics=True) as http:
        await http.ask("tools/call", {"name": "now"})
        status, headers, body = await http(method="GET", path="/metrics")

    families = {family.name for family in text_string_to_metric_families(body.decode())}
    assert status == 200
    assert headers[b"content-type"] == b"text/plain; version=0.0.4; charset=utf-8"
    assert headers[b"cache-control"] == b"no-store"
    assert {"mcp_requests", "mcp_request_duration_seconds", "mcp_streams"} <= families
    assert 'mcp_requests_total{method="tools/call",name="now",outcome="ok"} 1.0' in body.decode()


async def test_off_by_default(server):
    """Without the option there is no endpoint and no listener."""
    async with over_http(server) as http:
        status, _, _ = await http(method="GET", path="/metrics")

    assert status == 404
    assert server.telemetry.listeners == []


async def test_metrics_of_ones_own(server, metrics):
    """Metrics of the application are used."""
    async with over_http(server, metrics=metrics) as http:
        await http.ask("tools/call", {"name": "now"})
        _, _, body = await http(method="GET", path="/metrics")

    assert server.telemetry.listeners == [metrics]
    assert body == metrics.render()


@pytest.mark.parametrize("wrong", [5, "yes", None, Metrics])
def test_what_are_no_metrics(server, wrong):
    """Other values are refused with the options, not in a request for `/metrics`."""
    text = "metrics must be True, False, or telemetry.Metrics of the server, not "
    with pytest.raises(ValueError, match=text):
        server.asgi(metrics=wrong)


def test_metrics_of_another_server(server, metrics):
    """They would show nothing of this server, so they are refused."""
    with pytest.raises(ValueError, match=r"metrics must be those of .*, another server"):
        App().asgi(metrics=metrics)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"method": "POST"}, 405),
    ],
)
async def test_guarded_like_the_rest(server, headers, status):
    """Foreign origins, unknown hosts and other methods are refused."""
    async with over_http(server, metrics=True) as http:
        got, _, body = await http(path="/metrics", **{"method": "GET", **headers})

    assert got == status
    assert b"mcp_requests" not in body


def test_without_the_library(server, monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.telemetry._series", None)

    with pytest.raises(ImportError, match=r"pip install 'noizu-mcp\[prometheus\]'"):
        Metrics(server)


async def test_asgi_takes_the_option(server):
    """`asgi(metrics=True)` enables the endpoint."""
    app = server.asgi(metrics=True)
    async with app.lifespan():
        status, _, body = await Http(app)(method="GET", path="/metrics")

    assert status == 200
    assert b"mcp_registered" in body


async def test_over_a_socket(server, nursery):
    """Prometheus can read the port of the protocol, with any client."""
    host = await nursery.start(partial(serve_http, server, port=0, metrics=True))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "now", "_meta": META}
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "now"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{host.port}") as client:
        answer = await client.post("/mcp", json=call, headers=headers)
        metrics = await client.get("/metrics")
    host.stop()

    assert answer.json()["result"]["content"][0]["text"] == "now"
    assert 'mcp_requests_total{method="tools/call",name="now",outcome="ok"} 1.0' in metrics.text


@pytest.mark.parametrize(("token", "status"), [("", 401), ("Bearer t0ken", 200)])
async def test_a_token_like_for_any_request(server, token, status):
    """Metrics need a token if the server authenticates its callers."""
    verifier = StaticVerifier({"t0ken": Principal(subject="prometheus", client_id="p")})
    auth = BearerAuth(verifier, resource="https://app.example/mcp", **ISSUERS)
    headers = {"authorization": token} if token else {}
    async with over_http(server, metrics=True, auth=auth) as http:
        got, _, body = await http(method="GET", path="/metrics", **headers)

    assert got == status
    assert (b"mcp_registered" in body) == (status == 200)


async def test_coerced_calls_are_counted(server, metrics):
    """They are counted by the name of the tool."""

    def count(n: int) -> str:
        return "." * n

    server.tools.add(count)
    async with connect(server) as client:
        for n in (1, "2", "3", "x"):
            await client.call_tool("count", {"n": n})

    assert value(metrics, "mcp_coerced_calls_total", name="count") == 2


async def test_decisions_and_abandoned_threads(server, metrics):
    """Decisions are counted by policy, and so are threads that outlive their calls."""
    server.policies.replace([DenyTools("fail")])
    async with connect(server) as client:
        await client.call_tool("echo", {"text": "hi"})
        for _ in range(2):
            await client.call_tool("fail", {"how": "tool"})

    assert value(metrics, "mcp_decisions_total", decision="allow", policy="") == 1
    assert value(metrics, "mcp_decisions_total", decision="deny", policy="DenyTools") == 2
    denied = {"method": "tools/call", "name": "fail", "outcome": "denied"}
    assert value(metrics, "mcp_requests_total", **denied) == 2
    assert value(metrics, "mcp_abandoned_threads") == 0
    server.abandoned.add("handler", 1)
    assert value(metrics, "mcp_abandoned_threads") == 1
