"""Both eras on one pipe, and arrays of messages."""

import pytest

from noizu_mcp.jsonrpc import (
    INVALID_REQUEST,
    Batch,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
)
from noizu_mcp.protocol import (
    LATEST_HANDSHAKE,
    STATELESS,
    CancelRequest,
    Dispatch,
    Fanout,
    Notice,
    Ready,
    Resolve,
    SendAnswer,
    read_stateless,
)

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
NO_BATCHES = "JSON-RPC batching is not supported by this revision of MCP"


def modern(id_, method="tools/call"):
    return Request(id_, method, {"_meta": META})


def test_interleaved(server, refused):
    """Each message is assigned to its era, before, during and after the handshake."""
    assert server.receive(modern(1)).envelope.revision is STATELESS
    initialize = Request(
        2, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}}
    )
    assert server.receive(initialize).envelope.revision is LATEST_HANDSHAKE
    assert server.receive(modern(3, "server/discover")).envelope.client_capabilities == {}
    assert refused(server.receive(Request(4, "tools/call")))[1] == INVALID_REQUEST
    assert server.receive(Notification("notifications/initialized")) == Ready()
    old, new = server.receive(Request(4, "tools/call")), server.receive(modern(5))
    assert (old.envelope.revision, old.envelope.client_capabilities) == (
        LATEST_HANDSHAKE,
        {"roots": {}},
    )
    assert (new.envelope.revision, new.envelope.client_capabilities) == (STATELESS, {})
    assert (old.envelope.log_level, new.envelope.log_level) == ("debug", None)


def test_the_revision_of_what_comes_and_goes(server):
    """It is known after a message of the client; a request may carry its own."""
    stray = Notification("notifications/cancelled", {})
    assert (server.revision, server.revision_of(stray)) == (None, None)
    server.receive(modern(1))
    assert (server.revision, server.revision_of(stray)) == (STATELESS, STATELESS)
    assert server.revision_of(modern(1)) is STATELESS
    old = Request(2, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
    assert server.receive(old).envelope.revision is server.revision
    assert server.revision_of(stray).name == server.revision_of(old).name == "2025-06-18"
    unknown = {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}
    assert server.revision_of(Request(3, "tools/call", unknown)) is None
    assert server.revision_of(modern(4)) is STATELESS


def test_a_request_without_its_context():
    """Over HTTP the headers may declare 2026-07-28, whatever the body has."""
    assert read_stateless(Request(1, "tools/list")).message.code == -32602


def test_one_space_of_ids(ready, refused):
    """Requests of both eras share one space of ids; a cancellation finds both."""
    ready.receive(Request(1, "tools/call"))
    assert refused(ready.receive(modern(1)))[1] == INVALID_REQUEST
    ready.receive(modern(2))
    assert refused(ready.receive(Request(2, "tools/call")))[1] == INVALID_REQUEST
    for id_ in (1, 2):
        notice = Notification("notifications/cancelled", {"requestId": id_})
        assert ready.receive(notice) == CancelRequest(id_, None)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_no_batches(handshaken, refused, version):
    """Only 2025-03-26 has arrays; other revisions refuse them with one error."""
    batch = Batch((Request(1, "ping"), Response(1, {})))
    expected = (None, INVALID_REQUEST, NO_BATCHES)
    assert refused(handshaken(version).receive(batch)) == expected


def test_no_batch_before_initialize(server, refused):
    """Before a revision is negotiated there are no arrays."""
    batch = Batch((Request(1, "initialize", {"protocolVersion": "2025-03-26"}),))
    assert refused(server.receive(batch)) == (None, INVALID_REQUEST, NO_BATCHES)
    assert refused(server.receive(Batch((modern(1),)))) == (None, INVALID_REQUEST, NO_BATCHES)


def test_batch(handshaken):
    """Each message of an array has the same meaning as alone, in order."""
    peer = handshaken("2025-03-26")
    mine = peer.ledger.open("ping", None)
    first, notice = Request(1, "tools/call"), Notification("notifications/roots/list_changed")
    error = ErrorResponse(None, INVALID_REQUEST, "no")
    fanout = peer.receive(
        Batch(
            (
                first,
                Response(mine.id, {}),
                notice,
                Notification("notifications/cancelled", {"requestId": 1}),
                Notification("notifications/cancelled", {"requestId": 1}),
                Request(2, "nobody/knows"),
                Malformed(error),
                Malformed(error, answer=False),
            )
        )
    )
    assert isinstance(fanout, Fanout)
    dispatch, resolve, told, cancel, nothing, unknown, broken, silent = fanout.events
    assert dispatch.request is first
    assert resolve == Resolve(Response(mine.id, {}))
    assert (told, cancel, nothing) == (Notice(notice), CancelRequest(1, None), None)
    assert (unknown.message.id, unknown.message.code) == (2, -32601)
    assert (broken, silent) == (SendAnswer(error), None)


def test_batch_of_notifications(handshaken):
    """An array of notifications has no answer."""
    notices = [Notification("notifications/roots/list_changed"), Notification("x/y")]
    events = handshaken("2025-03-26").receive(Batch(tuple(notices))).events
    assert events == (Notice(notices[0]), Notice(notices[1]))


def test_duplicate_in_batch(handshaken):
    """The second of two requests with one id in an array is refused."""
    batch = Batch((Request(1, "tools/call"), Request(1, "tools/call")))
    first, second = handshaken("2025-03-26").receive(batch).events
    assert isinstance(first, Dispatch)
    assert second.message.message == "Duplicate in-flight request id"


@pytest.mark.parametrize("ready", [False, True])
def test_initialize_in_batch(handshaken, ready):
    """`initialize` must not be in an array; the rest of the array is served."""
    batch = Batch((Request(1, "initialize", {"protocolVersion": "2025-03-26"}), Request(2, "ping")))
    refusal, ping = handshaken("2025-03-26", ready=ready).receive(batch).events
    text = "initialize must not be part of a batch"
    assert refusal == SendAnswer(ErrorResponse(1, INVALID_REQUEST, text))
    assert isinstance(ping, Dispatch)


def test_initialized_in_batch(handshaken):
    """The end of the handshake may be in the array that uses it."""
    batch = Batch((Notification("notifications/initialized"), Request(2, "tools/list")))
    done, listing = handshaken("2025-03-26", ready=False).receive(batch).events
    assert done == Ready()
    assert isinstance(listing, Dispatch)


def test_modern_request_in_batch(handshaken):
    """2026-07-28 has no arrays, whatever was negotiated on the pipe."""
    (event,) = handshaken("2025-03-26").receive(Batch((modern(1),))).events
    text = "A 2026-07-28 request must not be part of a batch"
    assert event == SendAnswer(ErrorResponse(1, INVALID_REQUEST, text))


def test_batch_from_bytes(handshaken):
    """An empty array is answered with one error, as JSON-RPC says, in any revision."""
    for version in ("2025-03-26", "2025-11-25"):
        event = handshaken(version).receive(decode(b"[]"))
        assert (event.message.id, event.message.code) == (None, INVALID_REQUEST)
