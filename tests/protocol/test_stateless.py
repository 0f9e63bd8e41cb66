"""Requests of 2026-07-28: each carries its own context."""

import pytest

from noizu_mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Notification,
    Request,
)
from noizu_mcp.protocol import (
    CLIENT_REQUESTS,
    STATELESS,
    SUPPORTED_VERSIONS,
    CancelRequest,
    Dispatch,
    ServerPeer,
    is_stateless,
)

PREFIX = "io.modelcontextprotocol/"
VERSION, CAPABILITIES = f"{PREFIX}protocolVersion", f"{PREFIX}clientCapabilities"
INFO, LEVEL = f"{PREFIX}clientInfo", f"{PREFIX}logLevel"
META = {VERSION: "2026-07-28", CAPABILITIES: {}}
MODERN = [method.name for method in CLIENT_REQUESTS.values() if method.stateless]
GONE = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]


def call(method="tools/call", id_=1, **meta):
    return Request(id_, method, {"_meta": {**META, **meta}})


@pytest.mark.parametrize(
    ("params", "modern"),
    [
        (None, False),
        ({}, False),
        ({"_meta": None}, False),
        ({"_meta": [VERSION]}, False),
        ({"_meta": {}}, False),
        ({"_meta": {INFO: {}, "progressToken": 1}}, False),
        ({VERSION: "2026-07-28"}, False),
        ({"_meta": {VERSION: None}}, True),
        ({"_meta": {CAPABILITIES: None}}, True),
        ({"_meta": META}, True),
    ],
)
def test_era(params, modern):
    """One of the two required keys makes a request stateless."""
    assert is_stateless(params) is modern


@pytest.mark.parametrize("method", MODERN)
def test_methods(server, method):
    """Every method of the revision is dispatched, without a handshake."""
    request = call(method)
    event = server.receive(request)
    assert isinstance(event, Dispatch)
    assert event.request is request
    assert event.envelope.revision is STATELESS


@pytest.mark.parametrize("method", [*GONE, "roots/list", "elicitation/create", "nobody/knows"])
def test_no_such_method(server, ready, refused, method):
    """Removed methods are not found, even if the older era has them."""
    for peer in (server, ready):
        expected = (1, METHOD_NOT_FOUND, f"Method not found: {method}")
        assert refused(peer.receive(call(method))) == expected


@pytest.mark.parametrize(
    ("meta", "missing"),
    [
        ({VERSION: "2026-07-28"}, [CAPABILITIES]),
        ({VERSION: "2026-07-28", CAPABILITIES: None}, [CAPABILITIES]),
        ({VERSION: "2026-07-28", CAPABILITIES: []}, [CAPABILITIES]),
        ({CAPABILITIES: {}}, [VERSION]),
        ({VERSION: 20260728, CAPABILITIES: {}}, [VERSION]),
        ({VERSION: None, CAPABILITIES: "x"}, [VERSION, CAPABILITIES]),
        ({VERSION: "nonsense"}, [CAPABILITIES]),
    ],
)
def test_missing_keys(server, refused, meta, missing):
    """A missing or mistyped key is named, before other checks."""
    for method in ("tools/call", "initialize", "nobody/knows"):
        event = server.receive(Request(1, method, {"_meta": meta}))
        text = f"_meta requires {' and '.join(missing)}"
        assert refused(event) == (1, INVALID_PARAMS, text)
        assert event.message.data == {"missing": missing, "supported": list(SUPPORTED_VERSIONS)}


@pytest.mark.parametrize("version", ["2099-01-01", "v999.0.0", "", *SUPPORTED_VERSIONS[1:]])
@pytest.mark.parametrize("method", ["server/discover", "tools/call", "ping"])
def test_unsupported_version(server, refused, version, method):
    """Only this revision is served in this way; the error lists the versions."""
    event = server.receive(call(method, **{VERSION: version}))
    assert refused(event) == (1, UNSUPPORTED_VERSION, "Unsupported protocol version")
    assert event.message.data == {"supported": list(SUPPORTED_VERSIONS), "requested": version}


@pytest.mark.parametrize("level", ["loud", "", "DEBUG", 3, True, [], {}])
def test_bad_log_level(server, refused, level):
    """An unknown log level is refused."""
    expected = (1, INVALID_PARAMS, "Invalid log level")
    assert refused(server.receive(call(**{LEVEL: level}))) == expected


def test_envelope(server):
    """The context comes from this request only."""
    info = {"name": "c", "version": "1"}
    meta = {INFO: info, LEVEL: "error", "progressToken": 0, "x": 1}
    envelope = server.receive(call(**{CAPABILITIES: {"roots": {}}}, **meta)).envelope
    assert envelope.client_info == info
    assert envelope.client_capabilities == {"roots": {}}
    assert (envelope.log_level, envelope.progress_token) == ("error", 0)
    assert envelope.meta == {**META, CAPABILITIES: {"roots": {}}, **meta}
    second = server.receive(call(id_=2)).envelope
    assert (second.client_info, second.client_capabilities) == (None, {})
    assert (second.log_level, second.progress_token) == (None, None)


@pytest.mark.parametrize("value", [None, "x", [], 5])
def test_optional_keys(server, value):
    """Malformed optional keys count as absent."""
    meta = {INFO: value, LEVEL: None, "progressToken": [value]}
    envelope = server.receive(call(**meta)).envelope
    assert (envelope.client_info, envelope.log_level, envelope.progress_token) == (None, None, None)


def test_ids(refused):
    """Ids must be unique, and the limit applies, on the whole pipe."""
    server = ServerPeer(2)
    assert isinstance(server.receive(call(id_=1)), Dispatch)
    assert refused(server.receive(call(id_=1)))[:2] == (1, INVALID_REQUEST)
    assert isinstance(server.receive(call(id_="1")), Dispatch)
    assert refused(server.receive(call(id_=2)))[:2] == (2, INTERNAL_ERROR)


def test_cancel(server):
    """A cancellation belongs to no era: it names an id of the pipe."""
    server.receive(call("subscriptions/listen", id_="sub"))
    notice = Notification("notifications/cancelled", {"requestId": "sub"})
    assert server.receive(notice) == CancelRequest("sub", None)
    assert server.receive(notice) is None


def test_notifications(server):
    """Without a session other notifications are ignored."""
    assert server.receive(Notification("notifications/initialized")) is None
    assert server.receive(Notification("notifications/roots/list_changed")) is None
