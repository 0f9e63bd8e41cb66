"""The client's peer, in either era."""

import pytest

from noizu_mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Batch,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
)
from noizu_mcp.protocol import (
    REVISIONS,
    SERVER_REQUESTS,
    STATELESS,
    CancelRequest,
    Dispatch,
    Fanout,
    Notice,
    ReportProgress,
    Resolve,
    SendAnswer,
    is_stateless,
)

PREFIX = "io.modelcontextprotocol/"


def test_handshake_requests(client):
    """With a handshake nothing is added; ids count from one."""
    assert client.request("ping", None) == Request(1, "ping")
    assert client.request("tools/list", {}) == Request(2, "tools/list", {})
    params = {"name": "x", "_meta": {"a": 1}}
    request = client.request("tools/call", params)
    assert request == Request(3, "tools/call", params)
    assert request.params is not params


def test_progress_token(client):
    """The id is the token; the caller's `_meta` is kept, and not modified."""
    assert client.request("x", None, progress=True).params == {"_meta": {"progressToken": 1}}
    params = {"a": 1, "_meta": {"b": 2, "progressToken": "mine"}}
    expected = {"a": 1, "_meta": {"b": 2, "progressToken": 2}}
    assert client.request("x", params, progress=True).params == expected
    assert params == {"a": 1, "_meta": {"b": 2, "progressToken": "mine"}}


@pytest.mark.parametrize("meta", [None, "x", [1]])
def test_a_malformed_meta(client, meta):
    """A `_meta` that is not an object is replaced."""
    request = client.request("x", {"_meta": meta}, progress=True)
    assert request.params == {"_meta": {"progressToken": 1}}


def test_stateless_requests(client):
    """Every request has version, client and capabilities, and a log level on demand."""
    client.revision = STATELESS
    expected = {
        f"{PREFIX}protocolVersion": "2026-07-28",
        f"{PREFIX}clientInfo": {"name": "c", "version": "1"},
        f"{PREFIX}clientCapabilities": {"sampling": {}, "elicitation": {}},
    }
    assert client.request("tools/list", None).params == {"_meta": expected}
    client.log_level = "info"
    forged = {"x": 1, f"{PREFIX}protocolVersion": "1999", "traceparent": "00-"}
    meta = client.request("tools/call", {"name": "n", "_meta": forged}).params["_meta"]
    assert meta == {"x": 1, "traceparent": "00-", **expected, f"{PREFIX}logLevel": "info"}


def test_probe(client):
    """A probe has the revision that it asks for, whatever is in use."""
    probe = client.request("server/discover", None, revision=STATELESS)
    assert is_stateless(probe.params)
    assert client.request("ping", None) == Request(2, "ping")


def test_answers(client):
    """A response resolves the request with its exact id, once; others are ignored."""
    request = client.request("ping", None)
    for forged in (Response("1", {}), Response(2, {}), ErrorResponse(None, -1, "no")):
        assert client.receive(forged) is None
    assert client.receive(Response(request.id, {})) == Resolve(Response(1, {}))
    assert client.receive(Response(request.id, {})) is None
    assert client.ledger.outbound == 0


def test_malformed(client):
    """A malformed response fails its request; other malformed messages are answered."""
    error = ErrorResponse(1, INVALID_REQUEST, "no")
    assert client.receive(Malformed(error, answer=False)) is None
    client.request("ping", None)
    assert client.receive(Malformed(error)) == SendAnswer(error)
    assert client.receive(Malformed(error, answer=False)) == Resolve(error)


@pytest.mark.parametrize("revision", REVISIONS)
def test_progress(client, revision):
    """Progress of a request in flight is reported in every revision."""
    client.revision = REVISIONS[revision]
    client.request("tools/call", {}, progress=True)
    params = {"progressToken": 1, "progress": 1}
    notice = Notification("notifications/progress", params)
    assert client.receive(notice) == ReportProgress(1, params)
    client.ledger.close(1)
    assert client.receive(notice) is None


def test_notices(client):
    """Every other notification is passed on."""
    notice = Notification("notifications/tools/list_changed")
    assert client.receive(notice) == Notice(notice)


@pytest.mark.parametrize("method", [m for m in SERVER_REQUESTS if m != "ping"])
def test_server_requests(client, method):
    """The server may send the requests of the era."""
    request = Request("s", method, {"_meta": {"progressToken": ""}})
    event = client.receive(request)
    assert isinstance(event, Dispatch)
    assert event.request is request
    assert (event.envelope.revision, event.envelope.progress_token) == (client.revision, "")


def test_ping(client, refused):
    """A ping is answered at once, also when everything is busy, except with an id in use."""
    for id_ in (1, 2, 3):
        client.receive(Request(id_, "roots/list"))
    assert client.receive(Request("p", "ping")) == SendAnswer(Response("p", {}))
    assert client.receive(Request("p", "ping")) == SendAnswer(Response("p", {}))
    assert refused(client.receive(Request(1, "ping")))[1:] == (
        INVALID_REQUEST,
        "Duplicate in-flight request id",
    )
    assert refused(client.receive(Request(4, "roots/list")))[1] == INTERNAL_ERROR


@pytest.mark.parametrize("method", ["tools/call", "initialize", "nobody/knows"])
def test_unknown_requests(client, refused, method):
    """An unknown method is not found."""
    expected = (1, METHOD_NOT_FOUND, f"Method not found: {method}")
    assert refused(client.receive(Request(1, method))) == expected


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        *((Request(1, method), f"the request {method!r}") for method in SERVER_REQUESTS),
        (Request("x", "nobody/knows"), "the request 'nobody/knows'"),
        (Request("x", "m" * 10_000), f"the request '{'m' * 60}'"),
        (Batch((Request("p", "ping"), Notification("x"))), "an array of messages"),
        (Malformed(ErrorResponse(None, -32700, "Parse error: x")), "a malformed message"),
        (Malformed(ErrorResponse(5, INVALID_REQUEST, "no")), "a malformed message"),
    ],
)
def test_stateless_clients_answer_nothing(client, caplog, message, shown):
    """On 2026-07-28 a client sends no responses, so requests are ignored."""
    client.revision = STATELESS
    client.request("tools/call", {})
    assert client.receive(message) is None
    assert (client.ledger.inbound, client.ledger.outbound) == (0, 1)
    assert f"ignored {shown} of the server" in caplog.text


def test_stateless_malformed_answers(client):
    """On 2026-07-28, too, a malformed response fails its request."""
    client.revision = STATELESS
    client.request("tools/call", {})
    error = ErrorResponse(1, INVALID_REQUEST, "no")
    assert client.receive(Malformed(error, answer=False)) == Resolve(error)


@pytest.mark.parametrize("id_", ["x", True, 1.0, None, []])
def test_cancelled_by_the_server(client, id_):
    """With a handshake the server can only cancel its own requests."""
    client.request("tools/call", {})
    client.receive(Request(7, "roots/list"))
    notice = Notification("notifications/cancelled", {"requestId": id_})
    assert client.receive(notice) is None
    mine = Notification("notifications/cancelled", {"requestId": 1})
    assert client.receive(mine) is None
    assert client.ledger.outbound == 1
    its = Notification("notifications/cancelled", {"requestId": 7, "reason": "late"})
    assert client.receive(its) == CancelRequest(7, "late")


def test_listen_ended_by_the_server(client):
    """On 2026-07-28 the server can only cancel the client's listen requests."""
    client.revision = STATELESS
    listen = client.request("subscriptions/listen", {"notifications": {}})
    notice = Notification("notifications/cancelled", {"requestId": listen.id})
    assert client.receive(notice) == Notice(notice)
    for id_ in ("1", 2, True, None, {}):
        assert client.receive(Notification("notifications/cancelled", {"requestId": id_})) is None
    assert client.receive(Notification("notifications/cancelled")) is None
    client.ledger.close(listen.id)
    assert client.receive(notice) is None


def test_batches(client, refused):
    """Arrays are read on 2025-03-26, refused by later handshakes, and ignored on 2026-07-28."""
    client.request("ping", None)
    batch = Batch((Request("p", "ping"), Response(1, {}), Response(1, {})))
    for name, revision in REVISIONS.items():
        client.revision = revision
        event = client.receive(batch)
        if name == "2025-03-26":
            events = (SendAnswer(Response("p", {})), Resolve(Response(1, {})), None)
            assert event == Fanout(events)
        elif revision.stateless:
            assert event is None
        else:
            assert refused(event) == (None, INVALID_REQUEST, "Batches are not supported")
