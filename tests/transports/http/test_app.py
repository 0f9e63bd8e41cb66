"""The ASGI application: its start, its endpoints beside the protocol, and its end."""

from contextlib import asynccontextmanager

import pytest
import trio

from noizu_mcp import Server
from noizu_mcp.transports.http import HttpApp, HttpLimits, HttpOptions

from ...kit.messages import call, message, modern_request
from .shop import Shop
from .wire import Exchange, Wire, serving, settled

#: Seconds that responses get to be written at the end.
DRAINING = 2
LISTEN = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["board://all"]}}


class Life:
    """The lifespan side of a host."""

    def __init__(self, app):
        self.sent = []
        self._app = app
        self._to_app, self._inbox = trio.open_memory_channel(2)

    async def run(self):
        await self._app({"type": "lifespan"}, self._inbox.receive, self._send)

    async def _send(self, part):
        self.sent.append(part["type"])

    async def tell(self, kind):
        await self._to_app.send({"type": f"lifespan.{kind}"})
        await settled()


async def test_a_host_runs_the_lifespan(nursery, autojump_clock):
    """The server runs within a lifespan, and can run again afterwards."""
    app = HttpApp(Shop(), HttpOptions())
    wire = Wire(app, nursery)
    for _ in range(2):
        life = Life(app)
        nursery.start_soon(life.run)
        await life.tell("startup")
        assert life.sent == ["lifespan.startup.complete"]
        assert (await wire.send_modern(call("echo"))).status == 200
        await life.tell("shutdown")
        assert life.sent[1:] == ["lifespan.shutdown.complete"]


@pytest.mark.parametrize("phase", ["startup", "shutdown"])
async def test_a_lifespan_that_fails(nursery, autojump_clock, caplog, phase):
    """The host gets the failure of startup or shutdown, and the log has the reason."""

    class Failing(Server, name="failing", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            if phase == "startup":
                raise ValueError("secret")
            yield
            raise ValueError("secret")

    life = Life(HttpApp(Failing(), HttpOptions()))
    nursery.start_soon(life.run)
    await life.tell("startup")
    if phase == "shutdown":
        await life.tell("shutdown")
    assert life.sent[-1] == f"lifespan.{phase}.failed"
    assert "secret" in caplog.text


async def test_two_lifespans_at_once(nursery, autojump_clock, caplog):
    """The second lifespan fails with a message; the first goes on."""
    async with serving(Shop()) as wire:
        life = Life(wire.app)
        nursery.start_soon(life.run)
        await life.tell("startup")
        assert life.sent == ["lifespan.startup.failed"]
        assert "running already" in caplog.text
        with pytest.raises(RuntimeError, match="running already"):
            async with wire.app.lifespan():
                pass
        assert (await wire.send_modern(call("echo"))).status == 200


async def test_without_a_lifespan(nursery, caplog):
    """Every request fails with the reason, which is also logged."""
    wire = Wire(HttpApp(Shop(), HttpOptions()), nursery)
    await wire.app.settle()  # there is nothing to do
    done = await wire.send_modern(call("echo"))
    assert (done.status, done.error) == (500, -32603)
    assert "lifespan=app.lifespan" in done.json["error"]["message"]
    assert "lifespan=app.lifespan" in caplog.text


async def test_what_the_block_raises_leaves_it_alone():
    """An exception of the block is raised without groups around it."""
    with pytest.raises(ValueError, match="mine"):
        async with HttpApp(Shop(), HttpOptions()).lifespan():
            raise ValueError("mine")


@pytest.mark.parametrize(
    ("option", "scope"),
    [
        ("/mcp", {"path": "/mcp", "root_path": ""}),
        ("/mcp", {"path": "/api/mcp", "root_path": "/api"}),
        ("/mcp/", {"path": "/mcp", "root_path": "/api"}),
        ("/", {"path": "/api", "root_path": "/api"}),
        ("/", {"path": "/api/", "root_path": "/api"}),
        ("/", {"path": "/", "root_path": ""}),
        ("/apis", {"path": "/apis", "root_path": "/api"}),
    ],
)
async def test_it_is_mounted_anywhere(autojump_clock, option, scope):
    """The path of the endpoint is relative to the mount."""
    async with serving(Shop(), path=option) as wire:
        done = await wire.send_modern(call("echo"), **scope)
        assert done.status == 200
        done = await wire.send_modern(call("echo"), **{**scope, "path": "/api/other"})
        assert done.status == 404


async def test_websockets_are_closed(autojump_clock):
    """WebSockets are closed: there is no such transport."""
    async with serving(Shop()) as wire:
        exchange = Exchange(wire.app, {"type": "websocket"}, [{"type": "websocket.connect"}])
        await exchange.run()
        assert exchange.sent == [{"type": "websocket.close", "code": 1008}]


async def test_health_is_answered_on_demand(autojump_clock):
    """Health is only answered if enabled; for any Host, since probes use addresses."""
    async with serving(Shop()) as wire:
        assert (await wire.send("GET", path="/healthz")).status == 404
    async with serving(Shop(), health=True) as wire:
        for path in ("/healthz", "/readyz"):
            done = await wire.send("GET", None, {"host": "10.0.0.1"}, path=path)
            assert (done.status, done.body) == (200, b"ok\n")
        wire.app.server.abandoned.add("handler", 2)
        done = await wire.send("GET", path="/readyz")
        assert (done.status, done.body) == (200, b"ok\nabandoned threads: 2\n")
        running = wire.modern(call("wait", {"seconds": 2}))
        await settled()
        wire.nursery.start_soon(wire.app.settle)
        await settled()
        assert (await wire.send("GET", path="/healthz")).status == 200
        assert (await wire.send("GET", path="/readyz")).status == 503
        await running.ended.wait()
    assert (await wire.send("GET", path="/healthz")).status == 200
    assert (await wire.send("GET", path="/readyz")).status == 503


# `subscriptions/listen`


async def test_listening(autojump_clock):
    """The acknowledgement is first, then tagged notifications; comments keep the stream open."""
    async with serving(Shop(), limits={"keepalive": 5}) as wire:
        listening = wire.modern(message("subscriptions/listen", LISTEN, 7))
        other = wire.modern(message("subscriptions/listen", {"notifications": {}}, 7))
        ack = (await listening.event(0))["data"]
        assert ack["method"] == "notifications/subscriptions/acknowledged"
        assert ack["params"]["notifications"] == LISTEN["notifications"]
        server = wire.app.server
        server.notify_changed("tools")
        server.notify_changed("prompts")
        server.notify_resource_updated("board://all")
        await listening.event(2)
        await trio.sleep(300)  # it has no timeout
        assert [each["method"].rpartition("/")[2] for each in listening.messages] == [
            "acknowledged",
            "list_changed",
            "updated",
        ]
        tag = {"io.modelcontextprotocol/subscriptionId": 7}
        assert all(each["params"]["_meta"] == tag for each in listening.messages)
        assert listening.body.count(b":\n\n") > 50
        assert len(other.messages) == 1
        assert (await wire.send_modern(call("echo"))).status == 200
        listening.leave()
        await listening.ended.wait()
        await settled()
        assert server.left == ["board://all"]
        server.notify_changed("tools")
        await settled()
        assert len(listening.messages) == 3
        await wire.app.settle()
        await other.ended.wait()
        result = other.messages[-1]
        assert (result["id"], result["result"]["resultType"]) == (7, "complete")
        assert result["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7
        assert other.complete


async def test_listening_to_what_somebody_decides(autojump_clock):
    """The stream ends with its client, also if a hook had to allow it first."""

    class Choosy(Shop, name="choosy", version="1"):
        async def can_watch(self, uri, ctx):
            await trio.sleep(0.1)
            return uri == "board://all"

    async with serving(Choosy()) as wire:
        listening = wire.modern(message("subscriptions/listen", LISTEN, 1))
        assert (await listening.event(0))["data"]["params"]["notifications"] == LISTEN[
            "notifications"
        ]
        listening.leave()
        await listening.ended.wait()
        await settled()
        assert wire.app.server.left == ["board://all"]


# The end


async def test_the_end_waits_for_what_runs(autojump_clock):
    """Running requests of both eras are answered, streams are ended, and all is written."""
    async with serving(Shop()) as wire:
        session = await wire.session()
        exchanges = [
            session.open(call("wait", {"seconds": 3}, id_=1)),
            session.open(call("wait", {"seconds": 0.5}, id_=2)),
            wire.modern(call("wait", {"seconds": 3}, id_=3)),
            wire.modern(message("subscriptions/listen", LISTEN, 4)),
            session.get(),
        ]
        slow = wire.open("POST", call("echo"), session.headers, parts=[])
        await trio.sleep(2)
    for exchange in exchanges:
        assert exchange.complete
        if exchange is exchanges[1]:
            assert exchange.json["id"] == 2
        elif exchange is not exchanges[4]:
            assert "result" in exchange.messages[-1]
    assert not slow.sent
    assert trio.current_time() < 2 + 3 + 1 + DRAINING
    assert wire.endpoint is None


async def test_the_end_does_not_wait_for_ever(nursery, autojump_clock):
    """After the grace period requests get errors; handlers that resist are left to the host."""
    app = HttpApp(Shop(), HttpOptions(limits=HttpLimits(grace=3)))
    wire = Wire(app, nursery)
    async with app.lifespan():
        session = await wire.session("2025-03-26")
        polite = session.open(call("wait", {"seconds": 20}, id_=1))
        array = session.open([call("wait", {"seconds": 20}, id_=2)])
        modern = wire.modern(call("wait", {"seconds": 20}, id_=3))
        stuck = wire.modern(call("stuck", {"seconds": 60}, id_=4))
        stalled = wire.modern(call("wait", {"seconds": 20}, id_=5))
        await stalled.until(lambda stalled: stalled.sent)
        stalled.stall()
        begun = trio.current_time()
    assert trio.current_time() - begun == pytest.approx(3 + DRAINING)
    for exchange in (polite, modern):
        assert exchange.complete
        assert exchange.messages[-1]["error"]["message"] == "The server is shutting down"
    assert array.messages[-1][0]["error"]["code"] == -32603
    assert not stalled.complete
    # The response does not depend on the handler.
    assert stuck.messages[-1]["error"]["code"] == -32603
    assert not stuck.ended.is_set()


async def test_no_new_work_at_the_end(autojump_clock):
    """A request is refused during shutdown, also if only its body came late."""
    async with serving(Shop()) as wire:
        session = await wire.session()
        running = wire.modern(call("wait", {"seconds": 2}))
        late = wire.make("POST", call("echo"), session.headers)
        (body,) = late.parts
        late.parts = []
        ready = trio.Event()

        async def receive():
            await ready.wait()
            return body

        late.receive = receive
        wire.nursery.start_soon(late.run)
        await settled()
        wire.nursery.start_soon(wire.app.settle)
        await settled()
        ready.set()
        await late.ended.wait()
        new = await session.post(call("echo"))
        for done in (late, new):
            assert (done.status, done.error, done.headers["retry-after"]) == (503, -32603, "1")
        await running.ended.wait()
        assert running.status == 200


async def test_an_end_without_work_is_quick(autojump_clock):
    """Idle sessions do not delay it."""
    async with serving(Shop()) as wire:
        await wire.session()
        begun = trio.current_time()
    assert trio.current_time() == begun


async def test_a_host_that_cannot_be_cancelled_at_the_end(autojump_clock):
    """Unread streams are abandoned, and the host closes their connections."""
    app = HttpApp(Shop(), HttpOptions(limits=HttpLimits(grace=1)))
    exchanges, ended = [], 0.0
    async with trio.open_nursery() as nursery:
        wire = Wire(app, nursery)
        async with app.lifespan():
            session = await wire.session()
            made = [
                wire.make("GET", None, session.headers),
                wire.make("POST", call("wait", {"seconds": 29}), session.headers),
                wire.make("POST", *modern_request(message("subscriptions/listen", LISTEN, 1))),
            ]
            for exchange in made:
                exchanges.append(exchange)
                send = exchange.send

                async def shielded(part, send=send):
                    with trio.CancelScope(shield=True):
                        await send(part)

                exchange.send = shielded
                exchange.stall()
                nursery.start_soon(exchange.run)
            await trio.sleep(2)

            @nursery.start_soon
            async def close():
                nonlocal ended
                for exchange in made:
                    await exchange.ended.wait()
                    exchange.broken = True
                    exchange.read_on()
                ended = trio.current_time()

    assert all(not exchange.sent for exchange in exchanges)
    assert ended == pytest.approx(2 + 1 + DRAINING)
