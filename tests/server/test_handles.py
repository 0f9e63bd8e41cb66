"""Handles: what calls load, store and answer, in both eras."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path

import pydantic
import pytest
import trio
import trio.testing

from noizu_mcp import (
    Accept,
    ClientHandler,
    Handle,
    Limits,
    Mount,
    Prompt,
    Schema,
    Server,
    Tool,
    Toolkit,
    connect,
    mcp,
    tool,
)
from noizu_mcp.types import Principal

from .handling import KNOWN, Basket, Client, Order, Shop, text_of, unknown
from .tasking import KNOWS, result_of, start

VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
ADA, BOB = Principal(subject="ada"), Principal(subject="bob")


class Answering(ClientHandler):
    """Answers each question with a name."""

    async def handle_elicitation(self, params):
        return Accept({"name": "Ann"})


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def version(request):
    return request.param


@pytest.fixture
def shop():
    return Shop()


@pytest.fixture
async def call(shop, version):
    async with connect(shop, version=version, handler=Answering()) as client:
        yield Client(client)


@pytest.mark.parametrize("version", VERSIONS, indirect=True)
async def test_a_handle_lives_from_call_to_call(call, version):
    """A result has the id and the fields; later calls get what earlier ones have stored."""
    opened = await call("open")

    assert list(json.loads(opened.text)) == ["id", "items"]
    basket = json.loads(opened.text)["id"]
    assert len(basket) >= 22
    for item in ("tea", "milk"):
        assert not (await call("add", basket=basket, item=item)).is_error
    assert not (await call("touch", basket=basket, item="salt")).is_error
    shown = json.loads((await call("look", basket=basket)).text)
    assert {"id": basket, "items": ["tea", "milk", "salt"]} == shown
    assert shown["id"] != json.loads((await call("open")).text)["id"]


async def test_a_handle_outlives_its_connection(shop):
    """It lives as long as the server object, and for every version."""
    async with connect(shop, version="2025-11-25") as client:
        basket = await Client(client).open("tea")
    async with connect(shop) as client:
        assert await Client(client).items(basket) == ["tea"]
    async with connect(Shop()) as client:
        assert unknown() == text_of(await Client(client)("add", basket=basket, item="x"))


async def test_a_handle_that_is_deleted(call):
    """It is gone at once, also if the handler fails later, or shows it."""
    basket, other, third = [await call.open("tea") for _ in range(3)]

    assert (await call("close", basket=basket)).text == "closed 1"
    assert unknown() == text_of(await call("add", basket=basket, item="x"))
    assert text_of(await call("close_and_fail", basket=other)) == "closed, and failed"
    assert unknown() == text_of(await call("add", basket=other, item="x"))
    shown = await call("close_and_show", basket=third)
    assert {"id": third, "items": ["tea"]} == shown.structured
    assert unknown() == text_of(await call("add", basket=third, item="x"))


async def test_ids_that_are_not_good(shop, call, version):
    """Every such id gets one and the same answer."""
    basket = await call.open()
    order = (await call("order")).structured["id"]

    for id_ in (order, basket[:-1], basket + "A", basket[:-1] + "é", "", "x", "A" * 32, "A" * 9999):
        assert unknown() == text_of(await call("add", basket=id_, item="x"))
    text = text_of(await call("move", source=basket, target=basket, order=basket))
    assert "No such Order: order is unknown, has expired, or was deleted." in text
    assert text_of(await call("look", basket=order)) == unknown()
    assert "basket" in text_of(await call("add", basket=5, item="x"))
    assert not (await call("move", source=basket, target=basket, order=None)).is_error


async def test_the_answer_names_tools_that_make_one_first(call):
    """A model that reads it can go on."""
    text = text_of(await call("touch", basket="x"))

    assert text.endswith(f"Tools that return one: {KNOWN}")


async def test_a_class_that_no_tool_returns():
    """There is nothing to name."""

    class Look(Tool):
        async def call(self, basket: Basket) -> str:
            return ""

    class Bare(Server, name="bare", version="1"):
        tools = [Look]

    async with connect(Bare) as client:
        told = await client.call_tool("look", {"basket": "x"})
    assert text_of(told) == "No such Basket: basket is unknown, has expired, or was deleted"


async def test_owners(shop, version):
    """The id of another caller is unknown, and its time is not extended."""
    async with (
        connect(shop, principal=ADA, version=version) as ada,
        connect(shop, principal=BOB, version=version) as bob,
        connect(shop, version=version) as anyone,
    ):
        basket = await Client(ada).open("tea")
        for other in (bob, anyone):
            assert unknown() == text_of(await Client(other)("add", basket=basket, item="x"))
            assert unknown() == text_of(await Client(other)("look", basket=basket))
            assert unknown() == text_of(await Client(other)("close", basket=basket))
        public = await Client(anyone).open()
        assert unknown() == text_of(await Client(ada)("look", basket=public))
        assert await Client(ada).items(basket) == ["tea"]


async def test_expiry(shop, version, autojump_clock):
    """It counts from the last use, and a refused use does not count."""
    async with (
        connect(shop, principal=ADA, version=version) as ada,
        connect(shop, principal=BOB, version=version) as bob,
    ):
        call = Client(ada)
        basket = await call.open()
        first = float((await call("touch", basket=basket)).text)
        for tool_name in ("touch", "look", "touch"):
            await trio.sleep(99)
            assert not (await call(tool_name, basket=basket)).is_error
        assert first + 297 == pytest.approx(float((await call("touch", basket=basket)).text), abs=1)
        await trio.sleep(60)
        await Client(bob)("touch", basket=basket)
        await trio.sleep(41)
        assert unknown() == text_of(await call("add", basket=basket, item="x"))


async def test_a_handle_that_expires_while_its_call_runs(version, autojump_clock):
    """The call is a use of it: it is stored."""

    class Short(Handle, ttl=5.0):
        items: list[str] = []

    class Kit(Toolkit):
        @mcp
        async def make(self) -> Short:
            return Short()

        @mcp
        async def wait(self, short: Short) -> Short:
            await trio.sleep(20)
            short.items.append("late")
            return short

    class Slow(Server, name="slow", version="1"):
        tools = [Kit]

    async with connect(Slow, version=version) as client:
        short = (await client.call_tool("make")).structured["id"]
        for items in (["late"], ["late", "late"]):
            told = await client.call_tool("wait", {"short": short})
            assert {"id": short, "items": items} == told.structured


@pytest.mark.parametrize("how", ["advice", "crash", "result", "contract", "types", "large"])
async def test_a_call_that_fails_stores_nothing(call, how, caplog):
    """However it fails."""
    basket = await call.open("tea")

    failed = await call("fail", basket=basket, how=how)

    assert failed.is_error
    assert await call.items(basket) == ["tea"]
    if how == "large":
        assert failed.text == "The Basket has 314 bytes, and may have 200; nothing is stored"
    if how == "types":
        assert failed.text == "Tool execution failed"
        assert "Basket has values that do not fit its fields: /items: expected array" in caplog.text


async def test_a_call_that_runs_out_of_time(shop, version, autojump_clock):
    """Its changes are dropped, and the handle is free."""
    async with connect(shop, version=version) as client:
        call = Client(client)
        basket = await call.open("tea")

        assert (await call("fail", basket=basket, how="sleep")).is_error
        assert (await call("add", basket=basket, item="x")).structured["items"] == ["tea", "x"]


async def test_a_result_that_is_too_large():
    """It is an error for the client, so nothing is stored."""

    class Tight(Shop, name="tight", version="1", max_result_bytes=230):
        pass

    async with connect(Tight) as client:
        call = Client(client)
        opened = (await call("make")).text
        assert "ask for less" in text_of(await call("add", basket=opened, item="x" * 50))
        assert "ask for less" in text_of(await call("open", items=["x" * 80]))
        assert not (await call("add", basket=opened, item="x")).is_error


async def test_a_new_handle_that_is_too_large(call, shop):
    """It is not stored, and no other new handle of the result; none of them has an id."""
    text = text_of(await call("open", items=["x" * 300]))
    assert text == "The Basket has 314 bytes, and may have 200; nothing is stored"
    assert (await call("many", count=3, fail=True)).is_error
    assert [each.id for each in shop.kit.seen] == [None] * 3


async def test_many_new_handles(call, shop):
    """Each is stored once, also if the result has it twice."""
    text = (await call("many", count=3)).text
    found = json.loads(text)

    assert [each["items"][0] for each in found] == ["0", "1", "2", "0"]
    assert [each.id for each in shop.kit.seen] == [each["id"] for each in found[:3]]
    assert found[0] == found[3]
    for each in found:
        assert each["items"] == await call.items(each["id"])


async def test_a_handle_in_a_result_without_a_schema(call):
    """It is stored just the same."""
    made = (await call("bare")).structured

    assert made["items"] == await call.items(made["id"])


async def test_a_handle_whose_types_are_not_there(version, caplog):
    """A result without a schema is the first to need them; the log names them."""

    class Lost(Handle):
        goods: "list[Nowhere]" = []  # noqa: F821

    class Kit(Toolkit):
        @mcp
        async def make(self):
            return Lost()

    class Losing(Server, name="losing", version="1"):
        tools = [Kit]

    async with connect(Losing, version=version) as client:
        assert (await client.call_tool("make")).is_error
    assert "cannot find 'Nowhere'" in caplog.text


async def test_fields_of_many_types(version):
    """They come back as they were, in every form that a schema may have."""

    class Goods(Schema):
        name: str
        price: Decimal

    @dataclass
    class Place:
        x: int

    class Size(Enum):
        SMALL = "small"

    class Model(pydantic.BaseModel):
        width: float

    class Full(Handle):
        goods: list[Goods] = []
        by_place: dict[str, Place] = {}
        size: Size | None = None
        made: datetime | None = None
        path: Path = Path("/")
        tags: set[str] = set()
        pair: tuple[int, str] | None = None
        data: bytes = b""
        model: Model | None = None
        anything: object = None
        _hidden: int = 0

        def __attrs_post_init__(self):
            if self.path == Path("wrong"):
                raise ValueError("wrong path")

    values = {
        "goods": [Goods(name="tea", price=Decimal("1.50"))],
        "by_place": {"here": Place(1)},
        "size": Size.SMALL,
        "made": datetime(2026, 7, 28, tzinfo=UTC),
        "path": Path("/x"),
        "tags": {"a", "b"},
        "pair": (1, "x"),
        "data": b"\x00",
        "model": Model(width=1.5),
        "anything": {"deep": [1, None]},
        "hidden": 5,
    }
    seen = []

    class Kit(Toolkit):
        @mcp
        async def make(self) -> Full:
            return Full(**values)

        @mcp
        async def change(self, full: Full) -> Full:
            seen.append(full)
            full.path = Path("wrong")
            return full

        @mcp
        async def look(self, full: Full) -> str:
            seen.append(full)
            return ""

    class Typed(Server, name="typed", version="1"):
        tools = [Kit]

    async with connect(Typed, version=version) as client:
        full = (await client.call_tool("make")).structured["id"]
        assert not (await client.call_tool("look", {"full": full})).is_error
        assert seen.pop() == Full(**values)
        assert (await client.call_tool("change", {"full": full})).is_error
        assert not (await client.call_tool("look", {"full": full})).is_error
        assert seen.pop() == Full(**values)


async def test_calls_that_take_one_handle(shop, call):
    """They run one after the other, in the order in which they came; others do not wait."""
    basket, other = await call.open(), await call.open()

    async with trio.open_nursery() as nursery:
        for key in ("one", "two", "three"):
            nursery.start_soon(partial_call(call, "hold", basket=basket, key=key))
            await trio.testing.wait_all_tasks_blocked()
        assert shop.kit.running == 1
        assert not (await call("add", basket=other, item="x")).is_error
        for key in ("three", "two", "one"):
            shop.kit.gate(key).set()
    assert await call.items(basket) == ["one", "two", "three"]


async def test_calls_over_several_connections(shop, version, autojump_clock):
    """They wait for each other, too."""
    async with (
        connect(shop, version=version) as client,
        connect(shop, version=version) as second,
    ):
        call, other = Client(client), Client(second)
        basket = await call.open()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial_call(call, "hold", basket=basket, key="one"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(partial_call(other, "hold", basket=basket, key="two"))
            await trio.sleep(9)
            assert shop.kit.running == 1
            shop.kit.gate("two").set()
            shop.kit.gate("one").set()
        assert await call.items(basket) == ["one", "two"]


async def test_read_only_tools(shop, call):
    """They run beside each other and beside others, and store nothing."""
    basket = await call.open("tea")

    async with trio.open_nursery() as nursery:
        for name, key in (("hold", "w"), ("hold_reading", "r"), ("hold_reading", "r")):
            nursery.start_soon(partial_call(call, name, basket=basket, key=key))
        await trio.testing.wait_all_tasks_blocked()
        assert shop.kit.running == 3
        assert await call.items(basket) == ["tea"]
        shop.kit.gate("r").set()
        shop.kit.gate("w").set()
    assert await call.items(basket) == ["tea", "w"]


@pytest.mark.parametrize("how", ["delete", "save", "save new", "return"])
async def test_read_only_tools_that_store(call, how, caplog):
    """It is a mistake of the author."""
    basket = await call.open("tea")

    assert (await call("change_reading", basket=basket, how=how)).is_error
    verb = how.partition(" ")[0]
    assert f"a tool with read_only_hint cannot {verb} a handle" in caplog.text
    assert await call.items(basket) == ["tea"]


async def test_several_handles_in_one_call(call, autojump_clock):
    """They are locked in one order, so that calls with the same handles do not block each other."""
    one, two = await call.open("a"), await call.open("b")
    order = (await call("order")).structured["id"]

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            for source, target in [(one, two), (two, one)] * 4:
                nursery.start_soon(
                    partial_call(call, "move", source=source, target=target, order=order)
                )
    found = [await call.items(one), await call.items(two)]
    assert sorted(sorted(each) for each in found) == [[], ["a", "b"]]


async def test_one_handle_in_two_parameters(call):
    """The handler gets one object."""
    basket = await call.open("a")

    assert (await call("move", source=basket, target=basket)).text == "2"
    assert await call.items(basket) == ["a", "a"]


async def test_save(call, version):
    """It stores at once, whatever happens later."""
    basket = await call.open()

    assert (await call("save", basket=basket)).structured["items"] == ["saved", "returned"]
    assert await call.items(basket) == ["saved", "returned"]
    assert text_of(await call("save", basket=basket, fail=True)) == "after the save"
    assert await call.items(basket) == ["saved", "returned", "saved"]


async def test_save_a_new_handle(call):
    """It has an id then; what changes later is stored if it is returned."""
    made = (await call("make")).text
    assert await call.items(made) == ["made"]
    shown = json.loads((await call("make", more=True)).text)
    assert ["made", "more"] == shown["items"] == await call.items(shown["id"])


async def test_save_what_cannot_be_saved(call, caplog):
    """Something else, and a handle that was deleted."""
    assert (await call("save_anything", how="text")).is_error
    assert "save takes a Handle, not 'text'" in caplog.text
    assert (await call("save_anything", how="deleted")).is_error
    assert "the handle was deleted; make a new one" in caplog.text


@pytest.mark.parametrize("how", ["delete", "save", "return"])
async def test_an_object_of_an_earlier_call(call, how, caplog):
    """It is of no use: its lock is given back."""
    basket = await call.open()
    await call("add", basket=basket, item="x")

    assert (await call("use_late", how=how)).is_error
    text = f"the call of this handle has ended; {how} it in a call that takes it"
    assert text in caplog.text
    assert await call.items(basket) == ["x"]


async def test_a_saved_object_of_an_earlier_call(call):
    """Where no call has changed the handle since, it can be returned, saved and deleted."""
    made = (await call("make")).text
    for how in ("return", "save"):
        assert {"id": made, "items": ["made"]} == (await call("use_late", how=how)).structured
    await call("add", basket=made, item="x")
    made = (await call("make")).text
    await call("use_late", how="delete")
    assert unknown() == text_of(await call("look", basket=made))


async def test_an_object_that_others_have_changed(call, shop):
    """Saving it would lose their change."""
    made = (await call("make")).text
    saved = shop.kit.seen[-1]
    await call("add", basket=made, item="x")
    shop.kit.seen.append(saved)
    saved.items.append("y")

    text = "The Basket was changed by another call meanwhile; try again"
    assert text == text_of(await call("use_late", how="save"))
    assert await call.items(made) == ["made", "x"]


async def test_an_inline_tool_that_returns_a_handle(call, caplog):
    """It cannot wait until it is stored; the log says what to do."""
    assert (await call("inline")).is_error
    assert "return it from a tool that is not inline; elsewhere await ctx.save" in caplog.text


async def test_sync_handlers(call):
    """They run in threads, as always."""
    basket = await call.open()

    assert (await call("threaded", basket=basket)).structured["items"] == ["thread"]
    assert await call.items(basket) == ["thread"]
    assert not (await call("threaded", basket=basket, drop=True)).is_error
    assert unknown() == text_of(await call("look", basket=basket))


@pytest.mark.parametrize("replay", [False, True])
async def test_questions(shop, version, replay):
    """A handler that asks stores once, also if it is run again for its answer."""
    options = {"replay": True} if replay else {}
    async with connect(shop, version=version, handler=Answering(), **options) as client:
        call = Client(client)
        basket = await call.open()
        for name in ("ask", "ask_by_hand"):
            assert not (await call(name, basket=basket)).is_error
        assert await call.items(basket) == ["asked", "Ann", "run"]


async def test_tasks(shop):
    """A task loads its handles, and stores them when it ends; a bad id is its result."""
    async with connect(shop, capabilities=KNOWS) as client:
        call = Client(client)
        basket = await call.open()
        assert await result_of(client, await start(client, "work", basket=basket)) == "worked"
        assert await call.items(basket) == ["worked"]
        assert unknown() == await result_of(client, await start(client, "work", basket="x"))
    async with connect(shop) as client:
        assert (await Client(client)("work", basket=basket)).text == "worked"


async def test_an_override_of_call_tool(version):
    """It gets the ids, and may pass the call on; handles of its own results are stored."""

    class Over(Shop, name="over", version="1"):
        async def call_tool(self, name, args, ctx):
            if name == "own":
                return {"basket": Basket(items=["own"])}
            return await super().call_tool(name, args, ctx)

    async with connect(Over, version=version) as client:
        call = Client(client)
        basket = await call.open()
        assert (await call("add", basket=basket, item="x")).structured["items"] == ["x"]
        own = json.loads((await call("own")).text)["basket"]
        assert await call.items(own["id"]) == ["own"]


class TestNested:
    """A handler that calls tools with the handle that it has."""

    async def test_the_inner_call_works_on_the_object_of_the_outer_one(self, call):
        """Both see the changes of each other, and the outer call stores them."""
        basket = await call.open()

        told = await call("add_twice", basket=basket)

        assert told.structured["items"] == ["outer", "inner", "end"]
        assert told.structured["items"] == await call.items(basket)

    async def test_the_inner_call_fails(self, call):
        """Its changes are dropped."""
        basket = await call.open()

        told = await call("add_twice", basket=basket, inner="add_and_fail")

        assert told.structured["items"] == ["outer", "inner failed", "end"]

    async def test_the_inner_call_only_reads(self, call):
        """It sees the changes of the outer call, and changes nothing."""
        basket = await call.open()

        told = await call("add_twice", basket=basket, inner="peek")

        assert told.structured["items"] == ["outer", "end"]

    async def test_the_outer_call_only_reads(self, call):
        """The inner call stores its changes itself."""
        basket = await call.open()

        told = json.loads((await call("read_outside", basket=basket)).text)

        assert ["inner"] == told["items"] == await call.items(basket)

    async def test_inner_calls_beside_each_other(self, call):
        """They run one after the other."""
        basket = await call.open()

        told = await call("add_beside", basket=basket)

        assert sorted(told.structured["items"]) == ["a", "b", "c"]
        assert told.structured["items"] == await call.items(basket)

    async def test_the_inner_call_deletes(self, call):
        """The handle is gone for the outer call, too."""
        basket = await call.open()

        assert unknown() == (await call("close_inside", basket=basket)).text
        assert unknown() == text_of(await call("look", basket=basket))


class TestElsewhere:
    """Mounted servers, functions, asyncio, prompts."""

    async def test_mounted_servers(self, version):
        """Their tools are named as clients see them, and all of it works."""

        class Mall(Server, name="mall", version="1"):
            providers = [Mount(Shop, prefix="eu")]

        async with connect(Mall, version=version) as client:
            basket = (await client.call_tool("eu_open")).structured["id"]
            arguments = {"basket": basket, "item": "x"}
            assert (await client.call_tool("eu_add", arguments)).structured["items"] == ["x"]
            saved = await client.call_tool("eu_save", {"basket": basket})
            assert saved.structured["items"] == ["x", "saved", "returned"]
            twice = await client.call_tool("eu_add_twice", {"basket": basket})
            assert "inner" in twice.structured["items"]
            refused = text_of(await client.call_tool("eu_look", {"basket": "x"}))
            assert "eu_open, eu_many" in refused
            tools = {each.name: each.input_schema for each in await client.list_tools()}
        text = tools["eu_look"]["properties"]["basket"]["description"]
        assert text.startswith("A basket of a shop: its id, as eu_open or eu_many")

    async def test_functions(self, version):
        """They take handles as methods do."""

        async def make() -> Order:
            return Order()

        async def count(order: Order) -> Order:
            order.lines += 1
            return order

        class Functions(Server, name="functions", version="1"):
            tools = [make, tool(count, name="raise")]

        async with connect(Functions, version=version) as client:
            order = (await client.call_tool("make")).structured["id"]
            for lines in (1, 2):
                told = await client.call_tool("raise", {"order": order})
                assert {"id": order, "lines": lines} == told.structured

    async def test_asyncio(self, version):
        """Handlers on asyncio await the same methods there, with and without a context."""

        class Kit(Toolkit, loop="asyncio"):
            @mcp
            async def make(self, ctx) -> str:
                order = Order(lines=1)
                await ctx.save(order)
                await order.delete()
                order = Order(lines=1)
                await ctx.save(order)
                return order.id

            @mcp
            async def count(self, ctx, order: Order) -> Order:
                order.lines += 1
                await ctx.save(order)
                order.lines += 1
                await ctx.call_tool("trio_count", {"order": order.id})
                return order

            @mcp
            async def drop(self, order: Order) -> str:
                await order.delete()
                return "dropped"

        async def trio_count(order: Order) -> str:
            order.lines += 1
            await trio.lowlevel.checkpoint()
            return ""

        async def trio_drop(ctx, order: Order) -> str:
            await ctx.call_tool("drop", {"order": order.id})
            await order.delete()
            return ""

        class OnAsyncio(Server, name="asyncio", version="1"):
            tools = [Kit, trio_count, trio_drop]

        async with connect(OnAsyncio, version=version) as client:
            order = (await client.call_tool("make")).text
            assert (await client.call_tool("count", {"order": order})).structured["lines"] == 4
            assert (await client.call_tool("drop", {"order": order})).text == "dropped"
            order = (await client.call_tool("make")).text
            assert not (await client.call_tool("trio_drop", {"order": order})).is_error
            assert (await client.call_tool("drop", {"order": order})).is_error

    async def test_prompts(self, version):
        """A prompt may save one, and hand out its id."""

        class Start(Prompt):
            async def get(self, ctx):
                basket = Basket(items=["from a prompt"])
                await ctx.save(basket)
                return basket.id

        class Prompted(Shop, name="prompted", version="1"):
            prompts = [Start]

        async with connect(Prompted, version=version) as client:
            message = (await client.get_prompt("start")).messages[0]
            assert await Client(client).items(message.content.fields["text"]) == ["from a prompt"]


class TestLimits:
    """The bounds of `Limits`."""

    async def test_handles(self, version):
        """The next one is refused, until one is deleted."""

        class Small(Shop, name="small", version="1", limits=Limits(handles=2)):
            pass

        async with connect(Small, version=version) as client:
            call = Client(client)
            basket, _ = await call.open(), await call.open()
            text = "Too many handles are kept; delete one, or try again later"
            assert text == text_of(await call("open"))
            assert not (await call("add", basket=basket, item="x")).is_error
            await call("close", basket=basket)
            await call.open()

    async def test_handles_of_a_principal(self, version):
        """Each principal has a share; others are not concerned."""

        class Small(Shop, name="small", version="1", limits=Limits(handles_per_principal=1)):
            pass

        small = Small()
        async with (
            connect(small, principal=ADA, version=version) as ada,
            connect(small, principal=BOB, version=version) as bob,
            connect(small, version=version) as anyone,
        ):
            await Client(ada).open()
            text = "Too many handles of yours are kept; delete one, or try again later"
            assert text == text_of(await Client(ada)("open"))
            await Client(bob).open()
            for _ in range(3):
                await Client(anyone).open()

    async def test_handle_memory(self, version, autojump_clock):
        """Bytes are counted until a handle is deleted or expires; a principal has a quarter."""

        class Small(Shop, name="small", version="1", limits=Limits(handle_memory=400)):
            pass

        small = Small()
        async with (
            connect(small, version=version) as client,
            connect(small, principal=ADA, version=version) as ada,
        ):
            call = Client(client)
            full = "Handles hold too many bytes; delete one, or try again later"
            assert full == text_of(await Client(ada)("open", items=["x" * 100]))
            own = await Client(ada).open("x" * 50)
            assert full == text_of(await Client(ada)("add", basket=own, item="x" * 50))
            baskets = [await call.open("x" * 100) for _ in range(2)]
            assert full == text_of(await call("open", items=["x" * 100]))
            assert not (await call("add", basket=baskets[0], item="")).is_error
            await call("close", basket=baskets[0])
            await call.open("x" * 100)
            await trio.sleep(60)
            await call("touch", basket=baskets[1])
            await trio.sleep(60)  # the other two have expired
            await call.open("x" * 100)
            assert full == text_of(await call("open", items=["x" * 180]))

    async def test_many_handles_that_expire(self, autojump_clock):
        """They are forgotten, and make room for others."""

        class Small(Shop, name="small", version="1", limits=Limits(handles=600)):
            pass

        async with connect(Small) as client:
            for _ in range(6):
                for _ in range(3):
                    made = await client.call_tool("many", {"count": 200})
                    assert not made.is_error
                await trio.sleep(101)

    @pytest.mark.parametrize("name", ["handles", "handles_per_principal", "handle_memory"])
    def test_wrong_limits(self, name):
        """They are integers of at least 1."""
        with pytest.raises(ValueError, match=f"Limits.{name} must be an integer of at least 1"):
            Limits(**{name: 0})


def test_one_server_in_two_loops():
    """Each loop has its own handles while both run; one after the other they share them."""
    shop = Shop()

    async def inner():
        async with connect(shop) as client:
            return await Client(client).open("inner")

    async def outer():
        async with connect(shop) as client:
            basket = await Client(client).open("outer")
            other = await trio.to_thread.run_sync(trio.run, inner)
            assert (await Client(client)("look", basket=other)).is_error
            assert await Client(client).items(basket) == ["outer"]

    trio.run(outer)

    async def later():
        async with connect(shop) as client:
            return await Client(client).items(kept)

    kept = trio.run(inner)
    assert trio.run(later) == ["inner"]


def partial_call(call, name, **arguments):
    """Make a function that makes a call."""

    async def run():
        await call(name, **arguments)

    return run
