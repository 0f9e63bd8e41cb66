"""`Toolkit` and `@mcp`: many tools in one class."""

import inspect
from typing import Any

import attrs
import pytest

from noizu_mcp import DefinitionError
from noizu_mcp.components import Context, Toolkit, ToolSpec, expand, mcp, prepare, tool
from noizu_mcp.schema import Schema
from noizu_mcp.schema import fields as f
from noizu_mcp.types import Annotations, Icon


@attrs.frozen
class Booking:
    """The stay to book."""

    nights: int


class Receipt(Schema):
    """The price."""

    total: int


class Utilities(Toolkit, category="Utility"):
    """The kit of the public examples."""

    @mcp(
        name="files.read",
        category="Files",
        description="Read a file",
        input={"path": f.string(required=True)},
    )
    def read_file(self, args: Any) -> str:
        return f"read {args.path}"

    @mcp
    def server_time(self) -> str:
        """Server time,
        ISO 8601.
        """
        return "now"

    @mcp(visible=False)
    @mcp(input='{"type": "object", "properties": {"q": {"type": "string"}}}')
    def lookup(self, args: Any, ctx: Any) -> Any:
        return args.get("q", ctx)

    @mcp
    async def add(self, *, a: int, b: int = 1) -> int:
        """Add two numbers.

        Args:
            a: the first addend
            b: the second addend
        """
        return a + b

    @mcp()
    async def book(self, args: Booking, ctx: Context) -> Receipt:
        return Receipt(total=args.nights * 100)

    def no_tool(self) -> None: ...


def specs() -> dict[str, ToolSpec]:
    return {spec.name: spec for spec in expand([Utilities])}


async def call(spec: ToolSpec, arguments: dict[str, Any]) -> Any:
    args, refused = prepare(spec, arguments)
    assert refused is None
    answer = spec.invoke(args, "ctx")
    return await answer if inspect.isawaitable(answer) else answer


def test_definitions_in_order() -> None:
    """Tools are listed in order of definition."""
    assert [d["name"] for d in Utilities.definitions()] == [
        "files.read",
        "server_time",
        "lookup",
        "add",
        "book",
    ]
    assert Utilities.definitions()[1] == {
        "name": "server_time",
        "description": "Server time, ISO 8601.",
        "inputSchema": {"type": "object"},
        "_meta": {"category": "Utility"},
    }
    assert Utilities.definitions()[3] == {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "the first addend"},
                "b": {"type": "integer", "description": "the second addend", "default": 1},
            },
            "required": ["a"],
        },
        "outputSchema": {"type": "integer"},
        "_meta": {"category": "Utility"},
    }


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("files.read", {"path": "x"}, "read x"),
        ("server_time", {"ignored": 1}, "now"),
        ("lookup", {"q": "x"}, "x"),
        ("lookup", {}, "ctx"),
        ("add", {"a": 1}, 2),
        ("add", {"a": 1, "b": 4, "dropped": 1}, 5),
        ("book", {"nights": 2}, Receipt(total=200)),
    ],
)
async def test_calls(name: str, arguments: dict[str, Any], answer: Any) -> None:
    """Each form of signature gets its arguments."""
    assert await call(specs()[name], arguments) == answer


def test_options_per_tool_and_per_kit() -> None:
    """The tool's option overrides the kit's."""
    found = specs()
    assert found["files.read"].category == "Files"
    assert found["lookup"].category == "Utility"
    assert [name for name, spec in found.items() if spec.hidden] == ["lookup"]
    assert found["files.read"].source == f"{__name__}.Utilities.read_file"
    assert (found["add"].mode, found["lookup"].mode) == ("async", "thread")
    assert [name for name, spec in found.items() if spec.takes_context] == ["lookup", "book"]


def test_methods_stay_methods() -> None:
    """Marking does not change a method."""
    assert Utilities().server_time() == "now"
    assert Utilities().read_file(Booking(1).__class__ and type("A", (), {"path": "y"})) == "read y"


def test_validation_runs_without_parameters() -> None:
    """A method without parameters still refuses arguments that are not an object."""
    _, refused = prepare(specs()["server_time"], [1])
    assert refused is not None
    assert refused.is_error


def test_kit_defaults_reach_every_tool() -> None:
    """Options of the kit are defaults; None removes a category."""

    class Kit(
        Toolkit,
        category="Kit",
        hidden=True,
        timeout=2,
        max_concurrency=3,
        inline=True,
        strict=True,
        annotations=Annotations(read_only_hint=True),
        meta={"k": 1},
        icons=[Icon("data:,")],
    ):
        @mcp
        def first(self, *, a: int) -> None: ...

        @mcp(
            category=None,
            visible=True,
            timeout=None,
            inline=False,
            strict=False,
            annotations=None,
            meta=None,
            icons=(),
            max_concurrency=None,
        )
        def second(self, *, a: int) -> None: ...

        @mcp
        async def third(self) -> None: ...

    first, second, third = expand([Kit])
    assert (first.hidden, first.timeout, first.max_concurrency, first.mode) == (
        True,
        2.0,
        3,
        "inline",
    )
    assert first.definition["inputSchema"]["additionalProperties"] is False
    assert first.definition["annotations"] == {"readOnlyHint": True}
    assert first.definition["_meta"] == {"k": 1, "category": "Kit"}
    assert (second.hidden, second.timeout, second.mode) == (False, None, "thread")
    assert second.definition == {
        "name": "second",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
        },
    }
    assert third.mode == "async"


def test_stacked_lines_merge_and_the_lower_wins() -> None:
    """Options of several decorators are merged; the lower one overrides."""
    import functools

    def between(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(self: Any) -> Any:
            return function(self) + "!"

        return wrapper

    class Kit(Toolkit):
        @mcp(name="upper", title="Upper")
        @between
        @mcp(name="lower", description="Lower")
        @mcp
        def method(self) -> str:
            return "x"

    (spec,) = expand([Kit])
    assert (spec.name, spec.title, spec.description) == ("lower", "Upper", "Lower")
    assert spec.invoke({}, None) == "x!"


async def test_context_with_keywords() -> None:
    """The one positional parameter beside keyword-only ones is the context."""

    class Kit(Toolkit):
        @mcp
        def named(self, ctx: Any, *, a: int) -> Any:
            return (ctx, a)

        @mcp
        def typed(self, c: Context, *, a: int) -> Any:
            return (c, a)

        @mcp
        def optional(self, ctx: "Context | None" = None, *, a: int = 3) -> Any:
            return (ctx, a)

    named, typed, optional = expand([Kit])
    assert await call(named, {"a": 1}) == ("ctx", 1)
    assert await call(typed, {"a": 2}) == ("ctx", 2)
    assert await call(optional, {}) == ("ctx", 3)


@pytest.mark.parametrize("outer", [True, False], ids=["over", "under"])
def test_static_and_class_methods(outer: bool) -> None:
    """`@mcp` works on either side of staticmethod and classmethod."""

    def mark(kind: Any, function: Any) -> Any:
        return mcp(kind(function)) if outer else kind(mcp(function))

    def static(args: Any) -> Any:
        return args

    def of_class(cls: Any, args: Any) -> Any:
        return (cls.__name__, args)

    def bare() -> Any:
        return "bare"

    body = {
        "static": mark(staticmethod, static),
        "of_class": mark(classmethod, of_class),
        "bare": mark(staticmethod, bare),
    }
    kit: Any = type(Toolkit)("Kit", (Toolkit,), body)
    found = expand([kit])
    assert [spec.invoke({"a": 1}, None) for spec in found] == [
        {"a": 1},
        ("Kit", {"a": 1}),
        "bare",
    ]


def test_inheritance() -> None:
    """Tools of a base come first; an override replaces a tool, None removes it."""

    class Base(Toolkit, abstract=True, category="Base"):
        @mcp(title="First")
        def first(self) -> str:
            return "base"

        @mcp
        def second(self) -> str:
            return "base"

        @mcp
        def third(self) -> str:
            return "base"

    class Kit(Base):
        # None removes a tool; to a type checker a method becomes data.
        second = None  # type: ignore[assignment]

        def first(self) -> str:
            return "kit"

        @mcp(name="three")
        def third(self) -> str:
            return "kit"

        @mcp
        def fourth(self) -> str:
            return "kit"

    found = expand([Kit])
    assert [spec.name for spec in found] == ["first", "three", "fourth"]
    assert [spec.invoke({}, None) for spec in found] == ["kit"] * 3
    assert found[0].title == "First"
    assert {spec.category for spec in found} == {"Base"}
    with pytest.raises(DefinitionError, match="Base is abstract; register a subclass of it"):
        tool(Base)


def test_tools_may_be_named_like_options() -> None:
    """A method is not an option of the kit, whatever its name."""

    class Kit(Toolkit, category="C"):
        @mcp
        def category(self) -> str:
            return "x"

        @mcp
        @staticmethod
        def meta() -> str:
            return "y"

    assert [spec.name for spec in expand([Kit])] == ["category", "meta"]


def test_marks_outside_of_a_class_do_nothing() -> None:
    """Marking outside of a class raises nothing and registers nothing."""

    # Type checkers refuse wrong options here; at run time the class statement does.
    @mcp(bogus=1)  # type: ignore[call-arg]
    def function() -> int:
        return 1

    assert function() == 1
    # Type checkers refuse it, too.
    assert mcp(3, 4) is not None  # type: ignore[call-overload]
