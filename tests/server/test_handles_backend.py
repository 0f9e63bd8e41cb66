"""Handles of a server with a backend: several nodes, and a backend that fails."""

import pytest
import trio
import trio.testing

from noizu_mcp import connect
from noizu_mcp.backends import Memory
from noizu_mcp.types import Principal

from .handling import Client, Failing, Node, text_of, unknown

AGAIN = "Handles cannot be reached now; try again later"


@pytest.fixture
async def backend():
    async with Failing().open("shop") as backend:
        yield backend


def partial_call(results, call, name, **arguments):
    """Make a function that makes a call, and keeps its result."""

    async def run():
        results.append(await call(name, **arguments))

    return run


async def test_nodes(backend, autojump_clock):
    """Each node knows the handles of the others, and waits for their calls."""
    one, two = Node(backend), Node(backend)
    results = []
    async with connect(one) as first, connect(two) as second:
        call, other = Client(first), Client(second)
        basket = await call.open("tea")
        assert await other.items(basket) == ["tea"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial_call(results, call, "hold", basket=basket, key="one"))
            await trio.testing.wait_all_tasks_blocked()
            for item in "ab":
                nursery.start_soon(partial_call(results, other, "add", basket=basket, item=item))
            await trio.sleep(25)  # longer than the lease of a lock
            assert await other.items(basket) == ["tea"]
            one.kit.gate("one").set()
        assert sorted(await call.items(basket)) == ["a", "b", "one", "tea"]
        assert not any(each.is_error for each in results)
        await other("close", basket=basket)
        assert text_of(await call("look", basket=basket)) == unknown()


async def test_a_node_that_is_gone(backend, autojump_clock):
    """Its lock expires; nothing of its call is stored."""
    one, two = Node(backend), Node(backend)
    async with connect(one) as first, connect(two) as second:
        call, other = Client(first), Client(second)
        basket = await call.open()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial_call([], call, "hold", basket=basket, key="one"))
            await trio.testing.wait_all_tasks_blocked()
            backend.down = "renew"
            done = await other("add", basket=basket, item="x")
            assert done.structured["items"] == ["x"]
            backend.down = ""
            one.kit.gate("one").set()
        assert await other.items(basket) == ["x"]


async def test_a_lock_that_is_lost(backend, autojump_clock):
    """Its call stores nothing, and its answer says to try again."""
    node, results = Node(backend), []
    async with connect(node) as client:
        call = Client(client)
        basket = await call.open()
        for name, lose in (("hold_and_close", "x"), ("hold", "renew"), ("hold", "clear")):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial_call(results, call, name, basket=basket, key=lose))
                await trio.testing.wait_all_tasks_blocked()
                if lose == "clear":
                    for key in [*backend._records]:
                        await backend.delete(key)
                    backend.down = ""
                else:
                    backend.down = "renew"
                await trio.sleep(12)
                backend.down = ""
                node.kit.gate(lose).set()
            text = "The Basket was changed by another call meanwhile; try again"
            assert text_of(results.pop()) == text
        assert text_of(await call("look", basket=basket)) == unknown()


async def test_the_renewal_ends_with_the_locks(backend, autojump_clock):
    """It sleeps while there are none, and begins again."""
    node, results = Node(backend), []
    async with connect(node) as client:
        call = Client(client)
        basket = await call.open()
        for key in ("a", "b"):
            await trio.sleep(20)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial_call(results, call, "hold", basket=basket, key=key))
                await trio.sleep(25)
                node.kit.gate(key).set()
        assert await call.items(basket) == ["a", "b"]


@pytest.mark.parametrize("down", ["get", "put", "take", "delete"])
async def test_a_backend_that_is_down(backend, down):
    """The answer says to try again; nothing has changed, and later everything works."""
    async with connect(Node(backend)) as client:
        call = Client(client)
        basket = await call.open("tea")
        backend.down = down
        if down == "get":
            assert text_of(await call("look", basket=basket)) == AGAIN
        if down == "put":
            assert text_of(await call("open")) == AGAIN
            assert text_of(await call("make")) == AGAIN
        if down == "delete":
            assert text_of(await call("close", basket=basket)) == AGAIN
        else:
            assert text_of(await call("add", basket=basket, item="x")) == AGAIN
        backend.down = ""
        assert await call.items(basket) == ["tea"]
        assert not (await call("close", basket=basket)).is_error


async def test_a_write_that_fails(backend):
    """A call whose changes cannot be stored is no success; a new handle has no id."""
    node = Node(backend)
    async with connect(node) as client:
        call = Client(client)
        basket = await call.open("tea")
        backend.down = "write"
        assert text_of(await call("add", basket=basket, item="x")) == AGAIN
        assert text_of(await call("many", count=2)) == AGAIN
        assert [each.id for each in node.kit.seen if each.items != ["tea", "x"]] == [None, None]
        backend.down = ""
        assert await call.items(basket) == ["tea"]


async def test_a_lock_that_cannot_be_given_back(backend, autojump_clock):
    """The call is answered; the next one waits until the lock expires."""
    async with connect(Node(backend)) as client:
        call = Client(client)
        basket = await call.open()
        backend.down = "unlock"
        assert not (await call("add", basket=basket, item="a")).is_error
        backend.down = ""
        start = trio.current_time()
        assert not (await call("add", basket=basket, item="b")).is_error
        assert 9 < trio.current_time() - start < 11


async def test_calls_that_are_cancelled(backend):
    """A call that is cancelled while it waits or works leaves nothing, and the handle is free."""
    node, results = Node(backend), []
    async with connect(node) as client:
        call = Client(client)
        basket = await call.open()
        with trio.CancelScope() as holder:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial_call(results, call, "hold", basket=basket, key="a"))
                await trio.testing.wait_all_tasks_blocked()
                with trio.CancelScope() as waiter:
                    async with trio.open_nursery() as inner:
                        inner.start_soon(
                            partial_call(results, call, "add", basket=basket, item="never")
                        )
                        await trio.testing.wait_all_tasks_blocked()
                        waiter.cancel()
                holder.cancel()
        assert not results
        done = await call("add", basket=basket, item="x")
        assert done.structured["items"] == ["x"]


async def test_what_the_backend_knows(backend):
    """Neither ids nor callers stand in it, and values are sealed for their keys."""

    def seal(key, value):
        return f"{key}|".encode() + value[::-1]

    def unseal(key, value):
        known, _, rest = value.partition(b"|")
        return rest[::-1] if known == key.encode() else None

    node = Node(backend, seal=seal, unseal=unseal)
    async with connect(node, principal=Principal(subject="ada")) as client:
        call = Client(client)
        basket, other = await call.open("tea"), await call.open("milk")
        assert await call.items(basket) == ["tea"]
        keys = await backend.members("handles")
        assert len(keys) == 2
        groups = str([*backend._groups])
        assert basket not in str(keys) + groups
        assert "ada" not in str(keys) + groups
        records = [await backend.get(key) for key in keys]
        assert not any(b"tea" in each.value for each in records)
        # Whoever can write into the backend moves a value to another key, and writes garbage.
        await backend.put(keys[0], records[1].value, ttl=100)
        await backend.put(keys[1], b"garbage", ttl=100)
        for id_ in (basket, other):
            assert text_of(await call("look", basket=id_)) == unknown()
            assert text_of(await call("add", basket=id_, item="x")) == unknown()


@pytest.mark.parametrize("value", [b"garbage", b"[" * 100_000, b"[]", b'{"items":5}', b"\xff"])
async def test_values_that_do_not_fit(backend, value):
    """As after a change of the class: there is no such handle."""
    async with connect(Node(backend)) as client:
        call = Client(client)
        basket = await call.open()
        (key,) = await backend.members("handles")
        await backend.put(key, value, ttl=100)
        assert text_of(await call("look", basket=basket)) == unknown()


async def test_servers_of_other_names():
    """A backend that has several servers keeps their handles apart."""

    class Other(Node, name="other", version="1"):
        pass

    async with Memory().open("both") as backend, connect(Node(backend)) as client:
        basket = await Client(client).open()
        async with connect(Other(backend)) as other:
            assert text_of(await Client(other)("look", basket=basket)) == unknown()
