"""Strategies for tools: valid arguments, invalid arguments, and results."""

import datetime as dt
import sys

import pydantic
import pytest
from hypothesis import Phase, given, settings

from noizu_mcp import DefinitionError, Schema, Server, Tool, Toolkit, field, mcp, tool
from noizu_mcp.testing import (
    Unsatisfiable,
    arguments,
    connect,
    invalid_arguments,
    results,
    strategies,
)
from noizu_mcp.types import ToolDefinition

from .drawing import draw, least


class Search(Tool):
    """Search."""

    class Input(Schema):
        query: str = field(min_length=1)
        limit: int = field(default=10, min=1, max=50)
        since: dt.date | None = None

    class Output(Schema):
        hits: int = field(min=0)

    def call(self, args: Input) -> Output:
        return self.Output(hits=args.limit)


class Numbers(Toolkit):
    @mcp
    def add(self, a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    @mcp(name="half", coerce=False)
    def divide(self, a: int) -> float:
        """Halve."""
        return a / 2

    @staticmethod
    @mcp
    def greet(name: str) -> str:
        """Greet."""
        return name

    def helper(self, a: int) -> int:
        return a


class One(Toolkit):
    @mcp
    def only(self, flag: bool) -> None:
        """Do nothing."""


class Order(pydantic.BaseModel):
    sku: str = pydantic.Field(pattern="^[A-Z]{3}$")
    count: int = pydantic.Field(ge=1, le=9)
    when: dt.datetime


class Contact(pydantic.BaseModel):
    # The class accepts any string.
    email: str = pydantic.Field(json_schema_extra={"format": "email"})


def write(contact: Contact) -> None:
    """Write."""


def buy(order: Order) -> Order:
    """Buy."""
    return order


def anything(args: dict) -> str:
    """Take anything."""
    return str(args)


RAW = {
    "type": "object",
    "properties": {"path": {"type": "string", "minLength": 1}},
    "required": ["path"],
}


class Read(Tool):
    """Read."""

    input_schema = RAW

    def call(self, args) -> str:
        return args["path"]


TOOLS = {
    "class": Search,
    "instance": Search(),
    "registration": tool(Search, name="find"),
    "method": Numbers.add,
    "method without coercion": Numbers.divide,
    "bound method": Numbers().add,
    "static method": Numbers.greet,
    "kit of one": One,
    "function": buy,
    "registered function": tool(buy, name="order"),
    "raw": Read,
    "definition": ToolDefinition("read", input_schema=RAW),
    "wire": {"name": "read", "inputSchema": RAW, "outputSchema": {"type": "array"}},
}


async def call_all(target, examples):
    """Call a tool with each of some arguments; return the results."""
    server = type("Kit", (Server,), {"tools": [target]}, name="kit", version="1")
    async with connect(server) as client:
        (listed,) = await client.list_tools()
        return [await client.call_tool(listed.name, each) for each in examples]


@pytest.mark.parametrize("target", [Search, Read, One, buy])
async def test_a_server_takes_arguments(target):
    """A server accepts the drawn arguments, and its results are valid."""
    answers = await call_all(target, draw(arguments(target), 12))
    assert [each.content for each in answers if each.is_error] == []


@pytest.mark.parametrize("target", [Search, Read, One, buy])
async def test_a_server_refuses_invalid_arguments(target):
    """A server refuses the drawn arguments with a text for a model."""
    answers = await call_all(target, draw(invalid_arguments(target), 12))
    assert all(each.is_error for each in answers)
    assert all("Invalid arguments" in each.content[0].text for each in answers)


@pytest.mark.parametrize("name", TOOLS)
def test_every_form_of_a_tool(name):
    """Each form of a tool has strategies."""
    assert all(isinstance(each, dict) for each in draw(arguments(TOOLS[name]), 5))
    assert all(isinstance(each, dict) for each in draw(invalid_arguments(TOOLS[name]), 5))


def test_formats_that_the_class_does_not_read():
    """A string that violates a format is not invalid if the tool's class accepts it."""
    for value in draw(invalid_arguments(write), 30):
        assert "'email': '" not in str(value)


def test_results():
    """The structured content fits the declared output."""
    assert all(each["hits"] >= 0 for each in draw(results(Search)))
    assert all(each % 1 == 0 for each in draw(results(Numbers.add)))
    assert all(Order.model_validate(each) for each in draw(results(buy)))
    assert all(isinstance(each, list) for each in draw(results(TOOLS["wire"])))


def test_a_tool_without_results():
    """A tool without an output has no results to draw."""
    for target in (One, TOOLS["definition"]):
        with pytest.raises(TypeError, match=r"the tool \w+ declares no output"):
            results(target)


def test_a_tool_that_takes_everything():
    """It has no invalid arguments."""
    with pytest.raises(Unsatisfiable, match=r"^the tool anything takes every object$"):
        invalid_arguments(anything)
    assert draw(arguments(anything))


def test_several_tools():
    """A kit of several tools needs the method."""
    with pytest.raises(TypeError, match=r"several tools \(add, half, greet\); pass one of"):
        arguments(Numbers)


@pytest.mark.parametrize("target", [3, Schema, Numbers().helper], ids=["number", "class", "method"])
def test_no_tool(target):
    """Other objects are refused with a message."""
    with pytest.raises(TypeError, match="expected a tool"):
        arguments(target)


def test_a_wrong_function():
    """A function that cannot be a tool is refused with its problems."""

    def wrong(a: "nowhere.Thing"):  # noqa: F821 - the mistake
        """Be wrong."""

    with pytest.raises(DefinitionError, match="nowhere"):
        arguments(wrong)


def test_the_keyword_is_noted(capsys):
    """A failing test prints the keyword and the path that the arguments violate."""

    @settings(database=None, derandomize=True, phases=[Phase.generate])
    @given(invalid_arguments(Search))
    def refuses(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        refuses()
    assert any("breaks " in note for note in caught.value.__notes__)


@pytest.mark.slow
def test_text_for_other_types_is_left_out():
    """Text that stands for an integer is valid with coercion, and invalid without it."""

    def has_text(value):
        return isinstance(value.get("a"), str) and value["a"] != ""

    assert least(invalid_arguments(Numbers.divide), has_text) == {"a": "0"}
    # No JSON number begins with two zeros.
    assert least(invalid_arguments(Numbers.add), has_text) == {"a": "00"}


@pytest.mark.parametrize(
    "more", [{"required": ["name"]}, {"minProperties": 3}, {"additionalProperties": True}]
)
def test_members_that_are_asked_for(more):
    """Undeclared members are drawn if the schema declares or requires them explicitly."""
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, **more}
    tool = {"name": "open", "inputSchema": schema}

    assert any(each.keys() - {"size"} for each in draw(arguments(tool), 30))
    assert not any(each.keys() - {"size"} for each in draw(arguments(CLOSED), 30))


CLOSED = {
    "name": "closed",
    "inputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}},
}


def test_hypothesis_is_an_extra(monkeypatch):
    """Without Hypothesis a strategy says what to install."""
    monkeypatch.delattr(strategies, "_checked", raising=False)
    monkeypatch.setitem(sys.modules, "noizu_mcp.testing.strategies._checked", None)

    with pytest.raises(ImportError, match="hypothesis"):
        arguments(CLOSED)
