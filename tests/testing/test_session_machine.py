"""`SessionMachine`: generated sessions on both eras, and the bugs that they find."""

import json
import sys
from typing import Annotated, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from noizu_mcp import (
    Context,
    McpError,
    Prompt,
    Resource,
    Schema,
    Server,
    SyncClient,
    Tool,
    ToolError,
    Toolkit,
    ToolResult,
    argument,
    field,
    mcp,
    testing,
)
from noizu_mcp.testing import SessionMachine
from noizu_mcp.types import ToolDefinition

from .drawing import QUIET, run_machine

COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}}
VERSIONS = ("2025-11-25", "2026-07-28")


Amount = Annotated[int, field(min=0, max=100)]


class Count(Resource, uri="count://now"):
    """A number."""

    def read(self) -> str:
        return "1"


class Gone(Resource, uri="gone://now"):
    """A resource that is listed, and cannot be read."""

    def read(self) -> str:
        raise McpError(-32602, "gone")


class Greet(Prompt):
    """Greet."""

    class Arguments(Schema):
        name: str
        title: str | None = argument(default=None)

    def get(self, args: Arguments) -> str:
        return f"Hello, {args.title} {args.name}"


class Stock(Toolkit):
    """A stock of apples."""

    def __init__(self):
        self.apples = 0

    @mcp
    def add(self, count: Amount) -> int:
        """Add apples."""
        self.apples += count
        return self.apples

    @mcp
    def take(self, count: Amount) -> int:
        """Take apples."""
        if count > self.apples:
            raise ToolError("not enough apples")
        self.apples -= count
        return self.apples

    @mcp
    def look(self, args: dict) -> int:
        """Count the apples; any arguments will do."""
        return self.apples


class Store(Server, name="store", version="1"):
    tools = [Stock]
    resources = [Count, Gone]
    prompts = [Greet]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_without_bugs(version):
    """Steps of every kind are run, and assertions of a subclass hold."""
    methods = set()

    class Sessions(SessionMachine):
        target = Store

        def __init__(self):
            super().__init__()
            self.apples = 0

        def connect(self):
            return SyncClient(Store, version=version, tap=self.see)

        def see(self, direction, message):
            methods.add(json.loads(message).get("method"))

        def check_call(self, name, arguments, result):
            super().check_call(name, arguments, result)
            if not result.is_error:
                self.apples += arguments.get("count", 0) * {"add": 1, "take": -1, "look": 0}[name]
                assert int(result.text) == self.apples

        @invariant()
        def there_are_apples(self):
            assert self.apples >= 0

    run_machine(Sessions, 20)
    assert {"tools/call", "tools/list", "resources/read", "prompts/get"} <= methods


def serving(call, tools=("count",)):
    """Make a machine for a server that lists tools, and passes all calls to a function."""

    class Wrong(Server, name="wrong", version="1"):
        async def list_tools(self, cursor, ctx):
            return [ToolDefinition(name, input_schema=COUNT) for name in tools]

        async def call_tool(self, name, args, ctx):
            return call(args.get("count", 0))

    return type("Sessions", (SessionMachine,), {"target": Wrong})


def check(count):
    """Check the argument, as a framework does."""
    if type(count) is not int and not (type(count) is float and count.is_integer()):
        raise McpError(-32602, "count is an integer")


def crash(count):
    """Crash on large numbers."""
    check(count)
    if count > 1_000:
        raise ZeroDivisionError
    return "done"


def fail(count):
    """Answer a large number with a JSON-RPC error."""
    check(count)
    if count > 1_000:
        raise McpError(-32603, "no such shelf")
    return "done"


def refuse_badly(count):
    """Answer invalid arguments with an internal error."""
    try:
        check(count)
    except McpError as error:
        raise McpError(-32603, "oh") from error
    return "done"


def failure(machine, *, shrink=False):
    """Run a machine; return the text of the failure, and its steps."""
    with pytest.raises((AssertionError, McpError, ExceptionGroup)) as caught:
        run_machine(machine, 60, shrink=shrink)
    found = caught.value
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    return str(found), "".join("".join(found.__notes__).split())


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (fail, "no such shelf", ["call_tool(call=Call(name='count',"]),
        (refuse_badly, "oh", ["call_tool_wrongly(call=Call(name='count',", "breakstype"]),
        (
            str,
            "which its schema forbids",
            ["call_tool_wrongly(call=Call(name='count',", "breakstype"],
        ),
    ],
    ids=["fails", "refuses badly", "takes all"],
)
def test_bugs_are_found(call, error, told):
    """A step fails, and its comment has the keyword that the arguments break."""
    text, steps = failure(serving(call))
    assert error in text
    assert [part for part in told if part not in steps] == []


def test_the_least_session_is_reported():
    """Irrelevant steps are removed, and the value is the smallest one."""
    text, steps = failure(serving(crash), shrink=True)
    assert text == "count crashed with {'count': 1001}"
    assert steps.count("state.") == 2  # and the end of the session
    assert "state.call_tool(call=Call(name='count',arguments={'count':1001}))" in steps


class Stats(Tool):
    """Split a text into words; an empty one is the fault."""

    class Output(Schema):
        words: list[str]

    def call(self, text: str) -> Output:
        return {"words": text.split() if text else None}


class Splitting(Server, name="splitting", version="1"):
    tools = [Stats]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broken_output_contract(version):
    """The server sends an error instead of the value, which tools cannot raise."""
    machine = type("Sessions", (SessionMachine,), {"target": Splitting, "version": version})
    text, _ = failure(machine, shrink=True)
    assert text == "stats broke its output schema with {'text': ''}"


def test_a_broken_output_schema_of_another_server():
    """It sends the value unchanged, and the client finds the violation."""

    class Wrong(Server, name="wrong", version="1"):
        async def list_tools(self, cursor, ctx):
            return [ToolDefinition("count", input_schema=COUNT, output_schema=COUNT)]

        async def call_tool(self, name, args, ctx):
            return ToolResult("1", {"count": "1"})

    text, _ = failure(type("Sessions", (SessionMachine,), {"target": Wrong}), shrink=True)
    assert text.startswith("count broke its output schema with {}: /count: expected integer")


def test_resources_that_fail():
    """An internal error for a listed resource is a bug."""

    class Broken(Resource, uri="broken://now"):
        """Fails when it is read."""

        def read(self) -> str:
            raise ZeroDivisionError

    class Shelf(Server, name="shelf", version="1"):
        resources = [Broken]

    class Sessions(SessionMachine):
        target = Shelf

    with pytest.raises(McpError, match="-32603"):
        run_machine(Sessions)


def test_only_some_tools():
    """A subclass selects the tools for any arguments, and calls others by rules."""
    called = set()

    class Sessions(SessionMachine):
        target = Store
        tools = ("look",)

        def check_call(self, name, arguments, result):
            called.add(name)

        @rule(count=st.integers(0, 5))
        def add(self, count):
            assert self.client.call_tool("add", {"count": count}).text
            called.add("rule")

    run_machine(Sessions)
    assert called == {"look", "rule"}


@pytest.mark.parametrize("version", VERSIONS)
def test_tools_that_come_and_go(version):
    """A removed tool is not a bug, and new ones are called."""
    called = set()

    class Other(Tool):
        """Do nothing."""

        def call(self) -> None: ...

    class Change(Tool):
        """Add the other tool, or remove it."""

        def call(self, ctx: Context) -> None:
            if "other" in ctx.server.tools:
                ctx.server.tools.remove("other")
            else:
                ctx.server.tools.add(Other)

    class Changing(Server, name="changing", version="1"):
        tools = [Change]

    class Sessions(SessionMachine):
        target = Changing

        def check_call(self, name, arguments, result):
            called.add(name)

    Sessions.version = version
    run_machine(Sessions)
    assert called == {"change", "other"}


def test_a_server_that_cannot_be_listed():
    """An error on the way into a session ends the session."""

    class Closed(Server, name="closed", version="1"):
        async def list_tools(self, cursor, ctx):
            raise McpError(-32603, "closed")

        async def call_tool(self, name, args, ctx): ...

    with pytest.raises(McpError, match="closed"):
        run_machine(type("Sessions", (SessionMachine,), {"target": Closed}))


class NoSuch(NamedTuple):
    """A call of a tool, in the form of the steps."""

    name: str
    arguments: dict


def test_a_tool_that_is_gone():
    """A step that calls it lists the tools again, and goes on."""

    class Sessions(SessionMachine):
        target = Store

    machine = Sessions()
    try:
        machine.call_tool(NoSuch("nosuch", {}))
    finally:
        machine.teardown()


def test_hypothesis_is_an_extra(monkeypatch):
    """Without Hypothesis the name exists, and subclassing it says what to install."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.testing.strategies._machine", None)
    monkeypatch.delitem(sys.modules, "noizu_mcp.testing.strategies._session_machine")
    monkeypatch.delattr(testing, "SessionMachine")
    missing = testing.SessionMachine

    with pytest.raises(ImportError, match="hypothesis"):
        type("Sessions", (missing,), {})


class Overdrawn(SessionMachine):
    """A machine whose invariant breaks by every negative amount."""

    class Bank(Server, name="bank", version="1"):
        async def list_tools(self, cursor, ctx):
            return [ToolDefinition("pay", input_schema={**COUNT, "required": ["count"]})]

        async def call_tool(self, name, args, ctx):
            check(args.get("count"))
            return args["count"]

    target = Bank

    def check_call(self, name, arguments, result):
        assert float(result.text) >= 0


def test_nothing_is_said_of_other_arguments():
    """The failing step has its arguments, without a comment about others."""
    explaining = settings(
        QUIET, max_examples=60, phases=[Phase.generate, Phase.shrink, Phase.explain]
    )
    with pytest.raises(AssertionError) as caught:
        run_state_machine_as_test(Overdrawn, settings=explaining)
    notes = "\n".join(caught.value.__notes__)
    assert "state.call_tool(call=Call(name='pay', arguments={'count': -1}))" in notes
    assert "any other" not in notes
