"""The hub: a backend that another process has, over a socket pair."""

import logging
import socket
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from noizu_mcp.backends import BackendUnavailable, Conflict, LogEntry, Memory
from noizu_mcp.testing import check_backend
from noizu_mcp.workers import Hub, serve_hub


class HubOver:
    """A backend whose nodes reach another one over a socket pair each."""

    def __init__(self, backend, **options):
        self._backend = backend
        self._options = options

    @asynccontextmanager
    async def open(self, name):
        here, there = socket.socketpair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_hub, lambda _name: self._backend, there)
            async with Hub(here, **self._options).open(name) as opened:
                yield opened


class Broken(Memory):
    """A backend with a bug."""

    async def members(self, group):
        raise LookupError(group)

    async def read(self, positions, *, wait):
        return [LogEntry("log", "1", bytes(33 * 2**20))]


@pytest.fixture
def one_end():
    """A hub whose other end is a socket of the test."""
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_it_keeps_the_contract():
    """It passes the suite of all engines."""
    check_backend(
        lambda: HubOver(Memory()), clock=lambda: MockClock(autojump_threshold=0.01), examples=3
    )


async def test_a_waiting_read_blocks_nothing(autojump_clock):
    """Other operations of the node are executed beside it."""
    async with HubOver(Memory()).open("shop") as hub, trio.open_nursery() as nursery:
        found = []
        end = await hub.end_of("log")

        async def read():
            found.extend(await hub.read({"log": end}, wait=60))

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        assert await hub.get("key") is None
        at = await hub.append("log", b"news", keep=10, ttl=60)
    assert found == [LogEntry("log", at, b"news")]


async def test_a_cancelled_read_leaves_its_place(autojump_clock):
    """The next one takes it, and hears what has come."""
    async with HubOver(Memory()).open("shop") as hub:
        end = await hub.end_of("log")
        with trio.move_on_after(1):
            await hub.read({"log": end}, wait=600)
        at = await hub.append("log", b"news", keep=10, ttl=60)
        with trio.move_on_after(1):
            await hub.read({"log": at}, wait=600)
        assert await hub.read({"log": end}, wait=600) == [LogEntry("log", at, b"news")]


async def test_many_operations_at_once():
    """Each gets its own answer."""
    async with HubOver(Memory()).open("shop") as hub, trio.open_nursery() as nursery:
        got = {}

        async def use(number):
            version = await hub.put(str(number), b"%d" % number, ttl=60)
            with pytest.raises(Conflict) as caught:
                await hub.put(str(number), b"", ttl=60, version=0)
            assert caught.value.version == version
            got[number] = (await hub.get(str(number))).value

        for number in range(200):
            nursery.start_soon(use, number)
    assert got == {number: b"%d" % number for number in range(200)}


async def test_large_answers_that_are_asked_for_at_once():
    """They arrive whole, also where both processes write more than a socket holds."""
    async with HubOver(Memory()).open("shop") as hub, trio.open_nursery() as nursery:
        sizes = []

        async def use(number):
            await hub.put(str(number), bytes(100_000 + number), ttl=60)
            sizes.append(len((await hub.get(str(number))).value))

        for number in range(50):
            nursery.start_soon(use, number)
    assert sorted(sizes) == [100_000 + number for number in range(50)]


async def test_what_the_backend_refuses_is_told(caplog):
    """A lack of memory keeps its text, and a bug of the backend is in the log of its process."""
    async with HubOver(Broken(memory=1000)).open("shop") as hub:
        with pytest.raises(BackendUnavailable, match="is full"):
            await hub.put("key", bytes(2000), ttl=60)
        with caplog.at_level(logging.ERROR), pytest.raises(BackendUnavailable, match="the log of"):
            await hub.members("group")
        with pytest.raises(BackendUnavailable, match="too large"):
            await hub.read({"log": "0"}, wait=0)
        with pytest.raises(ValueError, match="more than any record"):
            await hub.put("key", bytes(33 * 2**20), ttl=60)
        assert hub.is_up
    assert "an operation of a worker failed: members" in caplog.text


async def test_an_epoch_that_changes_is_seen():
    """It comes with the next answer."""
    memory = Memory()
    async with HubOver(memory).open("shop") as hub:
        assert hub.epoch == memory.epoch
        memory.clear()
        await hub.get("key")
        assert hub.epoch == memory.epoch


async def test_a_process_that_does_not_answer(autojump_clock, one_end):
    """An operation fails after a second, and opening does."""
    with pytest.raises(BackendUnavailable, match="does not answer"):
        async with Hub(one_end[0]).open("shop"):
            pass  # pragma: no cover


async def test_a_process_that_has_ended(autojump_clock):
    """Operations that wait fail at once, and so do later ones."""
    here, there = socket.socketpair()
    served = trio.CancelScope()

    async def serve():
        with served:
            await serve_hub(lambda _name: Memory(), there)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with Hub(here).open("shop") as hub, trio.open_nursery() as waiting:
            end = await hub.end_of("log")

            async def wait():
                with pytest.raises(BackendUnavailable):
                    await hub.read({"log": end}, wait=600)

            waiting.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            served.cancel()
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(BackendUnavailable):
                await hub.get("key")
            assert not hub.is_up
    assert trio.current_time() < 600


async def test_more_operations_than_wait():
    """They are refused, so that a process that hangs does not fill its workers."""
    here, there = socket.socketpair()
    async with trio.open_nursery() as nursery:
        memory = Memory()
        nursery.start_soon(serve_hub, lambda _name: memory, there)
        async with Hub(here).open("shop") as hub:
            outcomes = []

            async def use(number):
                try:
                    outcomes.append(await hub.get(str(number)))
                except BackendUnavailable:
                    outcomes.append("refused")

            async with trio.open_nursery() as crowd:
                for number in range(1100):
                    crowd.start_soon(use, number)
        assert outcomes.count("refused") == 1100 - outcomes.count(None) > 0


async def test_an_operation_of_a_newer_version(caplog):
    """It fails, and others go on: workers may be newer than their supervisor."""

    class NewerHub(Hub):
        async def newest(self):
            return await self._ask("newest")

    here, there = socket.socketpair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_hub, lambda _name: Memory(), there)
        async with NewerHub(here).open("shop") as hub:
            with pytest.raises(BackendUnavailable, match="the log of the supervisor"):
                await hub.newest()
            assert await hub.get("key") is None
    assert "an operation of a worker failed: newest" in caplog.text


async def test_a_worker_that_never_opens_it():
    """Its end is the end of its hub."""
    here, there = socket.socketpair()
    here.close()
    await serve_hub(lambda _name: Memory(), there)
    assert there.fileno() == -1
