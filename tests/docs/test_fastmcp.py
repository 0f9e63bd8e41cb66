"""The statements about FastMCP on the page for its users are true for the installed version."""

import asyncio
import importlib.util
from typing import Any

import pytest

if importlib.util.find_spec("fastmcp") is None:
    pytest.skip("fastmcp is not installed", allow_module_level=True)

from fastmcp import Client, Context, FastMCP

# Warnings from other packages are not under test.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def call(
    server: FastMCP, tool: str, arguments: dict[str, Any] | None = None, **options: Any
) -> Any:
    """Call a tool in memory, and return the result, or the exception."""

    async def main() -> Any:
        async with Client(server, **options) as client:
            return await client.call_tool(tool, arguments or {}, raise_on_error=False)

    return asyncio.run(main())


@pytest.fixture
def server() -> FastMCP:
    made = FastMCP("theirs")

    @made.tool
    def add(a: int, b: int = "zz") -> int:  # type: ignore[assignment]
        return a

    @made.tool
    def crash() -> str:
        raise RuntimeError("the password is 1234")

    @made.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Sure?", bool)).action

    @made.tool
    async def count(ctx: Context) -> int:
        number = (await ctx.get_state("number") or 0) + 1
        await ctx.set_state("number", number)
        return number

    return made


def test_a_wrong_default_is_published(server: FastMCP) -> None:
    """A default of a wrong type is in the schema."""

    async def main() -> Any:
        async with Client(server) as client:
            return {tool.name: tool.input_schema for tool in await client.list_tools()}

    assert asyncio.run(main())["add"]["properties"]["b"]["default"] == "zz"


def test_the_second_tool_of_a_name_replaces_the_first(server: FastMCP) -> None:
    """The default of `on_duplicate` only warns."""
    server.tool(lambda: "second", name="crash")

    assert call(server, "crash").content[0].text == "second"


def test_the_text_of_an_exception_is_sent(server: FastMCP) -> None:
    """It is sent unless `mask_error_details` is set."""
    masked = FastMCP("masked", mask_error_details=True)

    @masked.tool
    def crash() -> str:
        raise RuntimeError("the password is 1234")

    assert "1234" in call(server, "crash").content[0].text
    assert "1234" not in call(masked, "crash").content[0].text


def test_unknown_arguments_are_refused(server: FastMCP) -> None:
    """Unknown arguments are answered with an error."""
    assert call(server, "add", {"a": 1, "b": 2, "c": 3}).is_error


def test_no_question_and_no_state_on_the_latest_version(server: FastMCP) -> None:
    """`ctx.elicit` is refused, and `set_state` lasts for one request; both work before."""

    async def twice(mode: str) -> list[int]:
        async with Client(server, mode=mode) as client:
            return [(await client.call_tool("count", {})).data for _ in range(2)]

    assert call(server, "ask").is_error
    assert asyncio.run(twice("auto")) == [1, 1]
    assert asyncio.run(twice("legacy")) == [1, 2]


def test_text_for_a_number_is_read_unless_it_is_strict() -> None:
    """`strict_input_validation` refuses what the default coerces."""
    refused = []
    for strict in (False, True):
        made = FastMCP("theirs", strict_input_validation=strict)

        @made.tool
        def double(a: int) -> int:
            return 2 * a

        refused.append(call(made, "double", {"a": "3"}).is_error)
    assert refused == [False, True]
