"""Text in arguments that stands for other types: where it is read, and how faults are reported."""

from datetime import date

import pytest
from pydantic import BaseModel, field_validator

from noizu_mcp import Limits, Schema, Server, Tool, Toolkit, connect, mcp, tool

ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
RAW = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Sum(Tool):
    """Add."""

    class Input(Schema):
        n: int
        on: bool = True
        rows: list[int] = []

    def call(self, args: Input) -> str:
        return repr((args.n, args.on, args.rows))


class Exact(Toolkit, coerce=False):
    @mcp
    def exact(self, n: int) -> str:
        return repr(n)

    @mcp(coerce=True)
    def loose(self, n: int) -> str:
        return repr(n)


class Kit(Toolkit):
    @mcp
    def parameters(self, n: int, note: str = "") -> str:
        return repr((n, note))

    @mcp(input={"n": int})
    def data(self, args) -> str:
        return repr(args.n)

    @mcp(input_schema=RAW)
    def raw(self, args) -> str:
        return repr(args["n"])

    @mcp(input_schema=RAW, coerce=True)
    def asked(self, args) -> str:
        return repr(args["n"])

    @mcp
    def day(self, n: int, day: date) -> str:
        return repr(n)


class App(Server, name="app", version="1"):
    tools = [Sum, Exact, Kit, tool(Sum, name="other", coerce=False)]


async def call(name, arguments, server=App, version="2026-07-28"):
    async with connect(server, version=version) as client:
        result = await client.call_tool(name, arguments)
        return result.content[0].text


@ERAS
async def test_declared_forms_read_text(version):
    """Typed forms, data forms and ordinary parameters read text as their declared type."""
    sent = {"n": "3", "on": "false", "rows": '[1, "2"]'}

    assert await call("sum", sent, version=version) == "(3, False, [1, 2])"
    assert await call("data", {"n": "3"}, version=version) == "3"
    assert await call("parameters", {"n": "3", "note": "4"}, version=version) == "(3, '4')"


@pytest.mark.parametrize("name", ["exact", "other", "raw"])
async def test_who_does_not(name):
    """Raw schemas do not read text, nor do tools, kits and registrations with `coerce=False`."""
    assert '/n: expected integer, got string "3"' in await call(name, {"n": "3"})
    assert await call(name, {"n": 3}) in ("3", "(3, True, [])")


async def test_the_nearest_option_counts():
    """The option of a method overrides that of its kit and the rule for raw schemas."""
    assert await call("loose", {"n": "3"}) == "3"
    assert await call("asked", {"n": "3"}) == "3"


@pytest.mark.parametrize(("coerce", "texts"), [(True, ["3", "3"]), (False, ["no", "no"])])
async def test_a_server_decides_for_all(coerce, texts):
    """The option of a server includes raw schemas, but not tools with an option of their own."""

    class Own(Server, name="own", version="1", coerce=coerce):
        tools = [Exact, Kit]

    found = [await call(name, {"n": "3"}, Own) for name in ("data", "raw")]
    assert [text if text == "3" else "no" for text in found] == texts
    assert await call("loose", {"n": "3"}, Own) == "3"
    assert "expected integer" in await call("exact", {"n": "3"}, Own)


async def test_invalid_arguments_are_shown_as_sent():
    """If one argument is invalid, the error shows every argument as it was sent."""
    text = await call("sum", {"n": "3", "on": "yes"})

    assert text.splitlines()[1:] == [
        '/n: expected integer, got string "3"',
        '/on: expected boolean, got string "yes"',
    ]


async def test_a_class_that_refuses_the_result():
    """If a type or validator refuses the value that was read, the first fault is reported."""

    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def _even(cls, n):
            if n % 2:
                raise ValueError("must be even")
            return n

    class Evens(Toolkit):
        @mcp
        def even(self, args: Even) -> str:
            return repr(args.n)

    class Own(Server, name="own", version="1"):
        tools = [Evens]

    assert await call("even", {"n": "4"}, Own) == "4"
    assert 'expected integer, got string "3"' in await call("even", {"n": "3"}, Own)
    assert 'expected integer, got string "3"' in await call("day", {"n": "3", "day": "x"})


async def test_limits_of_the_server_hold_for_json_text():
    """Text that exceeds the limits of a message as JSON is not read."""

    class Own(Server, name="own", version="1", limits=Limits(message_values=100)):
        tools = [Sum]

    rows = [0] * 60
    assert str(rows) in await call("sum", {"n": 1, "rows": str(rows)}, Own)
    assert "/rows: expected array" in await call("sum", {"n": 1, "rows": str(rows * 2)}, Own)


async def test_an_override_reads_text_too():
    """`super().call_tool` in an override reads arguments by the same rules, and emits the event."""
    heard = []

    class Own(Server, name="own", version="1"):
        tools = [Sum]
        telemetry = [heard.append]

        async def call_tool(self, name, args, ctx):
            return await super().call_tool(name, args, ctx)

    assert await call("sum", {"n": "3"}, Own) == "(3, True, [])"
    assert [event.coerced for event in heard if event.method == "tools/call"] == [False, True]


async def test_a_call_before_any_request():
    """A call outside of a request reads text, too, and emits no event."""
    done = []

    class Own(Server, name="own", version="1"):
        tools = [Sum]

        async def init(self, ctx):
            result = await self.call_tool("sum", {"n": "3"}, ctx)
            done.append(result.content[0].text)

    async with connect(Own, version="2025-11-25") as client:
        await client.list_tools()

    assert done == ["(3, True, [])"]
