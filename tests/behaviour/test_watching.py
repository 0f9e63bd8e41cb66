"""Updates of resources: subscriptions of sessions, filters of listen requests."""

import pytest
import trio

from noizu_mcp import ClientHandler, McpError, Server, connect

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

handshake = pytest.mark.parametrize("revision", HANDSHAKE, indirect=True)
stateless = pytest.mark.parametrize("revision", [STATELESS], indirect=True)
in_memory = pytest.mark.parametrize("transport", ["memory"], indirect=True)


class Ear(ClientHandler):
    """Keeps the updates that come."""

    def __init__(self):
        self.seen = []
        self.heard = trio.Event()

    async def handle_notification(self, method, params):
        self.seen.append((method, params["uri"]))
        self.heard.set()


@pytest.fixture
async def wire(opened):
    async with opened("Pantry") as wire:
        yield wire


async def subscribe(wire, uri):
    return await wire.ask("resources/subscribe", {"uri": uri})


async def listen(wire, id_="listen", **wanted):
    """Open a listen request; return the accepted filter."""
    await wire.begin("subscriptions/listen", {"notifications": wanted}, id_=id_)
    params = await wire.notice(ACKNOWLEDGED)
    assert params["_meta"][SUBSCRIPTION] == id_
    return params["notifications"]


async def touch(wire, *uris):
    assert await wire.text("touch", {"uris": list(uris)}) == "touched"


async def watch(wire, *uris):
    """Watch resources in the way of the revision."""
    if wire.stateless:
        assert await listen(wire, resourceSubscriptions=list(uris)) == {
            "resourceSubscriptions": sorted(uris)
        }
    else:
        for uri in uris:
            assert (await subscribe(wire, uri))["result"] == {}


async def test_updates_reach_who_watches(wire):
    """Updates from tasks and threads reach watchers of the resource, and no others."""
    await watch(wire, "pantry://text", "pantry://blob")
    await touch(wire, "pantry://json", "pantry://blob")
    assert (await wire.notice(UPDATED))["uri"] == "pantry://blob"
    await wire.text("touch_in_thread", {"uri": "pantry://text"})
    assert (await wire.notice(UPDATED))["uri"] == "pantry://text"
    await wire.is_alive()
    assert wire.notices == []


async def test_a_burst_is_two_notices(wire):
    """The first update is sent at once, the rest as one; each resource on its own."""
    await watch(wire, "pantry://text", "pantry://blob")
    await touch(wire, *(["pantry://text"] * 50), "pantry://blob")
    seen = [(await wire.notice(UPDATED))["uri"] for _ in range(3)]
    assert sorted(seen) == ["pantry://blob", "pantry://text", "pantry://text"]
    await wire.is_alive()
    assert wire.notices == []


@handshake
async def test_the_end_of_a_subscription(wire):
    """No more updates come; unsubscribing twice is accepted, subscribing twice counts once."""
    for uri in ("pantry://text", "pantry://text", "pantry://blob"):
        await subscribe(wire, uri)
    for uri in ("pantry://text", "pantry://json", "nope://x"):
        assert (await wire.ask("resources/unsubscribe", {"uri": uri}))["result"] == {}
    await touch(wire, "pantry://text", "pantry://blob")
    assert (await wire.notice(UPDATED)) == {"uri": "pantry://blob"}
    await wire.is_alive()
    assert wire.notices == []


@handshake
async def test_who_may_subscribe(wire):
    """Only a registered, subscribable, visible resource is accepted; else there is a reason."""
    for uri in ("pantry://json", "pantry://hidden", "item://1", "secret://1"):
        error = (await subscribe(wire, uri))["error"]
        assert error == {"code": -32600, "message": f"Resource is not subscribable: {uri}"}
    for uri in ("nope://x", "item://x", ""):
        error = (await subscribe(wire, uri))["error"]
        assert error == {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}
    for method in ("resources/subscribe", "resources/unsubscribe"):
        for params in ({}, {"uri": 5}, {"uri": None}, {"uri": "pantry://" + "x" * 8184}):
            assert (await wire.ask(method, params))["error"]["code"] == -32602
    await touch(wire, "pantry://json", "pantry://hidden", "item://1", "nope://x")
    await wire.is_alive()
    assert wire.notices == []


@stateless
async def test_what_may_be_listened_to(wire):
    """A resource that the caller may not watch is left out of the filter, not refused."""
    uris = ["pantry://text", "pantry://json", "pantry://hidden", "nope://x", "pantry://blob"]
    agreed = await listen(wire, resourceSubscriptions=uris, resourcesListChanged=True)
    assert agreed == {
        "resourceSubscriptions": ["pantry://blob", "pantry://text"],
        "resourcesListChanged": True,
    }
    await touch(wire, *uris)
    seen = [await wire.notice(UPDATED) for _ in range(2)]
    assert [each["uri"] for each in seen] == ["pantry://text", "pantry://blob"]
    assert {each["_meta"][SUBSCRIPTION] for each in seen} == {"listen"}
    assert await listen(wire, "none", resourceSubscriptions=["nope://x"]) == {}
    assert await listen(wire, "empty", resourceSubscriptions=[]) == {}
    for method in ("resources/subscribe", "resources/unsubscribe"):
        error = (await wire.ask(method, {"uri": "pantry://text"}))["error"]
        assert error["code"] == -32601


@stateless
async def test_malformed_filters(wire):
    """Malformed lists of URIs are refused."""
    for wanted in (5, "x", {"a": 1}, [5], ["pantry://text", None], [["pantry://text"]]):
        filters = {"resourceSubscriptions": wanted}
        answer = await wire.ask("subscriptions/listen", {"notifications": filters})
        assert answer["error"]["code"] == -32602, wanted


@stateless
async def test_cancelling_ends_the_listening(wire):
    """Afterwards no update is sent, and nothing remains."""
    await listen(wire, "a", resourceSubscriptions=["pantry://text"])
    await listen(wire, "b", resourceSubscriptions=["pantry://text", "pantry://blob"])
    await wire.cancel("a")
    await touch(wire, "pantry://text")
    assert (await wire.notice(UPDATED))["_meta"][SUBSCRIPTION] == "b"
    await wire.cancel("b")
    await touch(wire, "pantry://blob")
    await wire.is_alive()
    assert wire.notices == []
    if wire.connection is not None:
        assert wire.connection.feed.subscriptions._used == 0


async def test_changes_of_the_lists(wire):
    """Changes of resources and prompts are reported like changes of tools."""
    kinds = {
        "notifications/resources/list_changed": "resourcesListChanged",
        "notifications/prompts/list_changed": "promptsListChanged",
    }
    if wire.stateless:
        wanted = dict.fromkeys(kinds.values(), True)
        assert await listen(wire, **wanted) == wanted
    await wire.call("say")
    for method in kinds:
        await wire.notice(method)
    await wire.call("restock")
    for method in kinds:
        await wire.notice(method)


async def test_a_server_that_decides(opened):
    """`can_watch` decides, whatever is registered."""
    async with opened("Deciding") as wire:
        await watch(wire, "x://1", "pantry://hidden")
        for uri in ("pantry://text", "nope://x"):
            if wire.stateless:
                assert await listen(wire, uri, resourceSubscriptions=[uri]) == {}
            else:
                error = (await subscribe(wire, uri))["error"]
                assert error["code"] == (-32600 if uri == "pantry://text" else -32002)
        await touch(wire, "x://1", "pantry://text", "pantry://hidden")
        assert [(await wire.notice(UPDATED))["uri"] for _ in range(2)] == [
            "x://1",
            "pantry://hidden",
        ]
        if not wire.stateless:
            await wire.ask("resources/unsubscribe", {"uri": "x://1"})
            assert await wire.text("heard") == "+x://1 +pantry://hidden -x://1"


async def test_a_decision_may_take_time(opened):
    """The caller waits for the decision, and then watches."""
    async with opened("Deciding") as wire:
        await watch(wire, "x://slow")
        await wire.is_alive()
        await touch(wire, "x://slow")
        assert (await wire.notice(UPDATED))["uri"] == "x://slow"
        assert wire.answers == {}


@handshake
async def test_a_server_that_computes_has_its_own_reasons(opened):
    """An override of `read_resource` hides which resources exist."""
    async with opened("Computing") as wire:
        assert (await subscribe(wire, "x://1"))["result"] == {}
        error = (await subscribe(wire, "y://1"))["error"]
        assert error == {"code": -32600, "message": "Resource is not subscribable: y://1"}


async def test_what_cannot_be_watched(opened):
    """Without subscribable resources there are no subscriptions."""
    async with opened("Unwatched") as wire:
        if wire.stateless:
            uris = ["pantry://json"]
            agreed = await listen(wire, resourceSubscriptions=uris, resourcesListChanged=True)
            assert agreed == {"resourcesListChanged": True}
        else:
            for method in ("resources/subscribe", "resources/unsubscribe"):
                error = (await wire.ask(method, {"uri": "pantry://json"}))["error"]
                assert error["code"] == -32601


@in_memory
async def test_a_thousand_and_no_more(opened):
    """A peer may watch a thousand resources; the next is refused, and the others stay."""
    async with opened("Deciding") as wire:
        uris = [f"x://{number}" for number in range(1000)]
        if wire.stateless:
            filters = {"notifications": {"resourceSubscriptions": uris}}
            error = (await wire.ask("subscriptions/listen", filters))["error"]
            # A listen request counts, too.
            agreed = await listen(wire, resourceSubscriptions=uris[1:])
            assert len(agreed["resourceSubscriptions"]) == 999
        else:
            for uri in uris:
                await wire.send(wire.message("resources/subscribe", {"uri": uri}, id_=uri))
            for uri in uris:
                assert (await wire.answer(uri))["result"] == {}
            error = (await subscribe(wire, "x://more"))["error"]
        message = "More than 1000 subscriptions on this connection"
        assert error == {"code": -32602, "message": message}
        await touch(wire, "x://999", "x://more")
        assert (await wire.notice(UPDATED))["uri"] == "x://999"


async def test_who_unsubscribes_hears_no_more_whatever_the_server_says():
    """If the override fails, the request has an error, and the resource is not watched."""

    class Stubborn(Server, name="stubborn", version="1"):
        async def read_resource(self, uri, ctx):
            return ""

        async def can_watch(self, uri, ctx):
            return True

        async def unsubscribe(self, uri, ctx):
            raise McpError(4001, "not today")

    ear, server = Ear(), Stubborn()
    async with connect(server, handler=ear, version="2025-11-25") as client:
        await client.subscribe("x://1")
        await client.subscribe("x://2")
        with pytest.raises(McpError, match="not today"):
            await client.unsubscribe("x://1")
        server.notify_resource_updated("x://1")
        server.notify_resource_updated("x://2")
        with trio.fail_after(60):
            await ear.heard.wait()
    assert ear.seen == [(UPDATED, "x://2")]


async def test_our_client(connected, revision):
    """`subscribe` and `listen` work in their eras; the handler gets updates."""
    ear = Ear()
    async with connected("Pantry", handler=ear) as client:
        if revision == STATELESS:
            async with client.listen(uris=["pantry://text"], prompts=True) as agreed:
                assert agreed == {
                    "resourceSubscriptions": ["pantry://text"],
                    "promptsListChanged": True,
                }
                await client.call_tool("touch", {"uris": ["pantry://text"]})
                with trio.fail_after(60):
                    await ear.heard.wait()
        else:
            await client.subscribe("pantry://text")
            with pytest.raises(McpError):
                await client.subscribe("pantry://json")
            await client.call_tool("touch", {"uris": ["pantry://text"]})
            with trio.fail_after(60):
                await ear.heard.wait()
            await client.unsubscribe("pantry://text")
        await client.call_tool("touch", {"uris": ["pantry://text"]})
        await client.ping()
    assert ear.seen == [(UPDATED, "pantry://text")]
