"""The backend in Redis while Redis is killed, stopped, emptied, slow or full."""

from functools import partial

import pytest
import trio

from noizu_mcp.backends import BackendUnavailable, Gap, LogEntry, Redis

from ..kit.redis import REDIS, RedisServer

pytestmark = pytest.mark.skipif(REDIS is None, reason="redis-server is not installed")


@pytest.fixture
def server():
    """Yield a Redis that the test may disturb."""
    with RedisServer() as server:
        yield server


async def eventually(operation):
    """Repeat an operation while the backend is unavailable."""
    with trio.fail_after(30):
        while True:
            try:
                return await operation()
            except BackendUnavailable:
                await trio.sleep(0.01)


async def failing(operation):
    """Repeat an operation until the backend is unavailable; return the text."""
    with trio.fail_after(30):
        while True:
            try:
                await operation()
            except BackendUnavailable as error:
                return str(error)
            await trio.sleep(0.01)


async def until(condition):
    """Wait for a condition that has no event."""
    with trio.fail_after(30):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await trio.sleep(0.01)


async def test_killed_and_back(server, caplog):
    """Operations fail while Redis is away and work when it is back, in another epoch."""
    async with Redis(server.url).open("shop") as backend:
        epoch, start = backend.epoch, await backend.end_of("log")
        await backend.put("key", b"x", ttl=60.0)
        async with trio.open_nursery() as nursery:
            reader = partial(backend.read, {"log": start}, wait=60.0)
            texts = []

            async def wait():
                texts.append(await failing(reader))

            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            server.kill()
        text = await failing(lambda: backend.get("key"))
        assert not backend.is_up
        server.start()

        assert await eventually(lambda: backend.get("key")) is None
        assert str(server.path) in text
        assert texts
        assert backend.epoch != epoch
        [gap] = await eventually(reader)
        assert isinstance(gap, Gap)
    assert caplog.records == []


async def test_stopped_and_resumed(server):
    """Redis that does not answer fails what waits, then everything at once; then it is back."""
    async with Redis(server.url, timeout=0.2).open("shop") as backend:
        epoch = backend.epoch
        await eventually(lambda: backend.put("key", b"x", ttl=60.0))
        position = await eventually(lambda: backend.append("log", b"x", keep=9, ttl=60.0))
        server.pause()
        texts = set()

        async def ask():
            texts.add(await failing(lambda: backend.get("key")))

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(ask)
        await until(lambda: not backend.is_up)
        refused = await failing(lambda: backend.get("key"))
        server.resume()

        assert f"Redis at {server.place} gave no answer in 0.2 s" in texts
        assert refused != f"Redis at {server.place} gave no answer in 0.2 s"
        assert (await eventually(lambda: backend.get("key"))).value == b"x"
        assert backend.epoch == epoch
        new = await eventually(lambda: backend.append("log", b"y", keep=9, ttl=60.0))
        items = await eventually(lambda: backend.read({"log": position}, wait=5.0))
        assert items[-1] == LogEntry("log", new, b"y")


async def test_a_silent_redis_is_noticed_without_operations(server):
    """The beat fails, and the backend is down."""
    async with Redis(server.url, timeout=0.1).open("shop") as backend:
        server.pause()
        await until(lambda: not backend.is_up)
        server.resume()
        assert await eventually(lambda: backend.get("key")) is None


async def test_emptied(server):
    """After `FLUSHALL` there is another epoch, and whoever waits reads a gap."""
    async with Redis(server.url).open("shop") as backend:
        epoch, start = backend.epoch, await backend.end_of("log")
        await backend.put("key", b"x", ttl=60.0)
        items, reports = [], []
        backend.observe = lambda operation, outcome, seconds: reports.append((operation, outcome))

        async def read():
            items.extend(await eventually(lambda: backend.read({"log": start}, wait=60.0)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            server.ask("FLUSHALL")
        position = await backend.append("log", b"new", keep=9, ttl=60.0)
        [entry] = await backend.read({"log": items[-1].position}, wait=5.0)

        assert await backend.get("key") is None
        assert backend.epoch != epoch
        assert {type(item) for item in items} == {Gap}
        # The reader was interrupted, and did not wait for its time.
        assert ("read", "unavailable") in reports
        assert entry == LogEntry("log", position, b"new")


async def test_entries_that_survive_are_read(server):
    """In another epoch a reader gets a gap, and then what it has not read."""
    async with Redis(server.url).open("shop") as backend:
        epoch, start = backend.epoch, await backend.end_of("log")
        await backend.append("log", b"read", keep=9, ttl=60.0)
        [read] = await backend.read({"log": start}, wait=5.0)
        await backend.append("log", b"unread", keep=9, ttl=60.0)
        server.ask("DEL", "noizu:{shop}:epoch")
        await until(lambda: backend.epoch != epoch)
        items = await eventually(lambda: backend.read({"log": read.position}, wait=5.0))

        assert [getattr(item, "entry", None) for item in items] == [None, b"unread"]


async def test_a_restart_is_another_epoch(server):
    """Also where the data is still there: the last writes may be lost."""
    async with Redis(server.url).open("shop") as backend:
        epoch = backend.epoch
        await backend.put("key", b"x", ttl=60.0)
        server.ask("SAVE")
        server.kill()
        server.start()

        assert (await eventually(lambda: backend.get("key"))).value == b"x"
        assert backend.epoch != epoch


async def test_slow_operations_end_the_connection(server):
    """Three operations in a row without an answer in time; the next connection works."""
    async with Redis(server.url, timeout=0.05).open("shop") as backend:
        await eventually(lambda: backend.put("key", b"x", ttl=60.0))
        server.ask("CLIENT", "PAUSE", "300", "WRITE")
        for _ in range(3):
            await failing(lambda: backend.put("key", b"y", ttl=60.0))

        assert await eventually(lambda: backend.put("key", b"z", ttl=60.0))
        assert (await eventually(lambda: backend.get("key"))).value == b"z"


async def test_full_redis(server):
    """Redis without memory refuses writes, and reads go on."""
    async with Redis(server.url).open("shop") as backend:
        version = await backend.put("key", b"x", ttl=60.0, groups={"group": 1})
        start = await backend.append("log", b"x", keep=9, ttl=60.0)
        server.ask("CONFIG", "SET", "maxmemory", "1")
        for write in (
            backend.put("key", b"y", ttl=60.0),
            backend.append("log", b"y", keep=9, ttl=60.0),
            backend.take("limit", limit=1, period=60.0),
        ):
            with pytest.raises(BackendUnavailable, match=f"Redis at {server.place} failed: OOM"):
                await write
        assert (await backend.get("key")).version == version
        assert backend.is_up
        server.ask("CONFIG", "SET", "maxmemory", "0")
        new = await backend.append("log", b"z", keep=9, ttl=60.0)

        assert await backend.read({"log": start}, wait=0.0) == [LogEntry("log", new, b"z")]


async def test_a_replica_is_left(server):
    """A server that became a replica refuses writes; the backend connects again."""
    async with Redis(server.url).open("shop") as backend:
        await backend.put("key", b"x", ttl=60.0)
        server.ask("REPLICAOF", "127.0.0.1", "1")
        text = await failing(lambda: backend.put("key", b"y", ttl=60.0))
        assert not backend.is_up
        server.ask("REPLICAOF", "NO", "ONE")

        assert await eventually(lambda: backend.put("key", b"z", ttl=60.0))
        assert "failed: ReadOnlyError" in text


async def test_a_password_that_changes(server, caplog):
    """While Redis refuses the password the backend is down; with the old one it is back."""
    async with Redis(server.url).open("shop") as backend:
        server.kill()
        server.start("--requirepass", "other")
        with trio.fail_after(30):
            while "refuses the user or the password" not in await failing(
                partial(backend.get, "key")
            ):
                pass
        server.kill()
        server.start()

        assert await eventually(lambda: backend.get("key")) is None
    assert caplog.records == []


async def test_a_cancelled_reader_makes_room(server):
    """The next read does not wait for the end of a cancelled one."""
    async with Redis(server.url).open("shop") as backend:
        places = {name: await backend.end_of(name) for name in ("a", "b")}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(backend.read, {"a": places["a"]}, wait=60.0))
            await until(lambda: b"blocked_clients:1" in server.ask("INFO", "clients"))
            nursery.cancel_scope.cancel()
        with trio.fail_after(8):
            assert await backend.read({"b": places["b"]}, wait=0.01) == []


async def test_scripts_may_be_forgotten(server):
    """A script that Redis has forgotten is sent again."""
    async with Redis(server.url).open("shop") as backend:
        await backend.get("key")
        server.ask("SCRIPT", "FLUSH")
        assert await backend.get("key") is None


async def test_the_clock_is_the_one_of_redis(server):
    """`now` differs from Redis' clock by less than the way to it."""
    async with Redis(server.url).open("shop") as backend:
        before = backend.now()
        _, _, seconds, _, micros, _ = server.ask("TIME").split(b"\r\n")
        time = int(seconds) + int(micros) / 1e6

        assert before - 0.5 < time < backend.now() + 0.5


async def test_outcomes_are_observed(server):
    """Failures and cancellations have outcomes of their own."""
    async with Redis(server.url).open("shop") as backend:
        start, reports = await backend.end_of("log"), []
        backend.observe = lambda operation, outcome, seconds: reports.append((operation, outcome))
        with trio.move_on_after(0.01):
            await backend.read({"log": start}, wait=60.0)
        server.kill()
        await failing(lambda: backend.get("key"))

    assert reports[0] == ("read", "cancelled")
    assert reports[-1] == ("get", "unavailable")
