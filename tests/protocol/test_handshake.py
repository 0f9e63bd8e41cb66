"""The server's side of the handshake era, phase by phase."""

import pytest

from noizu_mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
)
from noizu_mcp.protocol import (
    CLIENT_REQUESTS,
    REVISIONS,
    SERVER_REQUESTS,
    SUPPORTED_VERSIONS,
    CancelRequest,
    Dispatch,
    Notice,
    Phase,
    Ready,
    ReportProgress,
    Resolve,
    SendAnswer,
    ServerPeer,
)

INITIALIZED = Notification("notifications/initialized")
OF_HANDSHAKE = [m.name for m in CLIENT_REQUESTS.values() if m.handshake and m.name != "initialize"]
NOT_OF_HANDSHAKE = ["server/discover", "subscriptions/listen", "tools/frobnicate", ""]


def initialize(version="2025-11-25", id_=1, **params):
    return Request(id_, "initialize", {"protocolVersion": version, **params})


def cancelled(id_, **params):
    return Notification("notifications/cancelled", {"requestId": id_, **params})


@pytest.mark.parametrize(
    ("requested", "revision"),
    [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ],
)
def test_initialize(server, requested, revision):
    """The request is handled under the revision of its answer."""
    info = {"name": "c", "version": "1"}
    request = initialize(requested, clientInfo=info, capabilities={"roots": {}})
    event = server.receive(request)
    assert isinstance(event, Dispatch)
    assert event.request is request
    assert event.envelope.revision is REVISIONS[revision] is server.handshake.revision
    assert (event.envelope.client_info, event.envelope.client_capabilities) == (info, {"roots": {}})
    assert server.handshake.phase is Phase.INITIALIZING
    assert not server.handshake.ready


@pytest.mark.parametrize("version", [None, 5, ["2025-11-25"]])
def test_initialize_without_version(server, refused, version):
    """The version is required; the client may try again."""
    assert refused(server.receive(initialize(version)))[:2] == (1, INVALID_PARAMS)
    assert refused(server.receive(Request(1, "initialize")))[:2] == (1, INVALID_PARAMS)
    assert isinstance(server.receive(initialize()), Dispatch)


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_unknown_client(server, value):
    """A client without client info or capabilities is accepted."""
    envelope = server.receive(initialize(clientInfo=value, capabilities=value)).envelope
    assert envelope.client_info == {"name": "unknown", "version": "0.0.0"}
    assert envelope.client_capabilities == {}
    assert envelope.log_level == "debug"


@pytest.mark.parametrize(
    "params",
    [
        {"clientInfo": {"name": "x" * 66_000}},
        {"capabilities": {"experimental": {"x": "x" * 66_000}}},
        {"clientInfo": {"name": "x" * 33_000}, "capabilities": {"x": "é" * 17_000}},
        {"capabilities": {"experimental": dict.fromkeys(map(str, range(2000)), 1)}},
    ],
)
def test_a_client_that_says_too_much(server, refused, params):
    """Client data of a session is bounded; the client may try again with less."""
    text = "clientInfo and capabilities may have 65536 bytes of JSON and 2000 values"
    assert refused(server.receive(initialize(**params))) == (1, INVALID_PARAMS, text)
    assert isinstance(server.receive(initialize(unknown="x" * 99_000)), Dispatch)


def test_connections_share_nothing():
    """A handler that changes the context of one connection changes no other."""
    first = ServerPeer(1).receive(initialize()).envelope
    first.client_info["name"] = "changed"
    first.client_capabilities["x"] = {}
    first.meta["y"] = 1
    second = ServerPeer(1).receive(initialize()).envelope
    assert second.client_info["name"] == "unknown"
    assert (second.client_capabilities, second.meta) == ({}, {})


@pytest.mark.parametrize("finished", [False, True])
def test_initialize_twice(server, refused, finished):
    """A second initialize is refused, before and after the end of the handshake."""
    server.receive(initialize())
    if finished:
        server.ledger.finish(1)
        server.receive(INITIALIZED)
    expected = (2, INVALID_REQUEST, "Already initialized")
    assert refused(server.receive(initialize(id_=2))) == expected


def test_initialize_needs_room(refused):
    """Like any request, initialize counts as one in flight."""
    server = ServerPeer(1)
    server.receive(Request(1, "ping"))
    assert refused(server.receive(initialize(id_=1)))[:2] == (1, INVALID_REQUEST)
    assert refused(server.receive(initialize(id_=2)))[:2] == (2, INTERNAL_ERROR)
    server.ledger.finish(1)
    assert isinstance(server.receive(initialize(id_=2)), Dispatch)


@pytest.mark.parametrize("method", [m for m in (*OF_HANDSHAKE, "x") if m != "ping"])
def test_before_initialize(server, refused, method):
    """A request of neither era gets an error with the missing keys and the supported versions."""
    event = server.receive(Request(1, method))
    assert refused(event)[:2] == (1, INVALID_PARAMS)
    assert event.message.data == {
        "missing": [
            "io.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/clientCapabilities",
        ],
        "supported": list(SUPPORTED_VERSIONS),
    }


@pytest.mark.parametrize("method", [m for m in (*OF_HANDSHAKE, "x") if m != "ping"])
def test_before_initialized(handshaken, refused, method):
    """Between `initialize` and `notifications/initialized` requests are refused."""
    event = handshaken(ready=False).receive(Request(1, method))
    assert refused(event) == (1, INVALID_REQUEST, "Session not initialized")


def test_ping_in_every_phase(server, handshaken):
    """Ping is served in any phase."""
    for peer in (server, handshaken(ready=False), handshaken()):
        assert isinstance(peer.receive(Request(1, "ping")), Dispatch)


@pytest.mark.parametrize("method", OF_HANDSHAKE)
def test_known_methods(ready, method):
    """Every method of the era is dispatched with the context of the session."""
    request = Request("a", method, {"x": 1})
    event = ready.receive(request)
    assert isinstance(event, Dispatch)
    assert event.request is request
    assert event.envelope.client_info == {"name": "c", "version": "1"}


@pytest.mark.parametrize("method", [*NOT_OF_HANDSHAKE, *sorted(set(SERVER_REQUESTS) - {"ping"})])
def test_unknown_methods(ready, refused, method):
    """Unknown methods, and methods of the other era or direction, do not exist."""
    assert refused(ready.receive(Request(5, method))) == (
        5,
        METHOD_NOT_FOUND,
        f"Method not found: {method}",
    )


@pytest.mark.parametrize("token", [0, "", 1, "t", -1])
def test_progress_token(ready, token):
    """Any string or integer is a progress token, including the falsy ones."""
    meta = {"progressToken": token, "other": 1}
    envelope = ready.receive(Request(1, "tools/call", {"_meta": meta})).envelope
    assert (envelope.progress_token, envelope.meta) == (token, meta)


@pytest.mark.parametrize(
    "meta", [{"progressToken": value} for value in (None, True, 1.0, [], {})] + [None, [], 1, "x"]
)
def test_no_progress_token(ready, meta):
    """Other values are ignored."""
    envelope = ready.receive(Request(1, "tools/call", {"_meta": meta})).envelope
    assert envelope.progress_token is None
    assert type(envelope.meta) is dict


def test_envelope_without_request(ready):
    """The context of the session exists without a request, too."""
    ready.handshake.log_level = "error"
    envelope = ready.handshake.envelope()
    assert (envelope.log_level, envelope.progress_token, envelope.meta) == ("error", None, {})


def test_duplicate_id(ready, refused):
    """An id in flight is refused; the first request goes on, and `1` is not `"1"`."""
    assert isinstance(ready.receive(Request(1, "tools/call")), Dispatch)
    expected = (1, INVALID_REQUEST, "Duplicate in-flight request id")
    assert refused(ready.receive(Request(1, "tools/call"))) == expected
    assert isinstance(ready.receive(Request("1", "tools/call")), Dispatch)
    ready.ledger.finish(1)
    assert isinstance(ready.receive(Request(1, "tools/call")), Dispatch)


def test_in_flight_limit(handshaken, refused):
    """Above the limit a request is refused at once; a response makes room."""
    peer = handshaken(in_flight=2)
    for id_ in (1, 2):
        assert isinstance(peer.receive(Request(id_, "tools/call")), Dispatch)
    text = "More than 2 requests in flight; wait for answers"
    assert refused(peer.receive(Request(3, "tools/call"))) == (3, INTERNAL_ERROR, text)
    peer.ledger.finish(1)
    assert isinstance(peer.receive(Request(3, "tools/call")), Dispatch)
    assert peer.ledger.inbound == 2


def test_cancel(ready):
    """A cancellation names a request in flight; its id is free afterwards."""
    ready.receive(Request(1, "tools/call"))
    assert ready.receive(cancelled(1, reason="bored")) == CancelRequest(1, "bored")
    assert ready.receive(cancelled(1)) is None
    assert isinstance(ready.receive(Request(1, "tools/call")), Dispatch)
    assert ready.receive(cancelled(1, reason=5)) == CancelRequest(1, None)


@pytest.mark.parametrize("id_", ["1", 2, True, 1.0, None, [], {}])
def test_cancel_unknown(ready, id_):
    """Unknown, foreign and malformed ids are ignored."""
    ready.receive(Request(1, "tools/call"))
    assert ready.receive(cancelled(id_)) is None
    assert ready.receive(Notification("notifications/cancelled")) is None
    assert ready.receive(Notification("notifications/cancelled", {})) is None
    assert ready.ledger.inbound == 1


def test_cancel_own_request(ready):
    """A client cannot cancel a request of the server."""
    mine = ready.ledger.open("ping", None)
    assert ready.receive(cancelled(mine.id)) is None
    assert ready.receive(Response(mine.id, {})) == Resolve(Response(mine.id, {}))


def test_initialize_cannot_be_cancelled(server):
    """The handshake goes on; the id stays in flight until its response."""
    server.receive(initialize())
    assert server.receive(cancelled(1)) is None
    assert server.ledger.holds(1)


def test_initialized(server):
    """Only `notifications/initialized` after `initialize` makes the session ready, once."""
    assert server.receive(INITIALIZED) is None
    assert server.receive(Notification("initialize")) is None
    assert server.handshake.phase is Phase.NEW
    server.receive(initialize())
    assert server.receive(Notification("initialize")) is None
    assert server.receive(INITIALIZED) == Ready()
    assert server.receive(INITIALIZED) == Notice(INITIALIZED)


def test_notifications(server, handshaken):
    """Other notifications are accepted once the session is ready."""
    notice = Notification("notifications/roots/list_changed")
    assert server.receive(notice) is None
    assert handshaken(ready=False).receive(notice) is None
    assert handshaken().receive(notice) == Notice(notice)


def test_answers(ready):
    """A response resolves the request with its exact id, once."""
    first, second = ready.ledger.open("ping", None), ready.ledger.open("ping", None)
    assert (first.id, second.id) == (1, 2)
    for forged in (Response("1", {}), Response(3, {}), ErrorResponse(None, -1, "no")):
        assert ready.receive(forged) is None
    answer = ErrorResponse(1, -1, "no")
    assert ready.receive(answer) == Resolve(answer)
    assert ready.receive(answer) is None
    assert ready.ledger.outbound == 1


def test_late_answer(ready):
    """A response to a cancelled request is dropped."""
    request = ready.ledger.open("ping", None)
    ready.ledger.close(request.id)
    assert ready.receive(Response(request.id, {})) is None
    assert ready.ledger.open("ping", None).id == 2


def test_malformed(ready):
    """An invalid message is answered; an invalid response fails its request."""
    error = ErrorResponse(1, INVALID_REQUEST, "no")
    assert ready.receive(Malformed(error)) == SendAnswer(error)
    assert ready.receive(Malformed(error, answer=False)) is None
    ready.ledger.open("ping", None)
    assert ready.receive(Malformed(error, answer=False)) == Resolve(error)
    nameless = ErrorResponse(None, INVALID_REQUEST, "no")
    assert ready.receive(Malformed(nameless, answer=False)) is None


def test_progress(ready):
    """Progress counts for a request of the server until its response."""
    request = ready.ledger.open("sampling/createMessage", {})
    params = {"progressToken": request.id, "progress": 0.5, "total": None, "message": "half"}
    notice = Notification("notifications/progress", params)
    assert ready.receive(notice) == ReportProgress(request.id, params)
    ready.receive(Response(request.id, {}))
    assert ready.receive(notice) is None


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"progressToken": "1", "progress": 1},
        {"progressToken": True, "progress": 1},
        {"progressToken": 1.0, "progress": 1},
        {"progressToken": 0, "progress": 1},
        {"progressToken": "", "progress": 1},
        {"progressToken": [], "progress": 1},
        {"progressToken": 1},
        {"progressToken": 1, "progress": "1"},
        {"progressToken": 1, "progress": True},
        {"progressToken": 1, "progress": 1, "total": "2"},
        {"progressToken": 1, "progress": 1, "message": 5},
    ],
)
def test_bad_progress(ready, params):
    """Malformed progress, and progress of an unknown token, are ignored."""
    ready.ledger.open("sampling/createMessage", {})
    assert ready.receive(Notification("notifications/progress", params)) is None
