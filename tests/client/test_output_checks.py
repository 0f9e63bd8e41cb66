"""Results of tools, checked against their output schemas."""

import logging

import pytest
import trio

from noizu_mcp import McpError, ProtocolError, Server, Tool, connect
from noizu_mcp.engine import single_failure
from noizu_mcp.types import ToolDefinition

OBJECT = {"type": "object"}
COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BROKEN = '/n: expected integer, got string "3"'
MISSING = "(root): required, but there is no structuredContent"


def tool(output=COUNT, name="t"):
    found = {"name": name, "inputSchema": OBJECT}
    return found if output is None else {**found, "outputSchema": output}


def listed(*tools):
    return {"resultType": "complete", "tools": list(tools)}


def result(structured=None, **members):
    content = [{"type": "text", "text": "x"}]
    if structured is not None:
        members["structuredContent"] = structured
    return {"resultType": "complete", "content": content, **members}


def answers(structured, output=COUNT, **members):
    return {"tools/list": listed(tool(output)), "tools/call": result(structured, **members)}


def initialized(version):
    info = {"name": "scripted", "version": "0"}
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}


def count(script, method):
    return [each["method"] for each in script.received if "method" in each].count(method)


@pytest.fixture
def log(caplog):
    """Return the logged messages."""
    caplog.set_level(logging.WARNING, "noizu_mcp")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_violation_is_listed_and_logged_once(scripted, version, log):
    """The result has a line for each violation, and the log one line for each tool."""
    given = {**answers({"n": "3"}), "initialize": initialized(version)}
    async with scripted(given, version=version) as (client, _):
        await client.list_tools()
        for _ in range(3):
            found = await client.call_tool("t")
            assert found.violations == (BROKEN,)
            assert found.structured == {"n": "3"}
    assert log() == [f"the result of the tool 't' breaks its output schema: {BROKEN}"]


async def test_a_result_that_fits(scripted, log):
    """It has no violations, and nothing is logged."""
    async with scripted(answers({"n": 3}), strictness="strict") as (client, _):
        assert (await client.call_tool("t")).violations == ()
    assert log() == []


async def test_a_strict_client_raises(scripted):
    """The error has a line for each violation."""
    async with scripted(answers({"n": "3", "m": 1}), strictness="strict") as (client, _):
        with pytest.raises(ProtocolError) as caught:
            await client.call_tool("t")
    assert str(caught.value).splitlines() == [
        "the result of the tool 't' breaks its output schema:",
        BROKEN,
    ]


async def test_a_client_that_does_not_check(scripted, log):
    """With `off` nothing is checked."""
    async with scripted(answers({"n": "3"}), strictness="off") as (client, script):
        await client.list_tools()
        assert (await client.call_tool("t")).violations == ()
        assert count(script, "tools/list") == 1
    assert log() == []


async def test_another_strictness(scripted):
    """Unknown modes are refused when a client is made."""
    text = 'strictness is "strict", "warn" or "off", not True'
    with pytest.raises(ValueError, match=text), single_failure():
        async with scripted(strictness=True):
            pass


async def test_structured_content_that_is_missing(scripted, log):
    """A tool with a schema must return structured content (server/tools, "Output Schema")."""
    async with scripted(answers(None)) as (client, _):
        await client.list_tools()
        assert (await client.call_tool("t")).violations == (MISSING,)
    assert log() == [f"the result of the tool 't' breaks its output schema: {MISSING}"]


async def test_null_is_a_value(scripted):
    """2026-07-28 allows any JSON value: null differs from a missing value."""
    given = {
        "tools/list": listed(tool({"type": "null"})),
        "tools/call": {**result(), "structuredContent": None},
    }
    async with scripted(given, strictness="strict") as (client, _):
        found = await client.call_tool("t")
        assert (found.has_structured, found.structured, found.violations) == (True, None, ())


@pytest.mark.parametrize("members", [{"isError": True}])
async def test_a_failure_need_not_fit(scripted, members):
    """The schema does not apply to error results."""
    for structured in (None, {"n": "3"}):
        given = answers(structured, **members)
        async with scripted(given, strictness="strict") as (client, _):
            assert (await client.call_tool("t")).violations == ()


async def test_a_revision_without_structured_content(scripted):
    """2025-03-26 has no output schemas, so nothing is demanded."""
    old = {**answers(None), "initialize": initialized("2025-03-26")}
    async with scripted(old, version="2025-03-26", strictness="strict") as (client, script):
        for _ in range(2):
            assert (await client.call_tool("t")).violations == ()
        assert count(script, "tools/list") == 1


async def test_a_tool_that_was_not_listed(scripted):
    """By default no list is requested, so the result is not checked."""
    async with scripted(answers({"n": "3"})) as (client, script):
        assert (await client.call_tool("t")).violations == ()
        assert count(script, "tools/list") == 0


async def test_a_strict_client_lists_a_tool_that_was_not_listed(scripted):
    """The tools are listed before the call, once, also for a tool that is not in the list."""
    given = {"tools/list": listed(tool()), "tools/call": result({"n": 3})}
    async with scripted(given, strictness="strict") as (client, script):
        for name in ("t", "hidden", "t", "hidden"):
            await client.call_tool(name)
        methods = [each["method"] for each in script.received[1:]]
        assert methods == ["tools/list", "tools/call", "tools/list", *["tools/call"] * 3]


async def test_calls_at_the_same_time_list_once(scripted):
    """Concurrent calls wait for one list."""
    given = {"tools/list": listed(tool()), "tools/call": result({"n": 3})}
    async with scripted(given, strictness="strict") as (client, script):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(client.call_tool, "t")
        assert count(script, "tools/list") == 1
        assert count(script, "tools/call") == 5


async def test_a_strict_client_cannot_call_what_it_cannot_check(scripted):
    """The error of the list is raised, and the call is not sent."""
    given = {"tools/list": ValueError(-32603, "no list today"), "tools/call": result({"n": 3})}
    async with scripted(given, strictness="strict") as (client, script):
        with pytest.raises(McpError, match="no list today"):
            await client.call_tool("t")
        assert count(script, "tools/call") == 0


@pytest.mark.parametrize("now", [{"properties": {"n": {"type": "string"}}}, None])
async def test_a_schema_that_changed_without_notice(scripted, now):
    """A strict client lists the tools again before it reports a violation."""
    given = {
        "tools/list": [{**listed(tool()), "ttlMs": 60_000}, listed(tool(now))],
        "tools/call": result({"n": "3"}),
    }
    async with scripted(given, strictness="strict") as (client, script):
        assert (await client.call_tool("t")).violations == ()
        assert count(script, "tools/list") == 2


async def test_a_server_that_stops_listing(scripted):
    """If the list fails, the known schema is used."""
    given = {
        "tools/list": [listed(tool()), ValueError(-32603, "no list today")],
        "tools/call": result({"n": "3"}),
    }
    async with scripted(given, strictness="strict") as (client, _):
        with pytest.raises(ProtocolError, match="expected integer"):
            await client.call_tool("t")


async def test_a_notice_forgets_the_schemas(scripted):
    """After a notice of changes the old schema is not used."""
    async with scripted(answers({"n": "3"})) as (client, script):
        await client.list_tools()
        assert (await client.call_tool("t")).violations == (BROKEN,)
        await script.say(method="notifications/tools/list_changed")
        await client.ping()
        assert (await client.call_tool("t")).violations == ()
        await client.list_tools()
        assert (await client.call_tool("t")).violations == (BROKEN,)


async def test_pages_of_tools(scripted):
    """Tools of all pages are checked; tools of an earlier list are forgotten."""

    def pages(request):
        if "cursor" not in request["params"]:
            return {**listed(tool(name="a")), "nextCursor": "2"}
        return listed(tool(name="b"))

    given = {"tools/list": pages, "tools/call": result({"n": "3"})}
    async with scripted(given) as (client, script):
        first = await client.list_tools(page="")
        assert (await client.call_tool("a")).violations == (BROKEN,)
        assert (await client.call_tool("b")).violations == ()
        await client.list_tools(page=first.next_cursor)
        assert (await client.call_tool("b")).violations == (BROKEN,)
        script.answers["tools/list"] = listed(tool(name="b"))
        await client.list_tools()
        assert (await client.call_tool("a")).violations == ()
        assert (await client.call_tool("b")).violations == (BROKEN,)


DRAFTS = {
    "http://json-schema.org/draft-04/schema#": {"maximum": 3, "exclusiveMaximum": True},
    "http://json-schema.org/draft-06/schema#": {"exclusiveMaximum": 3},
    "http://json-schema.org/draft-07/schema#": {"if": {"const": 3}, "then": False},
    "https://json-schema.org/draft/2019-09/schema": {"exclusiveMaximum": 3},
    "https://json-schema.org/draft/2020-12/schema": {"exclusiveMaximum": 3},
}


@pytest.mark.parametrize("dialect", DRAFTS)
async def test_every_dialect_from_draft_4_on(scripted, dialect):
    """`$schema` selects the meaning of the keywords."""
    output = {"$schema": dialect, "type": "object", "properties": {"n": DRAFTS[dialect]}}
    async with scripted(answers({"n": 3}, output)) as (client, script):
        await client.list_tools()
        assert len((await client.call_tool("t")).violations) == 1
        script.answers["tools/call"] = result({"n": 2})
        assert (await client.call_tool("t")).violations == ()


def deep(levels):
    schema = {}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


def doubling(levels):
    definitions = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/0", "$defs": {**definitions, str(levels): {}}}


UNUSABLE = {
    "unknown dialect": ({"$schema": "https://example.com/mine"}, "cannot be checked"),
    "another document": ({"$ref": "https://example.com/other.json"}, "nothing is ever fetched"),
    "nowhere": ({"$ref": "#/$defs/a"}, "leads nowhere"),
    "no schema": ({"type": "objekt"}, "type"),
    "no pattern": ({"pattern": "("}, "cannot be used"),
    "too deep": (deep(40), "nested deeper than 64 levels"),
    "too large": ({"description": "x" * 300_000}, "more than the 262144"),
    "too costly": (doubling(40), "more than 100000"),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_schema_that_cannot_be_used(scripted, name, log):
    """The tool can be listed and called; one line says that its results are not checked."""
    output, text = UNUSABLE[name]
    async with scripted(answers({"n": "3"}, output), strictness="strict") as (client, _):
        assert (await client.list_tools())[0].output_schema == output
        for _ in range(2):
            assert (await client.call_tool("t")).violations == ()
    (line,) = log()
    assert line.startswith("results of the tool 't' are not checked: ")
    assert text in line


@pytest.mark.parametrize("engine", ["native", "python", None])
async def test_the_engine_of_a_client(scripted, engine, log, monkeypatch):
    """The engine checks the results; the default comes from the environment."""
    monkeypatch.setenv("NOIZU_MCP_SCHEMA_ENGINE", "native" if engine == "python" else "python")
    output = {"properties": {"n": {"type": "string", "pattern": r"\p{L}"}}}
    async with scripted(answers({"n": "3"}, output), schema_engine=engine) as (client, _):
        await client.list_tools()
        found = (await client.call_tool("t")).violations
    assert len(found) == (engine == "native")
    assert any("the Python engine cannot serve" in line for line in log()) is (engine != "native")


async def test_there_is_no_such_engine(scripted):
    """The error lists both engines."""
    text = 'the schema engine must be "native" or "python"'
    with pytest.raises(ValueError, match=text), single_failure():
        async with scripted({}, schema_engine="rust"):
            pass


async def test_a_schema_is_compiled_once(scripted, log):
    """A list that is read again compiles only schemas that have changed."""
    useless = {"$schema": "https://example.com/unknown"}
    answers = {"tools/list": listed(tool(useless)), "tools/call": result(structured=True)}
    async with scripted(answers) as (client, script):
        for _ in range(3):
            await client.list_tools()
            await client.call_tool("t")
        assert len(log()) == 1
        script.answers["tools/list"] = listed(tool({"const": 1}))
        await client.list_tools()
        assert (await client.call_tool("t")).violations == ("(root): must be 1, got true",)


async def test_memory_is_bounded(scripted):
    """The schemas of 10,000 tools are stored."""
    many = listed(*(tool({"type": "null"}, f"t{number}") for number in range(10_001)))
    async with scripted({"tools/list": many, "tools/call": result({"n": "3"})}) as (client, _):
        await client.list_tools()
        found = [(await client.call_tool(name)).violations for name in ("t9999", "t10000")]
        assert [len(each) for each in found] == [1, 0]


async def test_large_names(scripted, log):
    """The names of logged tools are bounded."""
    answers = {"tools/list": listed(tool(name="a" * 5000)), "tools/call": result({"n": "3"})}
    async with scripted(answers) as (client, _):
        await client.list_tools()
        assert (await client.call_tool("a" * 5000)).violations
    assert len(log()[0]) < 1000


async def test_a_real_server():
    """A violation by a server that lists another schema than its own is reported."""

    class Add(Tool):
        """Add."""

        output_schema = COUNT

        def call(self):
            return {"n": 1}

    class Honest(Server, name="honest", version="1"):
        tools = [Add]

    class Liar(Honest, name="liar"):
        async def list_tools(self, cursor, ctx):
            return [ToolDefinition("add", input_schema=OBJECT, output_schema={"type": "array"})]

    async with connect(Honest, strictness="strict") as client:
        assert (await client.call_tool("add")).structured == {"n": 1}
    async with connect(Liar) as client:
        await client.list_tools()
        found = await client.call_tool("add")
        assert found.violations == ('(root): expected array, got object {"n": 1}',)


async def test_a_result_that_is_too_large_to_check(scripted, log):
    """It is returned unchecked, and the log reports it once."""
    output = {"items": {"anyOf": [{"type": "string", "minLength": n} for n in range(1000)]}}
    async with scripted(answers([1] * 10_000, output), strictness="strict") as (client, _):
        for _ in range(2):
            assert (await client.call_tool("t")).violations == ()
    assert log() == ["a result of the tool 't' is too large to be checked"]
