"""Sessions that are sealed into their ids: every process with the keys can serve them."""

import pytest
import trio

from noizu_mcp import Server, Toolkit, mcp
from noizu_mcp.server.registry._server_options import KEYS_VARIABLE
from noizu_mcp.transports.http.server import _session_id
from noizu_mcp.types import Principal

from ...kit.messages import call, message
from .wire import Session, serving

KEYS = ["a secret that is long enough for it"]


class Kit(Toolkit):
    @mcp
    async def slow(self) -> str:
        """Take longer than a client waits for a plain answer."""
        await trio.sleep(2)
        return "done"

    @mcp
    async def who(self, args, ctx) -> str:
        """Say what is known of the session."""
        return f"{ctx.client_info.name} {ctx.protocol_version} {ctx.session.get('set')}"


def node(name="node", keys=KEYS):
    """Make a server, as another process would."""

    class Node(Server, name=name, version="1", state_keys=keys):
        tools = [Kit]

        async def init(self, ctx):
            await ctx.put_session("set", "up")

    return Node()


async def ask(session):
    """Call the tool; return its text, or the status of a failure."""
    answer = await session.post(call("who"))
    if answer.status != 200:
        return answer.status
    return answer.json["result"]["content"][0]["text"]


def at(wire, session):
    """Return the same session, at another process."""
    return Session(wire, session.id, session.headers["mcp-protocol-version"], ())


async def test_another_process_takes_a_session_up(autojump_clock):
    """It restores the negotiated values, and runs `init` again."""
    async with serving(node(), seal_sessions=True) as first:
        session = await first.session("2025-06-18")
        assert await ask(session) == "test 2025-06-18 up"
    async with serving(node(), seal_sessions=True) as second:
        again = at(second, session)
        assert [await ask(again), await ask(again)] == ["test 2025-06-18 up"] * 2
        assert len(second.endpoint.sessions) == 1


async def test_streams_of_another_process_are_not_taken_for_its_own(autojump_clock):
    """A client that resumes at another process must not get another client's response."""
    async with serving(node(), seal_sessions=True) as first:
        session = await first.session()
        last = (await session.post(call("slow"))).events[0]["id"]
    async with serving(node(), seal_sessions=True) as second:
        again = at(second, session)
        assert (await again.post(call("slow", id_="other"))).events
        stream = again.get(last)
        await stream.ended.wait()
        assert (stream.status, stream.error) == (400, -32600)


async def test_another_process_may_hear_the_end_of_the_handshake(autojump_clock):
    """A sealed session works in a process that did not see the end of its handshake."""
    async with serving(node(), seal_sessions=True) as first:
        session = await first.session(ready=False)
        async with serving(node(), seal_sessions=True) as second:
            done = await at(second, session).post(message("notifications/initialized"))
            assert done.status == 202
        assert await ask(session) == "test 2025-11-25 up"
    async with serving(node()) as alone:
        assert await ask(await alone.session(ready=False)) == 400


async def test_an_id_is_visible_ascii():
    """2025-11-25 `basic/transports`, "Session Management"."""
    async with serving(node(), seal_sessions=True) as wire:
        session = await wire.session()
        assert all(0x21 <= ord(char) <= 0x7E for char in session.id)


@pytest.mark.parametrize(
    "other",
    [{"name": "other"}, {"keys": ["another secret that is long enough"]}],
    ids=["server", "keys"],
)
async def test_others_do_not(autojump_clock, other):
    """Another server, other keys, and a server that does not seal do not restore it."""
    async with serving(node(), seal_sessions=True) as first:
        session = await first.session()
    async with serving(node(**other), seal_sessions=True) as second:
        assert await ask(at(second, session)) == 404
    async with serving(node()) as third:
        assert await ask(at(third, session)) == 404


@pytest.mark.parametrize(
    "change", [lambda id_: id_[:-2] + "AA", lambda _: "x", lambda _: "x" * 9000]
)
async def test_a_changed_id_is_unknown(autojump_clock, change):
    """It is unknown, like every other id."""
    async with serving(node(), seal_sessions=True) as wire:
        session = await wire.session()
        session.headers["mcp-session-id"] = change(session.id)
        assert await ask(session) == 404


@pytest.mark.parametrize(
    "spell", [lambda id_: id_ + "=", lambda id_: id_.replace("-", "+").replace("_", "/") + "=="]
)
async def test_an_id_has_one_spelling(autojump_clock, spell):
    """A session that its client has ended has no second spelling to go on with."""
    async with serving(node(), seal_sessions=True) as wire:
        session = await wire.session()
        assert (await session.delete()).status == 200
        session.headers["mcp-session-id"] = spell(session.id)
        assert await ask(session) == 404
        assert len(wire.endpoint.sessions) == 0


async def test_an_id_of_somebody_else_is_nothing_to_warn_of(autojump_clock, caplog):
    """Unknown ids are normal after a restart; a modified sealed id is logged as a warning."""
    async with serving(node(), seal_sessions=True) as wire:
        session = await wire.session()
        for id_ in (
            "x",
            "x" * 32,
            node(keys=["another secret that is long enough"]).sealer.seal(1, {}),
        ):
            session.headers["mcp-session-id"] = id_
            assert await ask(session) == 404
        assert caplog.records == []
        session.headers["mcp-session-id"] = session.id[:-3] + "AAA"
        assert [await ask(session), await ask(session)] == [404, 404]
    (record,) = caplog.records
    assert record.getMessage() == "an Mcp-Session-Id was refused: it was changed on its way"


async def test_keys_that_end_with_the_process(autojump_clock, caplog, monkeypatch):
    """Without fixed keys sealed sessions cannot outlive the process: the start logs a warning."""

    class Keyless(Server, name="keyless", version="1"):
        pass

    async with serving(Keyless(), seal_sessions=True):
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert "state_keys" in record.getMessage()
        assert KEYS_VARIABLE in record.getMessage()
    caplog.clear()
    monkeypatch.setenv(KEYS_VARIABLE, KEYS[0])
    async with serving(Keyless(), seal_sessions=True):
        assert caplog.records == []


async def test_what_a_client_ends_does_not_come_back(autojump_clock, monkeypatch):
    """In this process it stays ended for as long as that is remembered."""
    monkeypatch.setattr(_session_id, "MAX_ENDED", 1)
    async with serving(node(), seal_sessions=True) as wire:
        first, second = await wire.session(), await wire.session()
        assert (await first.delete()).status == 200
        assert await ask(first) == 404
        assert (await second.delete()).status == 200
        assert await ask(second) == 404
        assert await ask(first) == "test 2025-11-25 up"  # too many have ended since


async def test_an_idle_session_comes_back(autojump_clock):
    """A session that was dropped when idle is restored by its next request."""
    async with serving(node(), seal_sessions=True, limits={"session_idle": 10}) as wire:
        session = await wire.session()
        wire.endpoint.sessions.end(session.served)
        assert len(wire.endpoint.sessions) == 0
        assert await ask(session) == "test 2025-11-25 up"


async def test_a_client_that_says_too_much_gets_a_random_id():
    """The client's data would not fit into a header."""
    capabilities = {"experimental": {"x": {"text": "x" * 5000}}}
    async with serving(node(), seal_sessions=True) as wire:
        session = await wire.session(capabilities=capabilities)
        assert len(session.id) == 32
        assert await ask(session) == "test 2025-11-25 up"


def test_an_id_belongs_to_its_principal():
    """An id does not work for another principal."""
    agreed = {"version": "2025-11-25", "client": {}, "capabilities": {}}
    owner = Principal(subject="ada").key
    ids = _session_id.SessionIds(node(), sealed=True)
    id_ = ids.make(agreed, owner)
    assert ids.read(id_, owner) == agreed
    assert ids.read(id_, Principal(subject="eve").key) is None
    assert ids.read(id_, None) is None


async def test_a_list_change_reaches_a_session_that_was_taken_up(autojump_clock):
    """It is notified of changes like a session that began here."""
    async with serving(node(), seal_sessions=True) as first:
        session = await first.session()
    server = node()
    async with serving(server, seal_sessions=True) as second:
        again = at(second, session)
        await ask(again)
        stream = again.get()
        server.notify_changed("tools")
        changed = message("notifications/tools/list_changed")
        await stream.until(lambda each: changed in each.messages)
        stream.leave()
