"""The renewal of a session: a client begins a new one when its server has ended the old one.

Source: 2025-11-25 `basic/transports`, "Session Management".
"""

from itertools import pairwise

import pytest
import trio
import trio.testing

from noizu_mcp import (
    Accept,
    AuthError,
    ClientHandler,
    ConnectionClosed,
    McpError,
    RequestTimeout,
    TransportError,
    connect,
)
from noizu_mcp.client import _renewal
from noizu_mcp.transports.http.client import _event_reader

from .scripted import EVENTS, Holding, Script, call_closed, serving

VERSION = "2025-11-25"
DONE = {"content": [{"type": "text", "text": "done"}]}
CHANGED = "notifications/tools/list_changed"


class Sessions(Script):
    """Knows one session at a time, and answers 404 to all others."""

    def __init__(self, **answers):
        super().__init__(**{"tools_call": done, **answers})
        self.alive = None
        self.info = {"name": "first", "version": "1"}
        self.offered = {"tools": {}}
        self.gone = {"error": "no session"}

    async def end(self):
        """End the session, once the client has opened its stream."""
        await self.until("GET", len(self.of("initialize")))
        self.alive = None

    async def answer(self, heard):
        if self.names(heard) in (None, self.alive):
            await super().answer(heard)
        else:
            self.heard.append(heard)
            await self.refuse(heard)

    async def refuse(self, heard):
        await heard.say(404, self.gone)

    def names(self, heard):
        return heard.headers.get("mcp-session-id")

    async def initialize(self, heard):
        assert self.names(heard) is None
        self.alive = f"s-{len(self.of('initialize'))}"
        version = heard.message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": self.offered, "serverInfo": self.info}
        await heard.result(result, mcp_session_id=self.alive)

    def hold_handshake(self):
        """Answer the next handshake when the event is set."""
        released = trio.Event()

        async def slow(heard):
            await released.wait()
            await Sessions.initialize(self, heard)

        self.answers["initialize"] = slow
        return released

    async def until(self, method, count):
        """Wait until a method was requested this many times."""
        with trio.fail_after(60):
            while len(self.of(method)) < count:
                await trio.lowlevel.checkpoint()


class Ears(ClientHandler):
    """Records notifications, and accepts questions once it may."""

    def __init__(self):
        self.send, self.heard = trio.open_memory_channel(100)
        self.asked = []
        self.may_answer = trio.Event()

    async def handle_notification(self, method, params):
        self.send.send_nowait((method, params.get("uri")))

    async def handle_elicitation(self, params):
        self.asked.append(params["message"])
        await self.may_answer.wait()
        return Accept({})


async def done(heard):
    await heard.result(DONE)


def asking(id_, text):
    """Make a question of a server."""
    params = {"message": text, "requestedSchema": {"type": "object", "properties": {}}}
    return {"jsonrpc": "2.0", "id": id_, "method": "elicitation/create", "params": params}


async def stands(heard):
    """Open the standing stream and end it at once."""
    await heard.head(kind=EVENTS)
    await heard.event("", id="a", retry="1")


async def text_of(client):
    return (await client.call_tool("t")).content[0].text


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_the_client_begins_a_new_session(version):
    """It does so without the old id; then the request is sent again with a new request id."""
    async with serving(Sessions()) as script:
        async with connect(script.url, version=version) as client:
            await script.end()
            assert await text_of(client) == "done"
            assert await text_of(client) == "done"
    assert len(script.of("initialize")) == 2
    assert [script.names(heard) for heard in script.of("notifications/initialized")] == [
        "s-1",
        "s-2",
    ]
    calls = script.of("tools/call")
    assert [script.names(heard) for heard in calls] == ["s-1", "s-2", "s-2"]
    assert len({heard.message["id"] for heard in calls}) == 3
    assert [script.names(heard) for heard in script.of("DELETE")] == ["s-2"]


async def test_one_handshake_for_all_requests():
    """Pending and new requests wait for it, and each is sent again."""
    async with serving(Sessions()) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.end()
            released = script.hold_handshake()
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(text_of, client)
                await script.until("initialize", 2)
                nursery.start_soon(text_of, client)
                await trio.testing.wait_all_tasks_blocked()
                released.set()
            assert len(script.of("initialize")) == 2
    assert [script.names(heard) for heard in script.of("tools/call")].count("s-2") == 6


async def test_a_request_that_lost_an_older_session():
    """If a new session has begun meanwhile, the request is only sent again."""
    held = trio.Event()

    async def hold(heard):
        script.answers["tools_call"] = done
        await held.wait()
        await heard.say(404)

    async with serving(Sessions(tools_call=hold)) as script:
        async with connect(script.url, version=VERSION) as client, trio.open_nursery() as nursery:
            nursery.start_soon(text_of, client)
            await script.until("tools/call", 1)
            await script.end()
            await text_of(client)
            held.set()
    assert len(script.of("initialize")) == 2
    assert len(script.of("tools/call")) == 4


@pytest.mark.parametrize("code", [None, -32001, -32600])
@pytest.mark.parametrize("id_", [None, "own", "server-error"])
async def test_404_ends_a_session_whatever_its_body_says(code, id_):
    """A 404 ends the session, even if its error has the id of the request."""

    async def refuse(heard):
        own = heard.message.get("id") if id_ == "own" else id_
        error = {"jsonrpc": "2.0", "id": own, "error": {"code": code, "message": "gone"}}
        await heard.say(404, error if code else b"<html>")

    async with serving(Sessions()) as script:
        script.refuse = refuse
        async with connect(script.url, version=VERSION) as client:
            await script.end()
            assert await text_of(client) == "done"


async def test_a_method_that_there_is_not():
    """Servers of both eras answer an unknown method with 404; the session goes on."""

    async def refuse(heard):
        await heard.refuse(404, -32601, "Method not found")

    async with serving(Sessions(x=refuse)) as script:
        async with connect(script.url, version=VERSION) as client:
            with pytest.raises(McpError, match="Method not found"):
                await client.request("x")
            await client.call_tool("t")
    assert len(script.of("initialize")) == 1


async def test_a_server_that_never_knows_a_session():
    """Each request causes one handshake, and fails with one error."""

    async def gone(heard):
        await heard.say(404)

    async with serving(Sessions(tools_call=gone)) as script:
        async with connect(script.url, version=VERSION) as client:
            for count in (2, 3):
                with pytest.raises(ConnectionClosed, match="and so is the one that began in its"):
                    await client.call_tool("t")
                assert len(script.of("initialize")) == count
                assert len(script.of("tools/call")) == 2 * (count - 1)


def answering(status, body=b""):
    async def answer(heard):
        await heard.say(status, body)

    return answer


async def wrong_version(heard):
    await heard.result({"protocolVersion": "1999-01-01", "capabilities": {}})


async def other_era(heard):
    await heard.refuse(400, -32022, "Unsupported protocol version", data={"supported": []})


async def hang_up(heard):
    pass


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (answering(401), AuthError, "no new one began: .* answered 401"),
        (answering(404), TransportError, "no new one began: .* answered 404"),
        (answering(503), TransportError, "no new one began: .* answered 503"),
        (wrong_version, ConnectionClosed, "'1999-01-01'; if .* another revision now, connect"),
        (other_era, ConnectionClosed, "Unsupported .* another revision now, connect again"),
        (hang_up, ConnectionClosed, "no new one began: .* broke before initialize"),
    ],
)
async def test_a_handshake_that_fails(answer, error, said):
    """After one handshake each waiting request fails; a later request tries again."""
    failures = []

    async def fail():
        with pytest.raises(error, match=said) as caught:
            await client.call_tool("t")
        failures.append(caught.value)

    async with serving(Sessions()) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.end()
            script.answers["initialize"] = answer
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(fail)
            assert len(script.of("initialize")) == 2
            assert len(set(map(id, failures))) == 3
            script.answers.pop("initialize")
            assert await text_of(client) == "done"
            assert script.names(script.of("tools/call")[-1]) == "s-3"


async def test_a_handshake_that_takes_too_long(autojump_clock):
    """A caller with a short timeout stops waiting; the handshake goes on for the next request."""
    async with serving(Sessions()) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.end()
            released = script.hold_handshake()
            with pytest.raises(RequestTimeout, match="no new one began within 2 s"):
                await client.call_tool("t", timeout=2)
            released.set()
            assert await text_of(client) == "done"
    assert len(script.of("initialize")) == 2


async def test_a_handshake_that_is_answered_too_late(autojump_clock):
    """It is cancelled when the next one begins, since its session would not be used."""
    hold = Holding()
    async with serving(Sessions()) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.end()
            script.answers["initialize"] = hold
            client.timeout = 2
            with pytest.raises(ConnectionClosed, match="initialize was not answered within 2 s"):
                await client.call_tool("t", timeout=60)
            client.timeout = 60
            script.answers.pop("initialize")
            assert await text_of(client) == "done"
            await hold.left.wait()


async def test_a_handshake_is_read_on_after_a_break():
    """It is resumed in the session that it begins, not in the old one."""

    async def broken(heard):
        script.alive = "s-2"
        await heard.head(kind=EVENTS, mcp_session_id="s-2")
        await heard.event("", id="a-1", retry="1")

    async def again(heard):
        if heard.headers.get("last-event-id") != "a-1":
            await heard.say(405)
            return
        await heard.head(kind=EVENTS)
        result = {"protocolVersion": VERSION, "capabilities": {}, "serverInfo": script.info}
        await heard.event(script.of("initialize")[-1].answer(result))

    async with serving(Sessions(GET=again)) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.end()
            script.answers["initialize"] = broken
            assert await text_of(client) == "done"
    resumed = [heard for heard in script.of("GET") if "last-event-id" in heard.headers]
    assert [script.names(heard) for heard in resumed] == ["s-2"]


async def test_what_is_said_of_the_server_is_new():
    """Server info, capabilities and the revision are replaced."""

    async def other(heard):
        script.alive = "s-2"
        info = {"name": "second", "version": "2"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"prompts": {}}}
        result |= {"serverInfo": info, "instructions": "Ask."}
        await heard.result(result, mcp_session_id="s-2")

    async with serving(Sessions()) as script:
        async with connect(script.url) as client:
            await script.end()
            script.answers["initialize"] = other
            await client.call_tool("t")
            assert client.server_info.name == "second"
            assert client.capabilities.has("prompts")
            assert not client.capabilities.has("tools")
            assert client.instructions == "Ask."
            assert client.protocol_version == "2025-06-18"
    assert script.heard[-1].headers["mcp-protocol-version"] == "2025-06-18"


async def test_a_new_session_is_like_the_old_one(caplog):
    """Log level and subscriptions are sent again; the handler is notified of possible changes."""

    async def subscribe(heard):
        if script.alive == "s-2" and heard.message["params"]["uri"] == "x:b":
            await heard.refuse(200, -32002, "Resource not found")
        else:
            await heard.result({})

    answers = {
        "logging_setLevel": answering_result,
        "resources_subscribe": subscribe,
        "resources_unsubscribe": answering_result,
    }
    ears = Ears()
    async with serving(Sessions(**answers)) as script:
        async with connect(script.url, version=VERSION, handler=ears) as client:
            await client.set_log_level("debug")
            for uri in ("x:a", "x:b", "x:c"):
                await client.subscribe(uri)
            await client.unsubscribe("x:c")
            await script.end()
            script.offered = {"prompts": {}}
            assert await text_of(client) == "done"
            told = [await ears.heard.receive() for _ in range(4)]
    again = [heard for heard in script.heard if script.names(heard) == "s-2"]
    assert [script.name_of(heard) for heard in again if heard.method == "POST"] == [
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "resources/subscribe",
        "tools/call",
    ]
    assert script.of("logging/setLevel")[-1].message["params"] == {"level": "debug"}
    assert told == [
        ("notifications/resources/updated", "x:a"),
        ("notifications/resources/updated", "x:b"),
        (CHANGED, None),
        ("notifications/prompts/list_changed", None),
    ]
    assert "resources/subscribe was not restored in a new session: Resource" in caplog.text


async def test_what_a_client_watches_no_longer():
    """If `unsubscribe` finds the session gone, the URI is subscribed again to be unsubscribed."""
    answers = {
        "resources_subscribe": answering_result,
        "resources_unsubscribe": answering_result,
    }
    async with serving(Sessions(**answers)) as script:
        async with connect(script.url, version=VERSION) as client:
            await client.subscribe("x:a")
            await script.end()
            await client.unsubscribe("x:a")
            await script.end()
            assert await text_of(client) == "done"
    asked = [heard for heard in script.heard if script.name_of(heard).startswith("resources/")]
    assert [(script.name_of(heard), script.names(heard)) for heard in asked] == [
        ("resources/subscribe", "s-1"),
        ("resources/unsubscribe", "s-1"),
        ("resources/subscribe", "s-2"),
        ("resources/unsubscribe", "s-2"),
    ]


async def answering_result(heard):
    await heard.result({})


# Questions of an earlier session


async def test_a_question_of_an_earlier_session_is_not_answered():
    """Ids restart in each session, so the answer would belong to another question."""
    ears = Ears()

    async def ask(heard):
        await heard.head(kind=EVENTS)
        await heard.event(asking(1, "first"))
        await heard.gone()

    async with serving(Sessions(tools_call=ask)) as script:
        async with (
            connect(script.url, version=VERSION, handler=ears) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(client.call_tool, "t")
            with trio.fail_after(60):
                while not ears.asked:
                    await trio.lowlevel.checkpoint()
            await script.end()
            script.answers["tools_call"] = done
            await client.call_tool("t")
            ears.may_answer.set()
            await client.call_tool("t")
            nursery.cancel_scope.cancel()
    assert script.of("answer") == []


async def test_a_question_of_an_earlier_session_is_not_asked(caplog):
    """Other messages on the streams of the earlier session still count."""
    ears = Ears()
    renewed = trio.Event()

    async def ask(heard):
        script.answers["tools_call"] = done
        await heard.head(kind=EVENTS)
        await renewed.wait()
        await heard.event(asking(1, "late"))
        await heard.event(heard.answer(DONE))

    async with serving(Sessions(tools_call=ask)) as script:
        async with (
            connect(script.url, version=VERSION, handler=ears) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(text_of, client)
            await script.until("tools/call", 1)
            await script.end()
            await client.call_tool("t")
            renewed.set()
    assert ears.asked == []
    assert "skipped a request of a session that has ended" in caplog.text


async def test_an_answer_that_is_lost_is_not_asked_for_again():
    """A request whose stream cannot be resumed (404) is not repeated, as it may have run."""

    async def call(heard):
        await script.end()
        script.answers["tools_call"] = done
        await stands(heard)

    async with serving(Sessions(tools_call=call)) as script:
        async with connect(script.url, version=VERSION) as client:
            with pytest.raises(ConnectionClosed, match="the answer to tools/call is lost"):
                await client.call_tool("t")
            assert len(script.of("initialize")) == 1
            assert await text_of(client) == "done"
    assert len(script.of("tools/call")) == 3


# The standing stream


async def test_who_only_listens_hears_again(monkeypatch):
    """A 404 for a stream that was open begins a new session at once."""
    monkeypatch.setattr(_renewal, "LIVED", 0.0)
    ended = trio.Event()

    async def stand(heard):
        await heard.head(kind=EVENTS)
        await heard.event({"jsonrpc": "2.0", "method": "notifications/x"}, id="a", retry="1")
        if script.alive == "s-1":
            await ended.wait()
            await script.end()
        else:
            await heard.gone()

    ears = Ears()
    async with serving(Sessions(GET=stand)) as script:
        tap = {"tap": lambda direction, data: None}
        async with connect(script.url, version=VERSION, handler=ears, **tap):
            assert await ears.heard.receive() == ("notifications/x", None)
            ended.set()
            with trio.fail_after(60):
                heard = {await ears.heard.receive() for _ in range(2)}
    assert heard == {(CHANGED, None), ("notifications/x", None)}
    assert [heard.headers.get("last-event-id") for heard in script.of("GET")] == [None, "a", None]


async def test_a_standing_stream_of_an_earlier_session():
    """It ends with its session, and its later messages are ignored."""
    hold, late, renewed = Holding(), trio.Event(), trio.Event()

    async def stand(heard):
        script.answers["GET"] = hold
        await heard.head(kind=EVENTS)
        await late.wait()
        await heard.event(asking(1, "late"))
        await heard.gone()
        renewed.set()

    async def taken(heard):
        late.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        await heard.say(202)

    ears = Ears()
    async with serving(Sessions(GET=stand)) as script:
        async with connect(script.url, version=VERSION, handler=ears) as client:
            await script.until("GET", 1)
            await script.end()
            script.answers["notifications_initialized"] = taken
            assert await text_of(client) == "done"
            await renewed.wait()
            await script.until("GET", 2)
    assert ears.asked == []
    assert [script.names(heard) for heard in script.of("GET")] == ["s-1", "s-2"]


async def test_a_standing_stream_that_comes_back_too_late(monkeypatch):
    """A 404 for a session that is over does not end the new one."""
    monkeypatch.setattr(_renewal, "LIVED", 0.0)
    monkeypatch.setattr(_event_reader, "RETRY", 0.001)
    ended = trio.Event()

    async def stand(heard):
        if script.names(heard) == "s-2":
            await heard.say(405)
            return
        await stands(heard)
        await ended.wait()

    async def taken(heard):
        if script.names(heard) == "s-2":
            ended.set()
            await script.until("GET", 2)
            await trio.testing.wait_all_tasks_blocked(0.05)
        await heard.say(202)

    async with serving(Sessions(GET=stand, notifications_initialized=taken)) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.end()
            assert await text_of(client) == "done"
            await script.until("GET", 3)
    assert len(script.of("initialize")) == 2
    assert [script.names(heard) for heard in script.of("GET")] == ["s-1", "s-1", "s-2"]


async def test_a_stream_of_a_server_without_sessions(monkeypatch, caplog):
    """A 404 is ignored in a server without sessions."""
    monkeypatch.setattr(_event_reader, "RETRY", 0.001)

    async def initialize(heard):
        result = {"protocolVersion": VERSION, "capabilities": {}, "serverInfo": script.info}
        await heard.result(result)

    async def stand(heard):
        if len(script.of("GET")) == 1:
            await stands(heard)
        else:
            await heard.say(404)

    async with serving(Sessions(initialize=initialize, GET=stand)) as script:
        async with connect(script.url, version=VERSION) as client:
            with trio.fail_after(60):
                while "refused the GET stream" not in caplog.text:
                    await client.call_tool("t")
    assert len(script.of("initialize")) == 1


async def test_a_stream_that_never_was_ends_no_session(caplog):
    """A 404 may mean that there is no such stream, so a new session is not begun."""

    async def refuse(heard):
        await heard.say(404)

    async with serving(Sessions(GET=refuse)) as script:
        async with connect(script.url, version=VERSION) as client:
            await client.call_tool("t")
    assert len(script.of("initialize")) == len(script.of("GET")) == 1
    assert caplog.text == ""


async def test_a_server_that_ends_each_session_at_once(monkeypatch):
    """After a few handshakes the client waits until there is a request."""
    monkeypatch.setattr(_event_reader, "RETRY", 0.001)
    monkeypatch.setattr(_renewal, "MAX_PAUSE", 0.001)
    pauses = []

    async def stand(heard):
        if script.names(heard) in pauses:
            await heard.say(404)
        else:
            pauses.append(script.names(heard))
            await stands(heard)

    async with serving(Sessions(GET=stand)) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.until("GET", 2 * _renewal.MAX_ATTEMPTS)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert len(script.of("initialize")) == _renewal.MAX_ATTEMPTS
            assert await text_of(client) == "done"
            assert len(script.of("initialize")) == _renewal.MAX_ATTEMPTS + 1


async def test_short_sessions_come_after_longer_and_longer_pauses(autojump_clock):
    """The pause depends on the life of each session, not of the connection."""
    began = [trio.current_time()]

    class Ending:
        ended = 0

        async def wait_session_end(self):
            if self.ended == len(began):
                await trio.sleep_forever()  # none has begun since
            self.ended = len(began)
            await trio.sleep(1)

    async def begin():
        began.append(trio.current_time())

    renewal = _renewal.Renewal()
    renewal.begin = begin
    async with trio.open_nursery() as nursery:
        nursery.start_soon(renewal.run, Ending())
        await trio.sleep(10_000)
        nursery.cancel_scope.cancel()
    assert [after - before for before, after in pairwise(began)] == [1 + 6, 1 + 12, 1 + 24, 1 + 48]


async def test_a_handshake_that_fails_for_who_only_listens(monkeypatch, caplog):
    """It is tried again after a while, up to a limit."""
    monkeypatch.setattr(_event_reader, "RETRY", 0.001)
    monkeypatch.setattr(_renewal, "MAX_PAUSE", 0.001)
    monkeypatch.setattr(_renewal, "LIVED", 0.0)

    async def stand(heard):
        await stands(heard)
        await script.end()
        script.answers["initialize"] = answering(503)

    async with serving(Sessions(GET=stand)) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.until("initialize", 1 + _renewal.MAX_ATTEMPTS)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert len(script.of("initialize")) == 1 + _renewal.MAX_ATTEMPTS
            script.answers.pop("initialize")
            assert await text_of(client) == "done"
    assert "no new one began: " in caplog.text


# The end


async def test_closing_begins_no_session():
    """A 404 for the DELETE is accepted."""
    async with serving(Sessions()) as script:
        async with connect(script.url, version=VERSION):
            await script.end()
    assert len(script.of("DELETE")) == 1
    assert len(script.of("initialize")) == 1


async def test_closing_while_a_session_begins():
    """Waiting and later callers get `ConnectionClosed`."""
    failed = []

    hold = Holding()
    async with serving(Sessions()) as script:
        async with trio.open_nursery() as nursery:
            async with connect(script.url, version=VERSION) as client:
                await script.end()
                script.answers["initialize"] = hold
                nursery.start_soon(call_closed, client, failed)
                await script.until("initialize", 2)
            await hold.left.wait()
        await call_closed(client, failed)
    said = "the connection ended before initialize was answered"
    assert failed == [
        f"the session is over, and no new one began: {said}",
        "the connection ended before a new session began",
    ]


async def test_cancelling_while_a_session_begins():
    """Cancelling one request does not cancel the new session for others."""
    scope = trio.CancelScope()

    async def given_up():
        with scope:
            await client.call_tool("t")

    async with serving(Sessions()) as script:
        async with connect(script.url, version=VERSION) as client:
            await script.end()
            released = script.hold_handshake()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(given_up)
                await script.until("initialize", 2)
                nursery.start_soon(text_of, client)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
                released.set()
    assert scope.cancelled_caught
    assert len(script.of("initialize")) == 2
    assert len(script.of("tools/call")) == 2
