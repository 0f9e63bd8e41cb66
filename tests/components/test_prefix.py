"""`prefix=` of registrations: names and URIs of components that are registered more than once."""

from typing import Any

import pytest

from noizu_mcp import (
    DefinitionError,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
    Toolkit,
    connect,
    mcp,
    prompt,
    resource,
    resource_template,
    tool,
)
from noizu_mcp.components import expand


class Shop(Toolkit):
    def __init__(self, city: str) -> None:
        self.city = city

    @mcp
    def stock(self) -> str:
        return f"bread in {self.city}"

    @mcp(name="shop.open")
    def is_open(self) -> bool:
        return True


class Greet(Tool):
    def call(self, name: str) -> str:
        return f"Hello {name}"


class Prices(Resource, uri="shop://prices"):
    def read(self, uri: str) -> str:
        return uri


class Price(ResourceTemplate, uri_template="shop://{item}/price", traversal=True):
    def read(self, item: str) -> str:
        return f"{item} costs 1"


class Order(Prompt):
    def get(self, item: str) -> str:
        return f"Order {item}"


def add(a: int) -> int:
    """Add nothing."""
    return a


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("eu", ["eu_stock", "eu_shop.open"]),
        ("eu_", ["eu_stock", "eu_shop.open"]),
        ("eu.", ["eu.stock", "eu.shop.open"]),
        ("e-1-", ["e-1-stock", "e-1-shop.open"]),
    ],
)
def test_names_of_a_kit(prefix: str, names: list[str]) -> None:
    """All of its tools get the prefix, with one separator."""
    specs = expand([tool(Shop("Paris"), prefix=prefix)])
    assert [spec.name for spec in specs] == names
    assert [spec.definition["name"] for spec in specs] == names


def test_other_options_hold_beside_it() -> None:
    """In nested registrations the outer prefix is used, and a given name is prefixed."""
    specs = expand([tool(tool(Greet, name="hi", prefix="a"), prefix="b"), tool(add, prefix="eu")])
    assert [spec.name for spec in specs] == ["b_hi", "eu_add"]


@pytest.mark.parametrize(
    ("registration", "uri", "name"),
    [
        (resource(Prices, prefix="eu"), "eu+shop://prices", "eu+shop://prices"),
        (resource(Prices, prefix="my_eu", name="prices"), "my-eu+shop://prices", "prices"),
        (resource(lambda: "", uri="a:b", prefix="eu_"), "eu+a:b", "eu+a:b"),
        (resource_template(Price, prefix="eu"), "eu+shop://{item}/price", "eu+shop://{item}/price"),
    ],
)
def test_uris(registration: Any, uri: str, name: str) -> None:
    """The prefix precedes the scheme; schemes have no underscore."""
    (spec,) = expand([registration], "resources")
    assert (spec.definition[spec.key], spec.name, spec.definition["name"]) == (uri, name, name)


def test_prompts() -> None:
    """A prompt is prefixed like a tool."""
    (spec,) = expand([prompt(Order, prefix="eu")], "prompts")
    assert spec.name == "eu_order"


async def test_one_kit_twice() -> None:
    """Each registration uses its own instance, and a template matches its own URIs."""

    class Shops(Server, name="shops", version="1"):
        tools = [tool(Shop("Paris"), prefix="eu"), tool(Shop("Tokyo"), prefix="asia")]
        resources = [Prices, resource(Prices, prefix="eu"), resource_template(Price, prefix="eu")]

    async with connect(Shops) as client:
        assert (await client.call_tool("eu_stock")).text == "bread in Paris"
        assert (await client.call_tool("asia_stock")).text == "bread in Tokyo"
        for uri, text in (
            ("shop://prices", "shop://prices"),
            ("eu+shop://prices", "eu+shop://prices"),
            ("eu+shop://../price", ".. costs 1"),
        ):
            assert (await client.read_resource(uri)).contents[0].text == text


@pytest.mark.parametrize("prefix", ["", "1", "a b", "a:", "é", "a" * 65, 3])
def test_wrong_prefixes(prefix: Any) -> None:
    """A prefix must be a valid beginning of names and schemes."""
    with pytest.raises(DefinitionError, match=r"tool\(Greet\)\.prefix: must be a letter, then"):
        tool(Greet, prefix=prefix)


def test_names_that_clash_with_a_prefix() -> None:
    """Two registrations with the same prefix are refused with their class."""
    with pytest.raises(DefinitionError, match="the name 'eu_stock' is registered 2 times"):

        class Twice(Server, name="twice", version="1"):
            tools = [tool(Shop("Paris"), prefix="eu_"), tool(Shop("Rome"), prefix="eu")]
