"""Models of pydantic in tools, prompts and templates."""

from collections.abc import Callable
from typing import Annotated, Any

import pydantic
import pytest
from pydantic import BaseModel, Field

from noizu_mcp import (
    Accept,
    Client,
    ClientHandler,
    Context,
    Prompt,
    Schema,
    Server,
    Tool,
    Toolkit,
    connect,
    mcp,
    prompt,
    resource,
)
from noizu_mcp.components import expand


class Item(BaseModel):
    """A line."""

    sku: str = Field(alias="SKU")
    qty: int = Field(1, ge=1)


class Order(BaseModel):
    """An order.

    Args:
        items: The lines.
    """

    items: list[Item]

    @pydantic.field_validator("items")
    @classmethod
    def _some(cls, items: list[Item]) -> list[Item]:
        if not items:
            raise ValueError("an order needs a line")
        return items


class Receipt(BaseModel):
    count: int

    @pydantic.computed_field
    def text(self) -> str:
        return f"{self.count} lines"


class Nested(Tool):
    """The input and the output are nested classes."""

    class Input(BaseModel):
        order: Order

    class Output(BaseModel):
        count: int

    def call(self, args: Input) -> Output:
        return self.Output(count=len(args.order.items))


class Data(Tool, input=Order, output=Receipt):
    """The input and the output are options."""

    def call(self, args: Order) -> Receipt:
        return Receipt(count=len(args.items))


class Shop(Toolkit):
    @mcp
    def whole(self, args: Order) -> Receipt:
        """Book a whole order."""
        return Receipt(count=len(args.items))

    @mcp
    def parameter(self, order: Order, times: Annotated[int, Field(ge=1)] = 1) -> list[Receipt]:
        """Book an order."""
        return [Receipt(count=len(order.items))] * times

    @mcp
    def loose(self, order: Order | None = None) -> Any:
        """Return a model where no output is declared."""
        return {"order": order}

    @mcp
    async def ask(self, ctx: Context) -> str:
        """Ask for an item."""
        answer = await ctx.elicit("Which?", Item)
        assert isinstance(answer, Accept)
        return repr(answer.content)


def function(order: Order) -> Receipt:
    """Book by a function."""
    return Receipt(count=len(order.items))


class Review(Prompt):
    class Arguments(BaseModel):
        code: str = Field(description="The code", min_length=2)
        limit: int = 3

    def get(self, args: Arguments) -> str:
        return f"{type(args).__name__} {args.code} {args.limit}"


def check(code: pydantic.SecretStr, limit: Annotated[int, Field(le=5)] = 1) -> str:
    return f"{code} {limit}"


def row(number: pydantic.PositiveInt) -> str:
    return f"row {number}"


class App(Server, name="app", version="1"):
    tools = [Nested, Data, Shop, function]
    prompts = [Review, prompt(check)]
    resources = [resource(row, uri="db://{number}")]


class Person(ClientHandler):
    async def handle_elicitation(self, params: Any) -> Any:
        assert params["requestedSchema"]["properties"]["qty"]["minimum"] == 1
        return Accept({"SKU": "x", "qty": 2})


ORDER = {"items": [{"SKU": "a"}, {"SKU": "b", "qty": 2}]}
ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


@ERAS
@pytest.mark.parametrize(
    ("name", "arguments", "structured"),
    [
        ("nested", {"order": ORDER}, {"count": 2}),
        ("data", ORDER, {"count": 2, "text": "2 lines"}),
        ("whole", ORDER, {"count": 2, "text": "2 lines"}),
        ("function", {"order": ORDER}, {"count": 2, "text": "2 lines"}),
        (
            "loose",
            {"order": {"items": [{"SKU": "a"}]}},
            {"order": {"items": [{"SKU": "a", "qty": 1}]}},
        ),
        ("loose", {}, {"order": None}),
    ],
)
async def test_models_in_tools(version: str, name: str, arguments: Any, structured: Any) -> None:
    """They work as whole input, parameter, output, and undeclared result."""
    async with connect(App, version=version) as client:
        result = await client.call_tool(name, arguments)
        assert (result.is_error, result.structured) == (False, structured)


@ERAS
async def test_a_list_of_models_is_an_output(version: str) -> None:
    """A client gets the list, or its wrapping object up to 2025-11-25."""
    async with connect(App, version=version) as client:
        result = await client.call_tool("parameter", {"order": ORDER, "times": 2})
        receipts = [{"count": 2, "text": "2 lines"}] * 2
        assert result.structured == (receipts if version > "2026" else {"result": receipts})


async def answer(client: Client, name: str, arguments: Any) -> list[str]:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    assert result.meta is not None
    lines = result.content[0].text.splitlines()[1:]
    told = result.meta["com.noizu.mcp/violations"]
    assert lines == [f"{each['path'] or '(root)'}: {each['message']}" for each in told]
    assert "pydantic" not in result.content[0].text
    return list(lines)


async def test_errors_are_in_our_form() -> None:
    """Each violation of the schema or a validator is a line, and in the list of `_meta`."""
    async with connect(App) as client:
        assert await answer(client, "whole", {"items": []}) == [
            "/items: an order needs a line, got array []"
        ]
        wrong = {"order": {"items": [{"SKU": 1, "qty": 0}, {}]}, "times": 0}
        assert await answer(client, "parameter", wrong) == [
            "/order/items/0/SKU: expected string, got integer 1",
            "/order/items/0/qty: 0 is less than the minimum of 1",
            "/order/items/1/SKU: required, but missing",
            "/times: 0 is less than the minimum of 1",
        ]


@ERAS
async def test_a_model_is_asked_for(version: str) -> None:
    """The answer is an instance, in either era."""
    async with connect(App, version=version, handler=Person()) as client:
        result = await client.call_tool("ask")
        assert result.content[0].text == "Item(sku='x', qty=2)"


async def test_prompts_and_templates() -> None:
    """Classes of arguments and pydantic types as parameters are parsed from strings."""
    async with connect(App) as client:
        first, second = await client.list_prompts()
        assert [(each.name, each.required) for each in first.arguments] == [
            ("code", True),
            ("limit", None),
        ]
        assert first.arguments[0].description == "The code"
        assert second.name == "check"
        found = await client.get_prompt("review", {"code": "xy", "limit": "7"})
        assert found.messages[0].content.text == "Arguments xy 7"
        found = await client.get_prompt("check", {"code": "xy", "limit": "4"})
        assert found.messages[0].content.text == "********** 4"
        assert (await client.read_resource("db://3")).contents[0].text == "row 3"


def test_schemas_have_descriptions_of_docstrings() -> None:
    """They come from the class, also for a nested model."""
    specs = {spec.name: spec for spec in expand([Shop])}
    whole, nested = specs["whole"].input.schema, specs["parameter"].input.schema

    assert whole["properties"]["items"]["description"] == "The lines."
    assert nested["properties"]["order"]["description"] == "An order."
    assert "title" not in str(whole) + str(nested)


def test_a_model_without_a_schema_is_refused(refusal: Callable[[str], str]) -> None:
    """The error has the line of its field, and says what to write for its type."""
    text = refusal(
        "import pydantic\n"
        "class Blob: pass\n"
        "class Order(pydantic.BaseModel):\n"
        "    model_config = {'arbitrary_types_allowed': True}\n"
        "    blob: Blob\n"
        "class Kit(Toolkit):\n"
        "    @mcp\n"
        "    def book(self, order: Order): ...\n"
    )

    assert text.startswith("case.py:8: Kit.book.order.blob: Blob has no JSON Schema; use str, int")


def test_a_default_of_a_parameter_is_checked(refusal: Callable[[str], str]) -> None:
    """The default of `pydantic.Field` is checked, too."""
    text = refusal(
        "import pydantic\n"
        "class Kit(Toolkit):\n"
        "    @mcp\n"
        "    def book(self, n: int = pydantic.Field(9, le=5)): ...\n"
    )

    assert (
        text == "case.py:7: Kit.book.n: default 9 is above max 5; change the default or the field"
    )


def test_a_schema_of_the_package_and_models_mix() -> None:
    """A model in a Schema is delivered and returned."""

    class Both(Schema):
        order: Order
        n: int = 1

    class Kit(Toolkit):
        @mcp
        def both(self, args: Both) -> Both:
            return args

    (spec,) = expand([Kit])
    value = spec.input.build({"order": ORDER})  # type: ignore[misc]

    assert isinstance(value.order, Order)
    assert spec.output is not None
    assert spec.output.schema["properties"]["order"]["required"] == ["items"]


ITEMS: list[int] = Field(default_factory=list)


class DirectCalls(Toolkit):
    @mcp
    def count(self, a: int = Field(ge=0), b: int = Field(2, ge=1)) -> int:
        return a + b

    @mcp
    def gather(self, *, items: list[int] = ITEMS) -> int:
        return len(items)


def test_a_direct_call_uses_the_default_of_field_info() -> None:
    """A method called without a server uses the defaults of `pydantic.Field`."""
    assert DirectCalls().count(1) == 3
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        DirectCalls().count()
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'items'"):
        DirectCalls().gather()
