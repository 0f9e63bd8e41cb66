"""Classes of handles: their statements, their fields, and the tools that take and return them."""

from typing import Annotated, Generic, TypeVar

import pytest

from noizu_mcp import (
    Annotations,
    DefinitionError,
    Handle,
    Prompt,
    Schema,
    Server,
    Tool,
    Toolkit,
    connect,
    field,
    mcp,
    tool,
)

Item = TypeVar("Item")


class Basket(Handle, ttl=60.0, max_size=100):
    """A basket of a shop.

    It has no lid.
    """

    items: list[str] = []
    note: str | None = None


class Order(Handle):
    lines: int = 0


def wrong(define):
    """Return the problems of a class statement, without their places."""
    with pytest.raises(DefinitionError) as caught:
        define()
    return [f"{each.where}: {each.text}" for each in caught.value.problems]


def schema_of(kit, name):
    """Return the definition of a tool of a server with one kit."""

    class Shop(Server, name="shop", version="1"):
        tools = [kit]

    return Shop().registry.find_tool(name).definition


def test_an_instance_can_be_changed():
    """Fields have their defaults, each instance its own; it has no id until it is stored."""
    basket, other = Basket(), Basket(note="x")

    basket.items.append("tea")
    basket.note = "y"

    assert (basket.items, basket.note, basket.id, basket.expires_at) == (["tea"], "y", None, None)
    assert other.items == []
    assert repr(basket) == "Basket(items=['tea'], note='y')"


async def test_an_instance_that_is_not_stored():
    """It cannot be deleted, and asking for it does nothing."""
    basket = Basket()

    await basket.delete()

    assert basket.id is None


def test_options_are_inherited():
    """A subclass has the fields and the options of its base, unless it gives its own."""

    class Gift(Basket, ttl=5):
        card: str = ""

    assert Gift(card="x").items == []
    assert Gift.__mcp_handle__[1:3] == (5, 100)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("ttl", 0, "must be a number of seconds above 0, not 0"),
        ("ttl", -1.5, "must be a number of seconds above 0, not -1.5"),
        ("ttl", float("inf"), "must be a number of seconds above 0, not inf"),
        ("ttl", "1", "must be a number of seconds above 0, not '1'"),
        ("ttl", None, "must be a number of seconds above 0, not None"),
        ("max_size", 0, "must be a number of bytes above 0, not 0"),
        ("max_size", 1.5, "must be a number of bytes above 0, not 1.5"),
        ("max_size", True, "must be a number of bytes above 0, not True"),
    ],
)
def test_wrong_options(option, value, text):
    """An option that is not above 0 is refused, with its name."""

    def define():
        class Cart(Handle, **{option: value}):
            pass

    assert [f"Cart.{option}: {text}"] == wrong(define)


def test_every_problem_of_a_statement_is_listed():
    """Options, unknown keywords, names of members, and types without JSON."""

    def define():
        class Cart(Handle, ttl=0, size=5):
            id: str
            expires_at: float = 0.0
            delete: bool = False
            z: complex = 1j

    found = wrong(define)

    member = "is a member of every handle; give it another name"
    for problem in (
        "Cart.ttl: must be a number of seconds above 0, not 0",
        "Cart: unknown class keyword 'size'; a Handle class takes ttl and max_size",
        f"Cart.id: {member}",
        f"Cart.expires_at: {member}",
        f"Cart.delete: {member}",
    ):
        assert problem in found
    assert any(each.startswith("Cart.z: complex has no JSON Schema") for each in found)


def test_a_name_that_is_defined_twice():
    """The second definition would hide the first."""

    def define():
        class Cart(Handle):
            def total(self):
                return 1

            def total(self):  # noqa: F811
                return 2

    assert "Cart.total: replaces the definition" in wrong(define)[0]


def test_a_generic_class():
    """A handle has one form."""

    def define():
        class Cart(Handle, Generic[Item]):
            items: list[Item] = []

    assert "is generic" in wrong(define)[0]


def test_handles_in_other_declarations():  # noqa: C901 - one declaration each
    """Only a parameter of its own takes a handle; the errors say what to write."""
    alone = "is a handle, and a call takes it as a parameter of its own"

    class Part(Schema):
        basket: Basket

    def in_a_handle():
        class Cart(Handle):
            basket: Basket

    def in_a_list():
        class Kit(Toolkit):
            @mcp
            async def merge(self, baskets: list[Basket]) -> str:
                return ""

    def in_a_model():
        class Kit(Toolkit):
            @mcp
            async def merge(self, part: Part) -> str:
                return ""

    def beside_another():
        class Kit(Toolkit):
            @mcp
            async def merge(self, basket: Basket | Order) -> str:
                return ""

    def in_an_input():
        class Merge(Tool):
            class Input(Schema):
                basket: Basket

            async def call(self, args: Input) -> str:
                return ""

    def as_the_input():
        class Kit(Toolkit):
            @mcp
            async def merge(self, args: Basket) -> str:
                return ""

    for define in (in_a_handle, in_a_list, in_a_model, beside_another, in_an_input):
        assert any(alone in problem for problem in wrong(define)), define
    assert "is a handle, and no input" in wrong(as_the_input)[0]


def test_the_base_itself():
    """`Handle` alone is no type of a parameter; as that of a result it declares no schema."""

    def taken():
        class Kit(Toolkit):
            @mcp
            async def look(self, basket: Handle) -> str:
                return ""

    class Kit(Toolkit):
        @mcp
        async def make(self) -> Handle:
            return Basket()

    def whole():
        class Kit(Toolkit):
            @mcp
            async def look(self, args: Handle) -> str:
                return ""

    assert "outputSchema" not in schema_of(Kit, "make")
    for define in (taken, whole):
        assert "Handle has no JSON Schema" in wrong(define)[0]
    assert Basket(items=["tea"]).items == ["tea"]


def test_a_default():
    """A parameter has no handle as its default, which would have no id."""

    def define():
        class Kit(Toolkit):
            @mcp
            async def look(self, basket: Basket = Basket()) -> str:  # noqa: B008
                return ""

    assert (
        "default Basket(items=[], note=None) is not JSON: a Basket is stored before it"
        in (wrong(define)[0])
    )


def test_a_handle_in_a_prompt():
    """Arguments of prompts are texts that people type."""

    def define():
        class Ask(Prompt):
            async def get(self, basket: Basket) -> str:
                return ""

    assert "basket" in wrong(define)[0]


def test_tools_that_cannot_have_handles():
    """An inline handler cannot wait, and a read-only tool stores no new handle."""

    def takes_inline():
        class Kit(Toolkit):
            @mcp(inline=True)
            def look(self, basket: Basket) -> str:
                return ""

    def returns_inline():
        class Kit(Toolkit):
            @mcp(inline=True)
            def make(self) -> Basket:
                return Basket()

    def makes_read_only():
        class Make(Tool, annotations=Annotations(read_only_hint=True)):
            async def call(self, basket: Basket) -> Order:
                return Order()

    for define in (takes_inline, returns_inline):
        assert "an inline handler must not wait" in wrong(define)[0]
    assert "a tool with read_only_hint stores nothing" in wrong(makes_read_only)[0]


def test_names_that_are_defined_later():
    """They are found by the first tool that uses the class; if they are not there, it says so."""

    class Cart(Handle):
        goods: "list[Goods]" = []

    class Lost(Handle):
        goods: "list[Nowhere]" = []  # noqa: F821

    class Goods(Schema):
        name: str

    class Kit(Toolkit):
        @mcp
        async def look(self, cart: Cart) -> Cart:
            return cart

    def define():
        class Kit(Toolkit):
            @mcp
            async def look(self, cart: Lost) -> str:
                return ""

    assert "cart" in schema_of(Kit, "look")["inputSchema"]["properties"]
    assert "cannot find 'Nowhere'" in wrong(define)[0]


class Baskets(Toolkit):
    """Tools with handles."""

    @mcp
    async def add(self, basket: Basket, item: str) -> Basket:
        """Add an item.

        Args:
            basket: Where to put it.
            item: The item.
        """
        return basket

    @mcp
    async def open(self) -> Basket:
        return Basket()

    @mcp
    async def count(self, basket: Basket | None = None, order: Order | None = None) -> int:
        return 0

    @mcp
    async def several(self) -> list[Basket]:
        return []

    @mcp(hidden=True)
    async def secret(self) -> Basket:
        return Basket()


def test_the_schema_of_a_parameter():
    """It is a text that names the class and the tools that return one, those that make one first.

    Hidden tools are not named.
    """
    tools = "open or several or add"

    assert {
        "type": "object",
        "properties": {
            "basket": {
                "type": "string",
                "description": "Where to put it. A basket of a shop: its id, as"
                f" {tools} returned it",
            },
            "item": {"type": "string", "description": "The item."},
        },
        "required": ["basket", "item"],
    } == schema_of(Baskets, "add")["inputSchema"]
    properties = schema_of(Baskets, "count")["inputSchema"]["properties"]
    assert (
        f"A basket of a shop: its id, as {tools} returned it"
        == (properties["basket"]["description"])
    )
    assert properties["order"]["description"] == "Order: its id"
    assert properties["basket"]["type"] == ["string", "null"]


def test_the_schema_of_a_result():
    """It shows the id first, and then the fields; also inside of other results."""

    class Part(Schema):
        basket: Basket
        other: Basket | None = None

    class Kit(Toolkit):
        @mcp
        async def part(self) -> Part:
            return Part(basket=Basket())

    output = schema_of(Baskets, "open")["outputSchema"]
    assert list(output["properties"]) == ["id", "items", "note"]
    assert output["required"] == ["id"]
    assert (
        output["properties"]
        == (schema_of(Baskets, "several")["outputSchema"]["items"]["properties"])
    )
    assert (schema_of(Kit, "part")["outputSchema"]["properties"]["basket"]["properties"]["id"]) == {
        "type": "string"
    }


def test_the_definition_of_a_class():
    """Without a server no other tools are known."""

    class Add(Tool):
        async def call(self, basket: Annotated[Basket, field(description="Which one")]) -> str:
            return ""

    properties = Add.definition()["inputSchema"]["properties"]

    assert properties["basket"]["description"] == "Which one. A basket of a shop: its id"


def test_tools_that_change_while_the_server_runs():
    """The descriptions name the tools that are there, under the names that clients see."""

    class Kit(Toolkit):
        @mcp
        async def look(self, basket: Basket) -> str:
            return ""

    async def fetch() -> Basket:
        return Basket()

    class Shop(Server, name="shop", version="1"):
        tools = [Kit]

    shop = Shop()

    def described():
        definition = shop.registry.find_tool("look").definition
        return definition["inputSchema"]["properties"]["basket"]["description"]

    assert described() == "A basket of a shop: its id"
    shop.tools.add(tool(fetch, name="get"))
    assert described() == "A basket of a shop: its id, as get returned it"
    before = shop.registry.find_tool("look")
    shop.tools.add(tool(Baskets, prefix="eu"))
    assert "as get or eu_open or eu_several or eu_add returned it" in described()
    assert before is not shop.registry.find_tool("look")
    look = shop.registry.find_tool("look")
    shop.tools.add(tool(Kit, name="look_again"))
    assert look is shop.registry.find_tool("look")
    shop.tools.remove("get")
    assert "as eu_open" in described()


async def test_tools_that_others_may_not_use():
    """A tool for some callers is named by tools for the same callers only."""

    def for_admins(ctx):
        return True

    class Kit(Toolkit):
        @mcp(available=for_admins)
        async def make(self) -> Basket:
            return Basket()

        @mcp(available=for_admins)
        async def burn(self, basket: Basket) -> str:
            return ""

        @mcp
        async def look(self, basket: Basket) -> str:
            return ""

    class Shop(Server, name="shop", version="1"):
        tools = [Kit]

    async with connect(Shop) as client:
        found = {each.name: each.input_schema for each in await client.list_tools()}

    def described(name):
        return found[name]["properties"]["basket"]["description"]

    assert described("burn") == "A basket of a shop: its id, as make returned it"
    assert described("look") == "A basket of a shop: its id"
