"""Habits from FastMCP and the official SDK: each is refused in place, with the correction."""

from collections.abc import Callable

import pytest

from noizu_mcp import Server, Tool, mcp

PRELUDE = """import functools
from noizu_mcp import *
class Echo(Tool):
    def call(self): ...
class Kit(Toolkit):
    @mcp
    def act(self): ...
class Work(Server, name="w", version="1"): ...
class Review(Prompt):
    def get(self): ...
class Other: ...
def add(a): ...
"""
# The line of the source after both preludes; that of `conftest.py` has three lines.
FIRST = 3 + PRELUDE.count("\n") + 1
SERVER = 'class S(Server, name="s", version="1"):\n'
TOOL = "class T(Tool):\n"
KIT = "class K(Toolkit):\n    @mcp\n"

MAKE_TOOL = (
    "write a function, with @mcp(…) above it for options, and list it in tools = […] of the server"
)
MAKE_PROMPT = (
    "write a function, or prompt(f, …) of it for options, and list it in prompts = […] of the"
    " server"
)
MAKE_RESOURCE = "write a function f, and list resource(f, uri='…') in resources = […] of the server"
NO_SERVER = "mcp is not a server, it marks functions and methods"
ONE_TARGET = "takes one class, instance or function, and options"
NO_CLASS = "@mcp marks functions and methods, not classes; take it off"
IN_SERVER = (
    "@mcp marks the methods of a Toolkit, and this is a server; move it into a class …(Toolkit),"
    " and list that in tools = […]"
)
LIFESPAN = "write `@asynccontextmanager async def lifespan(self)`, and yield once"

# Source, the reported line, and the reported text.
CASES = {
    # Decorators
    "mcp.tool": ("@mcp.tool\ndef f(): ...", 0, f"mcp.tool: {NO_SERVER}; {MAKE_TOOL}"),
    "mcp.tool()": ("@mcp.tool()\ndef f(): ...", 0, f"mcp.tool: {NO_SERVER}; {MAKE_TOOL}"),
    "mcp.tool in a kit": (
        "class K(Toolkit):\n    @mcp.tool(name='x')\n    def f(self): ...",
        1,
        f"mcp.tool: {NO_SERVER}; {MAKE_TOOL}",
    ),
    "mcp.prompt": ("@mcp.prompt\ndef f(): ...", 0, f"mcp.prompt: {NO_SERVER}; {MAKE_PROMPT}"),
    "mcp.resource": (
        "@mcp.resource('a://b')\ndef f(): ...",
        0,
        f"mcp.resource: {NO_SERVER}; {MAKE_RESOURCE}",
    ),
    "mcp.run": (
        "mcp.run()",
        0,
        (
            f"mcp.run: {NO_SERVER}; write class …(Server, name='…', version='…'), and call run() of"
            " an instance"
        ),
    ),
    "tool in a server": (
        f"{SERVER}    @tool\n    def f(self): ...",
        2,
        (
            "f.self: a method is a component with its object only; "
            "register object.method, or a Toolkit"
        ),
    ),
    "tool()": ("@tool()\ndef f(): ...", 0, f"tool(…): {ONE_TARGET}; {MAKE_TOOL}"),
    "tool(name=…)": ("@tool(name='x')\ndef f(): ...", 0, f"tool(…): {ONE_TARGET}; {MAKE_TOOL}"),
    "tool(Echo, 'x')": ("tool(Echo, 'x')", 0, f"tool(…): {ONE_TARGET}; {MAKE_TOOL}"),
    "tool('x')": (
        "@tool('x')\ndef f(): ...",
        0,
        "tool('x'): 'x' is a text; register the class itself",
    ),
    "prompt()": ("@prompt()\ndef f(): ...", 0, f"prompt(…): {ONE_TARGET}; {MAKE_PROMPT}"),
    "resource": (
        "@resource\ndef f(): ...",
        1,
        ("f: a resource needs a URI; write resource(f, uri='config://app')"),
    ),
    "resource(uri)": (
        "@resource('a://b')\ndef f(): ...",
        0,
        ("resource('a://b'): 'a://b' is a text; write resource(function, uri='a://b')"),
    ),
    "resource(template)": (
        "@resource('a://{b}')\ndef f(): ...",
        0,
        ("resource('a://{b}'): 'a://{b}' is a text; write resource(function, uri='a://{b}')"),
    ),
    "resource('x')": (
        "resource('x')",
        0,
        "resource('x'): 'x' is a text; register the class itself",
    ),
    "resource(uri=…)": (
        "@resource(uri='a://b')\ndef f(): ...",
        0,
        f"resource(…): {ONE_TARGET}; {MAKE_RESOURCE}",
    ),
    "resource_template()": (
        "@resource_template()\ndef f(): ...",
        0,
        f"resource_template(…): {ONE_TARGET}; {MAKE_RESOURCE}",
    ),
    # `@mcp` in the wrong place
    "mcp above a class": ("@mcp\nclass T(Tool):\n    def call(self): ...", 0, f"T: {NO_CLASS}"),
    "mcp() above a class": ("@mcp(name='x')\nclass T: ...", 0, f"T: {NO_CLASS}"),
    "mcp in a server": (f"{SERVER}    @mcp\n    def f(self): ...", 2, f"S.f: {IN_SERVER}"),
    "mcp above an override": (
        f"{SERVER}    @mcp(name='x')\n    async def list_tools(self, cursor, ctx): ...",
        2,
        f"S.list_tools: {IN_SERVER}",
    ),
    "mcp in a mixin of a server": (
        f"class M:\n    @mcp\n    def f(self): ...\n{SERVER.replace('(', '(M, ')}    ...",
        2,
        f"S.f: {IN_SERVER}",
    ),
    "mcp above nothing in a server": (f"{SERVER}    a = mcp()", 1, f"S.a: {IN_SERVER}"),
    "property above mcp": (
        f"{KIT}    def ok(self): ...\n    @property\n    @mcp\n    def f(self): ...",
        5,
        "K.f: a property stands above @mcp and hides it; write a method",
    ),
    "cached_property above mcp": (
        (
            f"{KIT}    def ok(self): ...\n"
            "    @functools.cached_property\n    @mcp\n    def f(self): ..."
        ),
        5,
        "K.f: a cached_property stands above @mcp and hides it; write a method",
    ),
    "property above mcp in a tool": (
        f"{TOOL}    def call(self): ...\n    @property\n    @mcp\n    def f(self): ...",
        4,
        "T.f: @mcp marks the tools of a Toolkit; a Tool has one method, call",
    ),
    # A server that is called as a constructor, and a class in place of an instance
    "Server('x')": (
        "Server('x')",
        0,
        (
            "Server: is a base class; subclass it with name= and version=: class App(Server,"
            ' name="…", version="…")'
        ),
    ),
    "Work('x')": (
        "Work('x')",
        0,
        (
            "Work(…): takes no arguments; options stand in the class statement: class Work(Server,"
            ' name="…", version="…")'
        ),
    ),
    "Work(name=…)": (
        "Work(name='x')",
        0,
        (
            "Work(…): takes no arguments; options stand in the class statement: class Work(Server,"
            ' name="…", version="…")'
        ),
    ),
    "Work.run()": (
        "Work.run()",
        0,
        "run(…): needs an instance of the server; write Name().run(…)",
    ),
    "Work.asgi()": (
        "Work.asgi()",
        0,
        "asgi(…): needs an instance of the server; write Name().asgi(…)",
    ),
    "run(transport=…)": (
        "Work().run(transport='http')",
        0,
        "run(…): takes no transport; call run() to serve stdio, run_http(host, port) for HTTP",
    ),
    "run('stdio')": (
        "Work().run('stdio')",
        0,
        "run(…): takes no transport; call run() to serve stdio, run_http(host, port) for HTTP",
    ),
    # Lists
    "function in tools": (
        f"{SERVER}    tools = [add]",
        -1,  # the line of the function
        ("add.a: has no annotation; write a: str, or call it args to take the whole input"),
    ),
    "function in prompts": (
        f"{SERVER}    prompts = [add]",
        -1,  # the line of the function
        ("add.a: has no annotation; write a: str, or call it args to take the whole input"),
    ),
    "method in tools": (
        f"{SERVER}    tools = [Kit().act]",
        1,
        "S.tools[0]: act is a method of Kit; register Kit",
    ),
    "text in tools": (
        f"{SERVER}    tools = ['Echo']",
        1,
        "S.tools[0]: 'Echo' is a text; register the class itself",
    ),
    "plain class in tools": (
        f"{SERVER}    tools = [Other]",
        1,
        "S.tools[0]: the class Other is not a tool; write class Other(Tool)",
    ),
    "plain instance in tools": (
        f"{SERVER}    tools = [Other()]",
        1,
        (
            "S.tools[0]: an instance of Other is not a tool; register a Tool, a "
            "Toolkit or a function"
        ),
    ),
    "server in tools": (
        f"{SERVER}    tools = [Work]",
        1,
        ("S.tools[0]: Work is not a tool; register a Tool, a Toolkit or a function"),
    ),
    "tool in prompts": (
        f"{SERVER}    prompts = [Echo()]",
        1,
        "S.prompts[0]: Echo is not a prompt; register it in tools = […]",
    ),
    "set": (
        f"{SERVER}    tools = {{1}}",
        1,
        "S.tools: must be a list of tools, got {1}; write tools = […]",
    ),
    "generator": (
        f"{SERVER}    tools = (t for t in [Echo])",
        1,
        "S.tools: must be a list of tools, got a generator; write tools = […]",
    ),
    "one class": (
        f"{SERVER}    tools = (Echo)",
        1,
        "S.tools: must be a list of tools, got the class Echo; write tools = [Echo]",
    ),
    "one instance": (
        f"{SERVER}    prompts = Review()",
        1,
        "S.prompts: must be a list of prompts, got an instance of Review; write prompts = [Review]",
    ),
    "method": (
        f"{SERVER}    def tools(self): ...",
        1,
        (
            "S.tools: must be a list of tools, got the function tools; to compute it override"
            " list_tools, call_tool, or use server.tools.add"
        ),
    ),
    "listener": (
        f"{SERVER}    telemetry = print",
        1,
        (
            "S.telemetry: must be a list of listeners, got <built-in function print>; write"
            " telemetry = […]"
        ),
    ),
    "keyword": (
        'class S(Server, name="s", version="1", tools=[Echo]): ...',
        0,
        "S.tools: unknown option; write tools = […] in the body of the class",
    ),
    "tool in the body": (
        f"{SERVER}    class Add(Tool):\n        def call(self): ...",
        1,
        (
            "S.Add: is in the body of the server but in no list; write tools = [Add], or begin its"
            " name with _"
        ),
    ),
    # Options
    "tags": (
        "class T(Tool, tags={'a'}):\n    def call(self): ...",
        0,
        "T.tags: unknown option; write category='…', one text",
    ),
    "tags of a prompt": (
        "class P(Prompt, tags={'a'}):\n    def get(self): ...",
        0,
        "P.tags: unknown option; write meta={'com.example/tags': […]}",
    ),
    "tags of a registration": (
        "tool(Echo, tags={'a'})",
        0,
        "tool(Echo).tags: unknown option; write category='…', one text",
    ),
    "enabled of a method": (
        "class K(Toolkit):\n    @mcp(enabled=False)\n    def a(self): ...",
        2,
        (
            "K.a.enabled: unknown option; leave it out of the list of the server; hidden=True hides"
            " it from clients only"
        ),
    ),
    "auth of a tool": (
        "class T(Tool, auth=1):\n    def call(self): ...",
        0,
        "T.auth: unknown option; write requires=RequireScopes('…')",
    ),
    "auth of a server": (
        f"{SERVER}    auth = object",
        1,
        (
            "S.auth: is not an option; give it where the server is served: run_http(auth=…) or"
            " asgi(auth=…)"
        ),
    ),
    "lifespan as keyword": (
        'class S(Server, name="s", version="1", lifespan=add): ...',
        0,
        "S.lifespan: unknown option; write a method: @asynccontextmanager async def lifespan(self)",
    ),
    # Signatures
    "three parameters": (
        f"{KIT}    def add(self, a: int, b, ctx): ...",
        2,
        ("K.add.b: has no annotation; write b: str"),
    ),
    "untyped parameter": (
        f"{KIT}    def greet(self, name): ...",
        2,
        (
            "K.greet.name: has no annotation; write name: str, or call it args to "
            "take the whole input"
        ),
    ),
    "parameter with a default": (
        f"{KIT}    def scale(self, factor=2): ...",
        2,
        (
            "K.scale.factor: has no annotation; write factor: int = 2, or call it "
            "args to take the whole input"
        ),
    ),
    "parameter of a static get": (
        "class P(Prompt):\n    @staticmethod\n    def get(code): ...",
        2,
        ("P.get.code: has no annotation; write code: str, or call it args to take the whole input"),
    ),
    "two parameters of get": (
        "class P(Prompt):\n    def get(self, args, b: str): ...",
        1,
        (
            "P.get.b: stands beside args, which takes the whole input; leave it out, "
            "or rename args: then each parameter is one property of the input"
        ),
    ),
    "context first in an override": (
        f"{SERVER}    async def call_tool(self, ctx, name, args): ...",
        1,
        "S.call_tool: must be `async def call_tool(self, name, args, ctx)`",
    ),
    "property as call": (
        f"{TOOL}    @property\n    def call(self): ...",
        2,
        "T.call: must be a method, got a property",
    ),
    # Inputs under another name
    "Args": (
        f"{TOOL}    class Args(Schema):\n        a: int\n    def call(self, args): ...",
        1,
        "T.Args: is not read; name the class Input (begin a name of your own with _)",
    ),
    "parameters": (
        f"{TOOL}    parameters = {{'a': int}}\n    def call(self, args): ...",
        1,
        "T.parameters: is not read; write input = … (begin a name of your own with _)",
    ),
    "Input of a prompt": (
        "class P(Prompt):\n    class Input:\n        a: str\n    def get(self, args): ...",
        1,
        "P.Input: is not read; name the class Arguments (begin a name of your own with _)",
    ),
    "two kinds": (
        "class X(Tool, Toolkit):\n    def call(self): ...",
        0,
        "X: is a Tool and a Toolkit in one; write a class for each",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_others_allow(name: str, refusal: Callable[[str], str]) -> None:
    """The error has the file, the line and the member, and says what to write."""
    source, line, message = CASES[name]
    assert f"case.py:{FIRST + line}: {message}" == refusal(PRELUDE + source)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("tool", MAKE_TOOL),
        ("resource", MAKE_RESOURCE),
        ("run_async", "await serve_stdio(server) or serve_http(server)"),
        ("http_app", "call run_http() to serve HTTP, or asgi() for an ASGI application"),
    ],
)
def test_a_server_has_no_decorators(name: str, advice: str) -> None:
    """The `AttributeError` of a server instance says what to write."""

    class Work(Server, name="w", version="1"):
        @property
        def broken(self) -> int:
            # The test needs the missing attribute.
            return self.missing  # type: ignore[attr-defined,no-any-return]

    server = Work()
    with pytest.raises(AttributeError) as caught:
        getattr(server, name)
    assert f"'Work' object has no attribute '{name}'; {advice}" == str(caught.value)
    assert not hasattr(server, name)
    with pytest.raises(AttributeError, match=r"no attribute 'missing'$"):
        _ = server.broken


def test_a_server_with_arguments_of_its_own() -> None:
    """`__init__` accepts its own arguments."""

    class Work(Server, name="w", version="1"):
        def __init__(self, port: int, *, host: str) -> None:
            self.where = (host, port)

    assert Work(1, host="h").where == ("h", 1)


def test_what_is_listed_or_private_may_stand_in_the_body() -> None:
    """A tool in the body of a server is accepted if it is listed, computed, private or a base."""

    class Listed(Server, name="w", version="1"):
        class Add(Tool):
            def call(self) -> None: ...

        class _Later(Tool):
            def call(self) -> None: ...

        class Base(Tool, abstract=True): ...

        class More(Tool):
            def __init__(self, value: int) -> None: ...
            def call(self) -> None: ...

        tools = (Add, More(1))

    class Computed(Server, name="w", version="1"):
        class Add(Tool):
            def call(self) -> None: ...

        async def list_tools(self, cursor: object, ctx: object) -> object:
            return []

    class Named(Server, name="w", version="1"):
        kind = Listed.Add

    class Abstract(Server, abstract=True):
        class Add(Tool):
            def call(self) -> None: ...

    assert [spec.name for spec in Listed().tools] == ["add", "more"]
    assert "w" == Computed().options.name == Named().options.name
    assert issubclass(Abstract.Add, Tool)


def test_names_of_ones_own_stay_free() -> None:
    """A property `auth`, and a class for another purpose are accepted."""

    class Work(Server, name="w", version="1"):
        @property
        def auth(self) -> str:
            return "own"

    class Search(Tool):
        class Params:
            limit = 3

        class Input:
            a: int

        def call(self, params: Input) -> int:
            return self.Params.limit

    assert Work().auth == "own"
    assert {"a"} == Search.definition()["inputSchema"]["properties"].keys()


def test_marks_stay_functions() -> None:
    """`mcp` has the attributes of other frameworks' servers only to raise advice."""
    name = "tols"
    with pytest.raises(AttributeError, match="no attribute 'tols'"):
        getattr(mcp, name)
