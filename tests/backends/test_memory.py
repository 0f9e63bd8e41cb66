"""The backend in memory: the contract, its bound, and its clock."""

import pytest
import trio
from trio.testing import MockClock

from noizu_mcp.backends import BackendUnavailable, Gap, LogEntry, Memory
from noizu_mcp.testing import check_backend


@pytest.fixture
def autojump_clock():
    """Jump over every wait."""
    return MockClock(autojump_threshold=0)


def test_the_contract():
    """The engine passes the suite, and trio's clock is its time."""
    check_backend(Memory, clock=lambda: MockClock(autojump_threshold=0), examples=40)


@pytest.mark.slow
def test_the_contract_with_many_steps():
    """The same with more random steps."""
    check_backend(Memory, clock=lambda: MockClock(autojump_threshold=0), examples=1000)


async def test_times_repeat(autojump_clock):
    """With a start and a mock clock, every time is the same in each run."""
    async with Memory(start=1000.0).open("shop") as backend:
        await backend.put("key", b"x", ttl=5.0)
        record = await backend.get("key")
        await trio.sleep(5)
        gone = await backend.get("key")

    assert (record.expires_at, gone) == (1005.0, None)


async def test_full_memory_refuses_what_adds_to_it():
    """Beyond the bound writes fail, and what is there stays usable."""
    async with Memory(memory=10_000).open("shop") as backend:
        await backend.put("key", bytes(5000), ttl=60.0, groups={"group": 1})
        for write in (
            backend.put("other", bytes(5000), ttl=60.0),
            backend.append("log", bytes(9000), keep=1, ttl=60.0),
        ):
            with pytest.raises(BackendUnavailable, match="is full: 10,000 bytes"):
                await write
        await backend.put("key", bytes(5001), ttl=60.0)
        await backend.delete("key")
        await backend.put("other", bytes(5000), ttl=60.0)

        assert await backend.get("key") is None


async def test_expired_data_makes_room(autojump_clock):
    """Records, streams and rate limits that are over count no longer."""
    async with Memory(memory=10_000).open("shop") as backend:
        for round_ in range(3):
            await backend.put(f"key {round_}", bytes(2000), ttl=5.0, groups={f"{round_}": 1})
            await backend.append(f"log {round_}", bytes(2000), keep=1, ttl=5.0)
            await backend.take(f"limit {round_}", limit=1, period=5.0)
            await trio.sleep(6)
        await backend.put("large", bytes(9000), ttl=5.0)

        assert [await backend.members(f"{round_}") for round_ in range(3)] == [[], [], []]


async def test_old_entries_are_not_charged():
    """A stream costs what it keeps."""
    async with Memory(memory=10_000).open("shop") as backend:
        for _ in range(50):
            await backend.append("log", bytes(1000), keep=2, ttl=60.0)


async def test_cleared_memory_is_another_epoch():
    """Data is gone, readers get a gap at once, and then what is new."""
    async with Memory().open("shop") as backend:
        epoch, start = backend.epoch, await backend.end_of("log")
        await backend.put("key", b"x", ttl=60.0, groups={"group": 1})
        backend.clear()
        [gap] = await backend.read({"log": start}, wait=60.0)
        position = await backend.append("log", b"new", keep=9, ttl=60.0)

        assert await backend.get("key") is None
        assert await backend.members("group") == []
        assert backend.epoch != epoch
        assert isinstance(gap, Gap)
        assert await backend.read({"log": gap.position}, wait=0.0) == [
            LogEntry("log", position, b"new")
        ]


async def test_clearing_wakes_readers(autojump_clock):
    """A reader that waits learns of the loss."""
    async with Memory().open("shop") as backend:
        start = await backend.end_of("log")
        async with trio.open_nursery() as nursery:

            async def clear():
                await trio.sleep(1)
                backend.clear()

            nursery.start_soon(clear)
            items = await backend.read({"log": start}, wait=60.0)

        assert [type(item) for item in items] == [Gap]


async def test_a_second_server_needs_its_own():
    """Servers of two names cannot share a memory, at one time or later."""
    memory = Memory()
    async with memory.open("shop"):
        pass
    with pytest.raises(ValueError, match="belongs to the server 'shop': give 'bank' another one"):
        async with memory.open("bank"):
            pass


def test_data_outlives_the_loop():
    """A memory that is opened in a second `trio.run` has its data, and goes on counting."""
    memory = Memory()

    async def put():
        async with memory.open("shop") as backend:
            await backend.put("key", b"x", ttl=60.0)

    async def get():
        async with memory.open("shop") as backend:
            return await backend.get("key"), backend.now()

    trio.run(put)
    record, now = trio.run(get)

    assert record.value == b"x"
    assert now < record.expires_at <= now + 60


def test_text_form():
    """`repr` has the options."""
    assert repr(Memory(lease=5.0)) == "Memory(lease=5.0, memory=268435456)"
