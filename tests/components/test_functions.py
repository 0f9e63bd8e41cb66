"""Functions as tools, prompts, resources and templates."""

import functools
import gc
import logging
import types
import weakref
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from noizu_mcp import (
    Context,
    DefinitionError,
    McpError,
    Server,
    connect,
    field,
    mcp,
    prompt,
    resource,
    resource_template,
    tool,
    violations_result,
)
from noizu_mcp.components import check, expand, prepare
from noizu_mcp.schema import compile_schema


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@mcp(name="subtract", inline=True)
@mcp(category="Maths")
def minus(a: int, b: int) -> int:
    return a - b


async def find(query: Annotated[str, field(min_length=2)], ctx: Context, limit: "int" = 10) -> str:
    return f"{query} {limit} {ctx.request_id != ''}"


class Store:
    """A store."""

    def load(self, key: str) -> str:
        """Load."""
        return key * 2

    @staticmethod
    async def keys() -> list[str]:
        return ["k"]

    async def __call__(self, key: str) -> str:
        return key * 3


class Silent:
    def __call__(self, args: Any) -> Any:
        """Say nothing."""
        return args


def run_skill(payload: Any, ctx: Context) -> Any:
    if payload["q"] == 0:
        raise RuntimeError("broken skill")
    return {"q": payload["q"]} if payload["q"] < 5 else {"wrong": True}


def review(code: str, style: str = "dry") -> str:
    """Review code."""
    return f"{code} {style}"


def config(uri: str) -> str:
    """The settings."""
    return uri


async def row(table: str, number: int, ctx: Context) -> str:
    return f"{table} {number} {ctx.request_id != ''}"


SKILL = {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"]}


class Work(Server, name="work", version="1"):
    tools = [
        add,
        minus,
        find,
        Store().load,
        Store.keys,
        tool(Store(), name="store"),
        tool(Silent(), name="silent"),
        tool(functools.partial(add, b=5), name="plus_five"),
        functools.partial(row, "table"),
        tool(lambda args: len(args) + 1, name="count", input={"x": str}, output=int),
    ]
    prompts = [review, prompt(review, name="second", title="Again")]
    resources = [
        resource(config, uri="config://app", mime_type="text/plain"),
        resource(row, uri="db://{table}/{number}", name="rows", description="Rows"),
    ]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_functions_are_components(version: str) -> None:
    """They are listed and called like classes, in every place for a class."""
    async with connect(Work, version=version) as client:
        for name, arguments, answer in [
            ("add", {"a": 1}, "2"),
            ("subtract", {"a": 3, "b": 1}, "2"),
            ("find", {"query": "ab"}, "ab 10 True"),
            ("load", {"key": "k"}, "kk"),
            ("keys", {}, '["k"]'),
            ("store", {"key": "k"}, "kkk"),
            ("silent", {"x": 1}, '{"x":1}'),
            ("plus_five", {"a": 1}, "6"),
            ("row", {"number": 3}, "table 3 True"),
            ("count", {"x": "a"}, "2"),
        ]:
            result = await client.call_tool(name, arguments)
            assert (name, result.content[0].text) == (name, answer)
        listed = {each.name: each for each in await client.list_tools()}
        assert listed["add"].description == "Add two numbers."
        assert listed["add"].input_schema == {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first."},
                "b": {"type": "integer", "description": "The second.", "default": 1},
            },
            "required": ["a"],
        }
        assert listed["subtract"].meta == {"category": "Maths"}
        described = {name: each.description for name, each in listed.items()}
        assert (described["load"], described["store"], described["silent"]) == (
            "Load.",
            "A store.",
            "Say nothing.",
        )
        # A value set by `partial` is not an argument.
        assert listed["plus_five"].input_schema["properties"].keys() == {"a"}
        first, second = await client.list_prompts()
        assert (first.name, second.name, second.title) == ("review", "second", "Again")
        got = await client.get_prompt("second", {"code": "x"})
        assert got.messages[0].content.text == "x dry"
        (each,) = await client.list_resources()
        assert (each.name, each.description, each.mime_type) == (
            "config",
            "The settings.",
            "text/plain",
        )
        (each,) = await client.list_resource_templates()
        assert (each.name, each.description) == ("rows", "Rows")
        for uri, text in (("config://app", "config://app"), ("db://users/3", "users 3 True")):
            assert (await client.read_resource(uri)).contents[0].text == text
        with pytest.raises(McpError, match="not found"):
            await client.read_resource("db://users/x")


async def test_tools_from_run_time_data(caplog: pytest.LogCaptureFixture) -> None:
    """Schemas, limits and the output contract apply as to a class; the log has the function."""

    class Empty(Server, name="empty", version="1"):
        tools = ()

    server = Empty()
    server.tools.add(
        tool(
            run_skill,
            name="skill:Tech News",
            description="[dynamic] News",
            input_schema=SKILL,
            output_schema=SKILL,
            timeout=5,
        ),
        add,
    )
    async with connect(server) as client:

        async def text(arguments: dict[str, Any]) -> str:
            result = await client.call_tool("skill:Tech News", arguments)
            return result.content[0].text

        assert await text({"q": 1}) == '{"q":1}'
        assert await text({"q": "x"}) == (
            'Invalid arguments for tool skill:Tech News:\n/q: expected integer, got string "x"'
        )
        assert await text({"q": 7}) == "Tool skill:Tech News broke its output contract"
        assert f"the answer of {__name__}.run_skill was not sent" in caplog.text
        with caplog.at_level(logging.ERROR):
            assert await text({"q": 0}) == "Tool execution failed"
        assert f"{__name__}.run_skill" in caplog.text
        assert "broken skill" in caplog.text
        server.tools.remove("skill:Tech News")
        assert [each.name for each in await client.list_tools()] == ["add"]


def test_registrations_of_functions_nest() -> None:
    """Outer options override inner ones; the schema of the inner registration stays."""
    inner = tool(run_skill, name="inner", input_schema=SKILL, inline=True)
    (spec,) = expand([tool(inner, name="outer", strict=False)])
    assert (spec.name, spec.mode, spec.definition["inputSchema"]) == ("outer", "inline", SKILL)
    (template,) = expand(
        [resource(resource(row, uri="db://{table}/{number}"), title="T")], "resources"
    )
    assert (template.name, template.title) == ("row", "T")
    (template,) = expand(
        [resource_template(row, uri_template="db://{table}/{number}")], "resources"
    )
    assert template.name == "row"


def test_what_was_read_is_kept() -> None:
    """A function is read once, a copy or a changed one again; nothing is kept alive."""
    (first,), (again,) = expand([add]), expand([add])
    assert first.input is again.input

    @functools.wraps(add)
    def other(a: int) -> int:
        return a

    (copied,) = expand([other])
    assert copied.invoke({"a": 4}, None) == 4

    def marked_later() -> weakref.ref[Any]:
        def local(a: int) -> int:
            return a

        expand([local])
        mcp(title="Now")(local)
        assert expand([local])[0].title == "Now"
        return weakref.ref(local)

    reference = marked_later()
    gc.collect()
    assert reference() is None


def test_names_of_the_function_around() -> None:
    """An annotation in quotes may name a class of the enclosing function."""
    from noizu_mcp import Schema

    class Local(Schema):
        a: int

    def outer() -> Any:
        def handle(args: "Local") -> int:
            return args.a

        return expand([handle])

    (spec,) = outer()
    args, _ = prepare(spec, {"a": 3})
    assert spec.invoke(args, None) == 3


def test_a_function_without_a_source(load: Callable[[str], types.ModuleType]) -> None:
    """A function from an interactive shell is shown with the line of its code."""
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec(compile("\n\ndef greet(name): ...", "<console>", "exec"), names)
    with pytest.raises(DefinitionError, match=r"^<console>:3: greet.name: has no annotation"):
        expand([names["greet"]])


# The last lines of a source, and the complete `DefinitionError`. They start at line 8.
PRELUDE = """import functools
from noizu_mcp import Prompt, Server, prompt, resource
class Kit(Toolkit):
    @mcp
    def act(self): ...
"""
REFUSED = {
    "function": (
        "def greet(name, *rest):\n    name = 1\nexpand([greet])",
        (
            "case.py:9: greet: takes *rest; name each parameter, or write def greet(args, ctx)\n"
            "case.py:9: greet.name: has no annotation; write name: str, or call it args to take the"
            " whole input"
        ),
    ),
    "line of a parameter": (
        "def add(\n    a: int,\n    b,\n): ...\nexpand([add])",
        "case.py:11: add.b: has no annotation; write b: str",
    ),
    "class of a server": (
        (
            "def greet(name): ...\n"
            "class Work(Server, name='w', version='1'):\n"
            "    tools = [greet, len]\n"
            "    prompts = [greet]\n"
            "    resources = [greet]"
        ),
        (
            "case.py:9: greet.name: has no annotation; write name: str, or call it args to take the"
            " whole input\n"
            "case.py:9: greet.name: has no annotation; write name: str, or call it args to take the"
            " whole input\n"
            "case.py:11: Work.tools[1]: len is not written in Python, and has no types; write a"
            " function that calls it\n"
            "case.py:13: Work.resources[0]: the function greet needs a URI; write resource(greet,"
            " uri='config://app')"
        ),
    ),
    "twice": (
        "def f(): ...\nexpand([f, f])",
        (
            "tools: the name 'f' is registered 2 times; give all but one another with tool(…,"
            " name=…)"
        ),
    ),
    "options and parameters": (
        (
            "def greet(name): ...\n"
            "tool(greet, bogus=1, hidden=3, input_schema={'type': 'strin'},\n"
            "     output={'a': f.string(min=1)})"
        ),
        (
            "case.py:10: tool(greet).bogus: unknown option; there are: name, title, description,"
            " prefix, category, annotations, icons, meta, hidden, visible, timeout,"
            " max_concurrency, max_queue, max_result_bytes,"
            " coerce, requires, available, loop, inline, strict, task, starts_task, restartable,"
            " input, output, input_schema,"
            " output_schema\n"
            "case.py:10: tool(greet).hidden: must be True or False, got 3\n"
            "case.py:10: greet.input_schema.type: takes one of null, boolean, object, array,"
            ' number, string, integer, or a list of them, not "strin"\n'
            'case.py:10: greet.input_schema: the root of an input must be of type "object"; declare'
            " a class with fields, a mapping of fields, or a schema with that type\n"
            "case.py:10: greet.output.a: min does not belong to string; write min_length"
        ),
    ),
    "marked": (
        "@mcp(inline=True, bogus=1)\nasync def f(a: int) -> 'Missing': ...\nexpand([f])",
        (
            "case.py:10: f.bogus: unknown option; there are: name, title, description, category,"
            " annotations, icons, meta, hidden, visible, timeout, max_concurrency,"
            " max_queue, max_result_bytes,"
            " coerce, requires, available, loop, inline, strict, task, starts_task, restartable,"
            " input, output, input_schema, output_schema\n"
            "case.py:10: f.inline: is for a sync method; an async one runs where it is called"
            " anyway\n"
            "case.py:10: f: the annotation of its result names something that is not there when the"
            " class is made; import it, not for type checkers alone, or give @mcp(output=…)"
        ),
    ),
    "marked by a position": (
        "@mcp('x')\ndef f(): ...\nexpand([f])",
        "tools[0]: @mcp takes keywords only; write @mcp(name=…)",
    ),
    "schema of a class": (
        "class Bad(Schema, abstract=1): ...",
        "case.py:9: Bad: unknown class keyword 'abstract'; a Schema class takes none",
    ),
    "field of a class": (
        (
            "class Outer:\n"
            "    class Input:\n"
            "        a: int = field(min=3, default=1)\n"
            "def f(args: Outer.Input): ...\n"
            "expand([f])"
        ),
        "case.py:11: f.args.a: default 1 is below min 3; change the default or the field",
    ),
    "lambda": (
        "expand([lambda: 1])",
        "case.py:9: <lambda>: gives the tool no valid name; write tool(…, name='…')",
    ),
    "object": (
        "class Store:\n    def __call__(self): ...\nprompt(Store())",
        "case.py:10: Store: gives the prompt no valid name; write prompt(…, name='…')",
    ),
    "wrong name": (
        "tool(lambda: 1, name='')",
        "case.py:9: tool(<lambda>).name: must be a printable text that is not empty, got ''",
    ),
    "name of a language": (
        "def größe(): ...\nexpand([größe])",
        "case.py:9: größe: gives the tool no valid name; write tool(…, name='…')",
    ),
    "builtin": (
        "tool(print)",
        (
            "case.py:9: print: is not written in Python, and has no types; write a function that"
            " calls it"
        ),
    ),
    "generator": (
        "def f():\n    yield 1\nexpand([f])",
        "case.py:9: f: yields, but an answer is one value; return a list",
    ),
    "method without its object": (
        "class Store:\n    def load(self, key: str): ...\nexpand([Store.load])",
        (
            "case.py:10: load.self: a method is a component with its object only; register"
            " object.method, or a Toolkit"
        ),
    ),
    "method of a kit": (
        "tool(Kit().act)",
        "case.py:9: tool(act): act is a method of Kit; register Kit",
    ),
    "resource without a URI": (
        "def f(): ...\nresource(f)",
        "case.py:9: f: a resource needs a URI; write resource(f, uri='config://app')",
    ),
    "object without a URI": (
        "class Store:\n    def __call__(self): ...\nexpand([Store()], 'resources')",
        ("resources[0]: an instance of Store needs a URI; write resource(…, uri='config://app')"),
    ),
    "wrong URI": (
        "def f(): ...\nresource(f, uri='nope', size=-1)",
        (
            "case.py:10: resource(f).uri: must be an absolute URI like 'config://app', other"
            " characters percent-encoded (RFC 3986), got 'nope'\n"
            "case.py:10: resource(f).size: must be a whole number of bytes, got -1"
        ),
    ),
    "wrong template": (
        "def f(a: int): ...\nresource(f, uri='x:{a', traversal=1)",
        (
            "case.py:10: resource(f).traversal: must be True or False, got 1\n"
            "case.py:10: resource(f).uri: at 3 in 'x:{a': '{' is never closed; write '}' behind the"
            " variable"
        ),
    ),
    "variables of a template": (
        "def f(a: int): ...\nresource(f, uri='x:{b}')",
        (
            "case.py:9: f.a: 'x:{b}' has no variable of this name\n"
            "case.py:9: f: 'x:{b}' has a variable 'b'; declare it"
        ),
    ),
    "tool among the prompts": (
        "def f(): ...\nexpand([tool(f)], 'prompts')",
        "prompts[0]: f is not a prompt; register it in tools = […]",
    ),
    "prompt of a tool": (
        "@mcp\ndef f(): ...\nprompt(tool(f))",
        "case.py:11: prompt(f): f is not a prompt; register it in tools = […]",
    ),
    "prompt under a mark": (
        "@mcp\ndef f(): ...\nprompt(f)",
        "case.py:10: f: stands under @mcp, which marks tools; take it off for a prompt",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_functions(name: str, refusal: Callable[[str], str]) -> None:
    """One error lists every problem, with the place of the function or its registration."""
    source, message = REFUSED[name]
    assert refusal(PRELUDE + source) == message


def test_check_reports_functions_in_place() -> None:
    """A function's problems have its own place, other problems their place in the list."""

    def wrong(a): ...  # type: ignore[no-untyped-def]  # the missing annotation is the test

    first, second = check([wrong, add, 3])
    assert first.where == "wrong.a"
    assert first.line is not None
    assert (second.where, second.line) == ("tools[2]", None)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_an_override_refuses_arguments_like_the_server(version: str) -> None:
    """`violations_result` returns the same text and list as a registered tool."""

    class Registered(Server, name="work", version="1"):
        tools = [add]

    class Computed(Registered, name="work", version="1"):
        async def call_tool(self, name: str, args: Any, ctx: Context) -> Any:
            compiled = compile_schema(self.registry.list()[0]["inputSchema"])
            return violations_result(name, compiled.violations(args))

    results = []
    for cls in (Registered, Computed):
        async with connect(cls, version=version) as client:
            result = await client.call_tool("add", {"a": "x", "b": None})
            results.append((result.content, result.is_error, result.meta))
    assert results[0] == results[1]
    assert len(results[0][2]["com.noizu.mcp/violations"]) == 2
