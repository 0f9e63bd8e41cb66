"""The parameters of handlers: they are identified by their names, not by position alone."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pytest

from noizu_mcp import McpError, Server, connect
from noizu_mcp.components import (
    Context,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
    Toolkit,
    expand,
    mcp,
    prepare,
)
from noizu_mcp.schema import Schema, argument, field
from noizu_mcp.schema import fields as f
from noizu_mcp.types import Reference


class Booking(Schema):
    nights: int


async def call(spec: Any, arguments: dict[str, Any]) -> Any:
    args, refused = prepare(spec, arguments)
    assert refused is None
    answer = spec.invoke(args, "ctx")
    return await answer if inspect.isawaitable(answer) else answer


EMPTY: list[Any] = []


class Forms(Toolkit):
    """Every form of parameters, each with the answer that shows what it got."""

    @mcp
    def plain(self, a: int, b: int = 1) -> Any:
        """Add.

        Args:
            a: The first.
            b: The second.
        """
        return a + b

    @mcp
    def context_between(
        self, query: Annotated[str, field(min_length=2)], ctx: Context, limit: int = 10
    ) -> Any:
        return [query, ctx, limit]

    @mcp
    def context_last(self, a: int, *, b: int = field(default=2, max=9), request: Context) -> Any:
        return [a, b, request]

    @mcp
    def whole(self, args: Booking) -> Any:
        return args

    @mcp
    def whole_last(self, ctx: Any, args: Mapping[str, Any]) -> Any:
        return [ctx, args]

    @mcp
    def whole_untyped(self, *, args: Any, ctx: Any) -> Any:
        return [args, ctx]

    @mcp(input={"path": f.string(required=True)})
    def declared(self, ctx: Any, params: Any) -> Any:
        return [ctx, params.path]

    @mcp(input_schema={"type": "object"})
    def declared_raw(self, everything: Any, /) -> Any:
        return everything

    @mcp
    def only_context(self, ctx: Any) -> Any:
        return ctx

    @mcp
    async def nothing(self) -> Any:
        return "nothing"

    @mcp
    def fresh(self, tags: list[Any] = EMPTY, *, sizes: list[Any] = EMPTY) -> Any:
        tags.append("x")
        return [tags, sizes]


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("plain", {"a": 2}, 3),
        ("plain", {"a": 2, "b": 3, "unknown": 1}, 5),
        ("context_between", {"query": "ab"}, ["ab", "ctx", 10]),
        ("context_last", {"a": 1}, [1, 2, "ctx"]),
        ("whole", {"nights": 2}, Booking(nights=2)),
        ("whole_last", {"x": 1}, ["ctx", {"x": 1}]),
        ("whole_untyped", {"x": 1}, [{"x": 1}, "ctx"]),
        ("declared", {"path": "p"}, ["ctx", "p"]),
        ("declared_raw", {"x": 1}, {"x": 1}),
        ("only_context", {}, "ctx"),
        ("nothing", {"x": 1}, "nothing"),
        ("fresh", {}, [["x"], []]),
        ("fresh", {"sizes": [1]}, [["x"], [1]]),
    ],
)
async def test_each_form_gets_what_it_takes(
    name: str, arguments: dict[str, Any], answer: Any
) -> None:
    """Parameters, the whole input, a declared input, and the context in any position work."""
    (spec,) = (each for each in expand([Forms]) if each.name == name)
    assert answer == await call(spec, arguments)


def test_ordinary_parameters_are_the_schema() -> None:
    """Annotations are types, defaults are defaults, the docstring has the descriptions."""
    schemas = {each["name"]: each["inputSchema"] for each in Forms.definitions()}
    assert schemas["plain"] == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first."},
            "b": {"type": "integer", "description": "The second.", "default": 1},
        },
        "required": ["a"],
    }
    assert schemas["context_between"]["properties"].keys() == {"query", "limit"}
    assert schemas["context_last"]["properties"]["b"] == {
        "type": "integer",
        "maximum": 9,
        "default": 2,
    }
    assert schemas["fresh"]["properties"]["tags"]["default"] == []
    assert schemas["only_context"] == schemas["nothing"] == {"type": "object"}


async def test_tools_prompts_and_templates_take_parameters() -> None:
    """The rules are the same for every kind, on both eras."""

    class Add(Tool):
        def call(self, a: int, ctx: Context, b: int = 1) -> str:
            return f"{a + b} {ctx.request_id != ''}"

    class Review(Prompt):
        def get(
            self,
            code: str,
            limit: int = 5,
            style: Annotated[str, argument(complete=["dry", "warm"])] = "dry",
        ) -> str:
            """Review it.

            Parameters
            ----------
            code
                The code.
            """
            return f"{code} {limit} {style}"

    class Typed(Prompt):
        def get(self, args: Booking) -> str:
            return f"{args.nights} nights"

    class Row(ResourceTemplate, uri_template="db://{table}{?row}"):
        def read(self, table: str, uri: str, row: int = 7, *, ctx: Context) -> str:
            return f"{table} {row} {uri} {ctx.request_id != ''}"

    class Address(ResourceTemplate, uri_template="mail://{user}"):
        def read(self, uri: str) -> str:
            return uri

    class Now(Resource, uri="clock://now"):
        def read(self, ctx: Context, uri: str) -> str:
            return f"{uri} {ctx.request_id != ''}"

    class Work(Server, name="work", version="1"):
        tools = [Add]
        prompts = [Review, Typed]
        resources = [Row, Now, Address]

    for version in ("2025-11-25", "2026-07-28"):
        async with connect(Work, version=version) as client:
            result = await client.call_tool("add", {"a": 1})
            assert result.content[0].text == "2 True"
            review, typed = await client.list_prompts()
            assert [(each.name, each.description, each.required) for each in review.arguments] == [
                ("code", "The code.", True),
                ("limit", None, None),
                ("style", None, None),
            ]
            assert [each.name for each in typed.arguments] == ["nights"]
            got = await client.get_prompt("review", {"code": "x", "limit": "2"})
            assert got.messages[0].content.text == "x 2 dry"
            got = await client.get_prompt("typed", {"nights": "2"})
            assert got.messages[0].content.text == "2 nights"
            found = await client.complete(Reference.prompt("review"), "style", "w")
            assert found.values == ("warm",)
            for uri, text in (
                ("db://users?row=3", "users 3 db://users?row=3 True"),
                ("db://users", "users 7 db://users True"),
                ("mail://ada", "mail://ada"),
                ("clock://now", "clock://now True"),
            ):
                assert (await client.read_resource(uri)).contents[0].text == text
            with pytest.raises(McpError, match="not found"):
                await client.read_resource("db://users?row=x")


LETTERS: list[str] = field(default=["b"])
GROWING: list[str] = field(default=["a"], max=2)
MADE: list[int] = field(factory=list)


class Direct(Toolkit):
    """Methods that are called without a server."""

    @mcp
    def add(self, a: int = field(min=0), b: int = field(default=1, max=9)) -> int:
        return a + b

    @mcp
    async def join(self, a: str, *, b: list[str] = LETTERS, c: str = field(min_length=1)) -> str:
        return "".join([a, *b, c])

    @mcp
    def made(self, a: int = 1, b: list[int] = MADE) -> Any:
        return b


class Inherited(Direct):
    """The same methods, and a method that calls the base."""

    @mcp
    def add(self, a: int = field(min=0), b: int = field(default=2, max=9)) -> int:
        return super().add(a, b=b) * 10


async def test_a_direct_call_uses_the_defaults_of_fields() -> None:
    """A method called without a server uses the defaults of its fields."""
    assert (Direct().add(2), Inherited().add(2), Inherited().add(1, 2)) == (3, 40, 30)
    assert await Inherited().join("a", c="c") == "abc"


async def test_a_direct_call_needs_what_has_no_default() -> None:
    """A field without a default must be passed; a factory only runs in a server."""
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        Direct().add()
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'c'"):
        await Direct().join("a")
    assert repr(Direct().made()) == "field(factory=<class 'list'>)"


async def test_the_default_of_direct_calls_is_a_copy() -> None:
    """A direct call that changes its default does not change it for later calls."""

    class Growing(Toolkit):
        @mcp
        def grow(self, items: list[str] = GROWING) -> Any:
            items.append("b")
            return items

    Growing().grow()
    [grow] = expand([Growing()])
    assert await call(grow, {}) == ["a", "b"]


def test_markers_are_read_again_by_a_subclass() -> None:
    """A method keeps its signature: a subclass publishes the same schema."""
    schemas = [{each["name"]: each["inputSchema"] for each in cls.definitions()}
               for cls in (Direct, Inherited)]  # fmt: skip
    assert schemas[1]["add"]["properties"]["a"] == {"minimum": 0, "type": "integer"}
    assert schemas[0]["join"] == schemas[1]["join"]
    assert schemas[1]["join"]["required"] == ["a", "c"]


class Base(Tool, abstract=True):
    """The method stands in the base, each input in a subclass."""

    def call(self, params: Any) -> Any:
        return params


def test_the_method_of_a_base_is_read_with_each_subclass() -> None:
    """Parameters of a base are only read in subclasses with their input."""

    class Declared(Base):
        input = {"a": int}

    (spec,) = expand([Declared])
    assert prepare(spec, {"a": 1})[0].a == 1

    class Undeclared(Base): ...

    assert Undeclared.definition()["inputSchema"]["properties"] == {"params": {}}


def test_a_subclass_takes_away_the_arguments_of_its_base() -> None:
    """With `arguments = None` the parameters declare the arguments."""

    class Whole(Prompt, name="whole"):
        arguments: Any = {"a": str}

        def get(self, everything: Any) -> str:
            return str(everything.a)

    class Own(Whole, name="own"):
        arguments = None

        # The parameters of a handler are its own, not those in its base.
        def get(self, b: str) -> str:  # type: ignore[override]
            return b

    names = [[each["name"] for each in cls.definition()["arguments"]] for cls in (Whole, Own)]
    assert names == [["a"], ["b"]]


# A class, and its complete `DefinitionError`. The first line of the body is line 4.
REFUSED = {
    "no annotation": (
        "class K(Toolkit):\n    @mcp\n    def greet(self, name): ...",
        (
            "case.py:6: K.greet.name: has no annotation; write name: str, or call it args to take"
            " the whole input"
        ),
    ),
    "no annotations": (
        "class K(Toolkit):\n    @mcp\n    def add(self, a, b=2, c=None, d=()): ...",
        (
            "case.py:6: K.add.a: has no annotation; write a: str\n"
            "case.py:6: K.add.b: has no annotation; write b: int = 2\n"
            "case.py:6: K.add.c: has no annotation; write c: str | None = None\n"
            "case.py:6: K.add.d: has no annotation; write d: <type> = …"
        ),
    ),
    "variadic": (
        "class T(Tool):\n    def call(self, a: int, *rest, **more): ...",
        (
            "case.py:5: T.call: takes *rest; name each parameter, or write def call(self, args,"
            " ctx)\n"
            "case.py:5: T.call: takes **more; name each parameter, or write def call(self, args,"
            " ctx)"
        ),
    ),
    "positional-only": (
        "class T(Tool):\n    def call(self, a: int, /, b: int): ...",
        (
            "case.py:5: T.call.a: is positional-only, and arguments are passed by name; take the /"
            " out"
        ),
    ),
    "beside args": (
        "class T(Tool):\n    def call(self, args, b: int): ...",
        (
            "case.py:5: T.call.b: stands beside args, which takes the whole input; leave it out, or"
            " rename args: then each parameter is one property of the input"
        ),
    ),
    "beside a declared input": (
        "class T(Tool):\n    input = {'b': int}\n    def call(self, everything, b): ...",
        (
            "case.py:6: T.call.b: stands beside everything, which takes the whole input; leave it"
            " out: it is everything.b if the input declares it"
        ),
    ),
    "a declared input in one value": (
        "class T(Tool):\n    input = {'b': int}\n    def call(self, b: int): ...",
        (
            "case.py:6: T.call.b: takes the whole input in one object, and is annotated as a value;"
            " leave out the annotation, or the declaration of the input, so that it is a property"
            " of it"
        ),
    ),
    "underscore": (
        "class T(Tool):\n    def call(self, _a: int): ...",
        (
            "case.py:5: T.call._a: begins with _, and an argument does not; leave the parameter"
            " out, or rename it"
        ),
    ),
    "context without its name": (
        "class T(Tool):\n    def call(self, a: int, _ctx): ...",
        "case.py:5: T.call._ctx: has no annotation; for the context of the call write ctx",
    ),
    "context twice": (
        "class T(Tool):\n    def call(self, ctx, a: int, c: Context): ...",
        "case.py:5: T.call.c: takes the context a second time; leave it out",
    ),
    "context as a value": (
        "class T(Tool):\n    def call(self, ctx: str): ...",
        (
            "case.py:5: T.call.ctx: takes the context, and is annotated as a value; write ctx:"
            " Context, or give the argument another name"
        ),
    ),
    "everything at once": (
        (
            "class K(Toolkit):\n"
            "    @mcp\n"
            "    def a(self, x, y: memoryview): ...\n"
            "    @mcp(timeout=-1)\n"
            "    def b(self, y: int = 'x'): ...\n"
            "    @mcp\n"
            "    def c(self, args, ctx: int): ..."
        ),
        (
            "case.py:6: K.a.x: has no annotation; write x: str\n"
            "case.py:6: K.a.y: memoryview has no JSON Schema; use str, int, float, bool, an Enum,"
            " Literal, list, dict, a Schema or attrs class, a dataclass, a"
            " TypedDict or a pydantic model\n"
            "case.py:8: K.b.timeout: must be seconds above 0, or None for no limit, got -1\n"
            'case.py:8: K.b.y: default "x" does not fit: expected integer, got string "x"; change'
            " the default or the field\n"
            "case.py:10: K.c.ctx: takes the context, and is annotated as a value; write ctx:"
            " Context, or give the argument another name"
        ),
    ),
    "argument of a prompt": (
        "from noizu_mcp import Prompt\nclass P(Prompt):\n    def get(self, rows: list[int]): ...",
        (
            "case.py:6: P.get.rows: an argument is a text; declare it as str, int, float, bool, an"
            " Enum or a Literal"
        ),
    ),
    "argument of a prompt without a schema": (
        "from noizu_mcp import Prompt\nclass P(Prompt):\n    def get(self, x: memoryview): ...",
        (
            "case.py:6: P.get.x: memoryview has no JSON Schema; use str, int, float, bool, an Enum,"
            " Literal, list, dict, a Schema or attrs class, a dataclass, a"
            " TypedDict or a pydantic model"
        ),
    ),
    "unknown arguments of a prompt": (
        "from noizu_mcp import Prompt\nclass P(Prompt):\n    def get(self, args: 'Missing'): ...",
        (
            "case.py:6: P.get.args: the annotation names something that is not there when the class"
            " is made; import it, not for type checkers alone, or declare a class Arguments"
        ),
    ),
    "variables of a template": (
        (
            "from noizu_mcp import ResourceTemplate\n"
            "class R(ResourceTemplate, uri_template='db://{table}/{id}/{uri}'):\n"
            "    def read(self, tabel: str, id: dict[str, int], uri: str): ..."
        ),
        (
            "case.py:6: R.read.tabel: 'db://{table}/{id}/{uri}' has no variable of this name\n"
            "case.py:6: R.read: 'db://{table}/{id}/{uri}' has a variable 'table'; declare it\n"
            "case.py:6: R.read: 'db://{table}/{id}/{uri}' has a variable 'uri'; rename it, or take"
            " args\n"
            "case.py:6: R.read.id: a variable is a text; declare it as str, int, float, bool, an"
            " Enum or a Literal"
        ),
    ),
    "no variable of a template": (
        (
            "from noizu_mcp import ResourceTemplate\n"
            "class R(ResourceTemplate, uri_template='db://{table}/{id}'):\n"
            "    def read(self, ctx): ..."
        ),
        (
            "case.py:6: R.read: takes no variable of 'db://{table}/{id}', so that all of its"
            " resources would be one; take table: str, id: str"
        ),
    ),
    "parameters by position": (
        (
            "from noizu_mcp import ResourceTemplate\n"
            "class R(ResourceTemplate, uri_template='db://{a}'):\n"
            "    def read(self, a: str): ...\n"
            "    def complete(self, variable, prefix, cursor=1): ...\n"
            "    def list(self, *rest, limit): ..."
        ),
        (
            "case.py:7: R.complete: 'cursor' would be passed the context; make it keyword-only\n"
            "case.py:8: R.list: takes *rest; write def list(self, ctx)\n"
            "case.py:8: R.list: takes the keyword-only 'limit', which nothing passes; give it a"
            " default"
        ),
    ),
    "argument of a resource": (
        "from noizu_mcp import Resource\nclass R(Resource, uri='a:b'):\n    def read(self, x): ...",
        (
            "case.py:6: R.read.x: has no value to take; write def read(self, uri, ctx), or give the"
            " URI a variable {x}"
        ),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_parameters(name: str, refusal: Callable[[str], str]) -> None:
    """The error has the name of the parameter, and says what to write."""
    source, message = REFUSED[name]
    assert refusal(source) == message
