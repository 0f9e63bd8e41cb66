"""Laws of the peers, for any sequence of messages."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.jsonrpc import (
    Batch,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode,
)
from noizu_mcp.protocol import (
    CLIENT_REQUESTS,
    REVISIONS,
    SERVER_REQUESTS,
    CancelRequest,
    ClientPeer,
    Dispatch,
    Fanout,
    Ledger,
    Ready,
    ReportProgress,
    Resolve,
    SendAnswer,
    ServerPeer,
)

LAW = settings(max_examples=100, deadline=None)
PREFIX = "io.modelcontextprotocol/"

JSON = st.recursive(
    st.sampled_from([None, True, 0, 1, -1, 1.0, 1.5, "", "1", "x", 10**30]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "_meta"]), inner)
    ),
    max_leaves=4,
)
VERSIONS = st.sampled_from([*REVISIONS, "1999-01-01", None, 5])
META = st.fixed_dictionaries(
    {},
    optional={
        f"{PREFIX}protocolVersion": VERSIONS,
        f"{PREFIX}clientCapabilities": st.just({}) | JSON,
        f"{PREFIX}clientInfo": JSON,
        f"{PREFIX}logLevel": st.sampled_from(["debug", "loud", None, []]),
        "progressToken": JSON,
    },
)
MODERN = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "_meta": st.just(MODERN) | META | JSON,
        "protocolVersion": VERSIONS,
        "capabilities": JSON,
        "clientInfo": JSON,
        "requestId": st.sampled_from([1, 2, 3, "1", "a", True, 1.0, None, []]),
        "progressToken": st.sampled_from([1, 2, "1", 0, "", None]),
        "progress": JSON,
        "notifications": JSON,
    },
)
METHODS = st.sampled_from(
    [
        *CLIENT_REQUESTS,
        *SERVER_REQUESTS,
        *["initialize", "notifications/initialized", "notifications/cancelled"] * 4,
        "notifications/progress",
        "nobody/knows",
    ]
)
IDS = st.sampled_from([1, 2, 3, "1", "a", 1.0, True, None])
OBJECT = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0"] * 9 + ["1.0"]),
        "id": IDS,
        "method": METHODS,
        "params": PARAMS,
        "result": JSON,
        "error": st.fixed_dictionaries({"code": JSON, "message": JSON}) | JSON,
    },
)
CALL = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": METHODS}, optional={"id": IDS, "params": PARAMS}
)
ANSWER = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": IDS, "result": st.just({})})
ONE = CALL | ANSWER | OBJECT
WIRE = st.one_of(ONE, ONE, ONE, st.lists(ONE, max_size=4), JSON).map(json.dumps).map(str.encode)


def flat(message, event):
    """Pair each message of an array with its event; a single message is an array of one."""
    if isinstance(event, Fanout):
        return list(zip(message.messages, event.events, strict=True))
    return [(message, event)]


def check_answer(message, event, *, mute):
    """Check that a message is answered if, and only if, it must be."""
    if mute and isinstance(message, Request | Batch | Malformed):
        assert event is None or isinstance(event, Resolve)
    elif isinstance(message, Request):
        assert isinstance(event, Dispatch | SendAnswer)
        answered = event.request if isinstance(event, Dispatch) else event.message
        assert answered.id == message.id
        assert type(answered.id) is type(message.id)
    elif isinstance(message, Batch):
        assert isinstance(event, SendAnswer)
        assert event.message.id is None
    elif isinstance(message, Malformed):
        assert isinstance(event, SendAnswer) is message.answer
    else:
        assert not isinstance(event, Dispatch | SendAnswer)


def obey(ledger, pairs, running, waiting, *, mute):
    """Check the events of messages against the running and pending requests, and update these."""
    for message, event in pairs:
        check_answer(message, event, mute=mute)
        if isinstance(event, Dispatch):
            assert event.request.id not in running
            running.add(event.request.id)
        elif isinstance(event, CancelRequest):
            running.remove(event.id)
        elif isinstance(event, Resolve):
            waiting.remove(event.answer.id)
        elif isinstance(event, ReportProgress):
            assert event.token in waiting
        elif isinstance(event, SendAnswer):
            encode(event.message)
    assert (ledger.inbound, ledger.outbound) == (len(running), len(waiting))
    assert all(map(ledger.holds, running))
    assert all(map(ledger.awaits, waiting))


def drive(peer, script, open_request, *, mute=False):
    """Feed messages to a peer; sometimes send a request or a response ourselves.

    A mute peer sends no responses: the client's end of 2026-07-28.
    """
    running, waiting = set(), set()
    for data, ask, answer in script:
        if ask:
            waiting.add(open_request())
        message = decode(data)
        obey(peer.ledger, flat(message, peer.receive(message)), running, waiting, mute=mute)
        if answer and running:
            peer.ledger.finish(running.pop())
    assert peer.ledger.inbound == len(running) <= LIMIT


LIMIT = 3
SCRIPT = st.lists(st.tuples(WIRE, st.booleans(), st.booleans()), max_size=25)


@pytest.mark.slow
@LAW
@given(script=SCRIPT, version=st.sampled_from([None, *REVISIONS]))
def test_any_messages_to_a_server(script, version):
    """A server never raises, never runs one id twice, and answers every request once."""
    peer = ServerPeer(LIMIT)
    if version is not None:
        peer.receive(Request("hello", "initialize", {"protocolVersion": version}))
        peer.ledger.finish("hello")
        assert peer.receive(Notification("notifications/initialized")) == Ready()
    drive(peer, script, lambda: peer.ledger.open("ping", None).id)


@pytest.mark.slow
@LAW
@given(script=SCRIPT, revision=st.sampled_from(list(REVISIONS)))
def test_any_messages_to_a_client(script, revision):
    """A client never raises, never runs one id twice, and answers every request once.

    On 2026-07-28 it answers none.
    """
    peer = ClientPeer({}, {}, LIMIT)
    peer.revision = REVISIONS[revision]
    mute = peer.revision.stateless
    drive(peer, script, lambda: peer.request("tools/call", {}, progress=True).id, mute=mute)


@LAW
@given(data=st.lists(st.binary(max_size=40)))
def test_any_bytes(data):
    """Neither end raises for any bytes."""
    for peer in (ServerPeer(LIMIT), ClientPeer({}, {}, LIMIT)):
        for each in data:
            peer.receive(decode(each))


class End:
    """One end of a pair: its running requests, and its messages in transit."""

    def __init__(self, peer, ask):
        self.peer, self.ask = peer, ask
        self.outbox, self.running, self.waiting, self.done = [], [], [], []

    def post(self, message):
        self.outbox.append(encode(message))

    def take(self, data):
        message = decode(data)
        event = self.peer.receive(message)
        if isinstance(event, Dispatch):
            self.running.append(event.request.id)
        elif isinstance(event, SendAnswer):
            self.post(event.message)
        elif isinstance(event, CancelRequest):
            self.running.remove(event.id)
        elif isinstance(event, Resolve):
            self.waiting.remove(event.answer.id)
            self.done.append(event.answer.id)

    def act(self, action, pick):
        if action == "ask" and self.ask:
            request = self.ask()
            self.waiting.append(request.id)
            self.post(request)
        elif action in ("answer", "fail") and self.running:
            id_ = self.running.pop(pick % len(self.running))
            self.peer.ledger.finish(id_)
            self.post(Response(id_, {}) if action == "answer" else ErrorResponse(id_, -1, "no"))
        elif action == "cancel" and self.waiting:
            id_ = self.waiting.pop(pick % len(self.waiting))
            self.peer.ledger.close(id_)
            self.post(Notification("notifications/cancelled", {"requestId": id_}))


def pair(revision):
    client, server = ClientPeer({}, {}, 5), ServerPeer(5)
    ends = (
        End(client, lambda: client.request("tools/call", {}, progress=True)),
        End(server, lambda: server.ledger.open("roots/list", None)),
    )
    if revision == "2026-07-28":
        client.revision = REVISIONS[revision]
        ends[1].ask = None  # a server of that revision sends no requests
    else:
        hello = client.request("initialize", {"protocolVersion": revision})
        event = server.receive(decode(encode(hello)))
        client.revision = event.envelope.revision
        server.ledger.finish(hello.id)
        assert client.receive(Response(hello.id, {})) is not None
        server.receive(Notification("notifications/initialized"))
    return ends


ACTIONS = st.tuples(
    st.integers(0, 1),
    st.sampled_from(["ask", "ask", "answer", "fail", "cancel", "carry"]),
    st.integers(0, 9),
)


@pytest.mark.slow
@LAW
@given(revision=st.sampled_from(list(REVISIONS)), script=st.lists(ACTIONS, max_size=40))
def test_two_peers(revision, script):
    """Two peers have no open requests once everything has arrived and is answered."""
    ends = pair(revision)
    for which, action, pick in script:
        if action == "carry":
            carry(ends[which], ends[1 - which], 1 + pick)
        else:
            ends[which].act(action, pick)
    for _ in range(3):
        for here, there in (ends, ends[::-1]):
            carry(here, there, len(here.outbox))
            while here.running:
                here.act("answer", 0)
    for end in ends:
        assert (end.outbox, end.running, end.waiting) == ([], [], [])
        assert (end.peer.ledger.inbound, end.peer.ledger.outbound) == (0, 0)
        assert len(end.done) == len(set(end.done))


def carry(here, there, count):
    for data in here.outbox[:count]:
        there.take(data)
    del here.outbox[:count]


@pytest.mark.slow
@LAW
@given(ids=st.lists(st.integers(-3, 3) | st.sampled_from(["1", "2", ""])))
def test_ledger_is_a_set_of_ids(ids):
    """An accepted id is held until it is finished or cancelled, whichever comes first."""
    ledger, held = Ledger(4), set()
    for id_ in ids:
        refusal = ledger.accept(Request(id_, "m"))
        assert (refusal is None) is (id_ not in held and len(held) < 4)
        held = held | {id_} if refusal is None else held
        assert {each for each in ids if ledger.holds(each)} == held
        if refusal is not None:
            victim = next(iter(held))
            held = held - {victim}
            assert ledger.cancelled({"requestId": victim}) == CancelRequest(victim, None)
            ledger.finish(victim)
