"""The public examples of tools and toolkits, under a strict type checker; nothing runs them."""

import enum
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, assert_type

import attrs

from noizu_mcp.components import (
    Context,
    Tool,
    Toolkit,
    ToolSpec,
    expand,
    mcp,
    prepare,
    tool,
    violations_result,
)
from noizu_mcp.schema import Schema, compile_schema, field
from noizu_mcp.schema import fields as f
from noizu_mcp.tools import Catalog
from noizu_mcp.types import Annotations, Content, ResourceContents, ToolResult, plain_text


class Index:
    """A dependency of a tool."""

    @staticmethod
    def default() -> "Index":
        return Index()

    async def search(self, query: str, limit: int) -> list[str]:
        return [query] * limit


class Scope(enum.Enum):
    ALL = "all"
    GUIDES = "guides"


class SearchDocs(
    Tool,
    category="Docs",
    annotations=Annotations(read_only_hint=True, idempotent_hint=True),
    timeout=10.0,
):
    """Full-text search over project documentation."""

    class Input(Schema):
        query: str = field(min_length=2, description="Search terms")
        limit: int = field(default=10, min=1, max=50)
        scope: Scope = Scope.ALL

    class Output(Schema):
        hits: int

    def __init__(self, index: Index | None = None) -> None:
        self.index = index or Index.default()

    async def call(self, args: Input, ctx: Context) -> Output:
        assert_type(args.query, str)
        assert_type(args.limit, int)
        assert_type(args.scope, Scope)
        assert_type(ctx.request_id, str | int)
        return self.Output(hits=len(await self.index.search(args.query, args.limit)))


@attrs.frozen
class Address:
    street: str


class Forms(Tool, strict=True):
    """Every form of input."""

    class Input(Schema):
        address: Address
        tags: list[str] = field(factory=list, max=16)
        note: str | None = None

    def call(self, args: Input) -> list[Content]:
        assert_type(args.address, Address)
        assert_type(args.tags, list[str])
        assert_type(args.note, str | None)
        return plain_text(args.address.street)


class Data(Tool):
    """Fields as data."""

    input = {
        "message": f.string(required=True, description="Message to echo"),
        "repeat": f.integer(min=1, max=10, default=1),
        "mode": f.enum("plain", "loud", default="plain"),
        "address": f.object({"street": f.string()}),
        "tags": f.array(f.string(min_length=1)),
        "rows": f.array(f.object({"id": f.integer(required=True)})),
        "note": str,
    }

    def call(self, args: Any) -> str:
        return str(args.message)


class Raw(Tool):
    """A raw schema."""

    name = "raw"
    description = "Raw"
    input_schema = """{"type": "object", "properties": {"q": {"type": "string"}}}"""

    def call(self, args: Mapping[str, Any]) -> ToolResult:
        return ToolResult.ok(args.get("q", ""))


class Booking(Schema):
    nights: int


class Receipt(Schema):
    total: int


class Utilities(Toolkit, category="Utility"):
    """Many small tools."""

    @mcp(
        name="files.read",
        category="Files",
        description="Read a file",
        input={"path": f.string(required=True)},
    )
    def read_file(self, args: Any) -> str:
        return Path(args.path).read_text()

    @mcp
    def server_time(self) -> str:
        """Server time, ISO 8601."""
        return datetime.now(UTC).isoformat()

    @mcp(visible=False)
    @mcp(input='{"type": "object", "properties": {"q": {"type": "string"}}}')
    def lookup(self, args: dict[str, Any], ctx: Context) -> Any:
        return args.get("q", ctx.request_id)

    @mcp
    async def add(self, *, a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @mcp
    async def book(self, args: Booking, ctx: Context) -> Receipt:
        ctx.info("booked")
        return Receipt(total=args.nights)

    @mcp
    @staticmethod
    def static() -> str:
        return "static"

    @mcp
    @classmethod
    def of_class(cls) -> str:
        return cls.__name__


# Marked methods keep their types.
assert_type(Utilities().server_time(), str)
assert_type(Utilities.static(), str)
assert_type(Utilities.of_class(), str)


async def marked_methods_keep_their_signature() -> None:
    assert_type(await Utilities().add(a=1), int)
    assert_type(await SearchDocs().call(SearchDocs.Input(query="ab"), context()), SearchDocs.Output)


def context() -> Context:
    raise NotImplementedError


def is_known(ctx: Context) -> bool:
    return ctx.auth is not None


TOOLS = [
    SearchDocs,
    tool(SearchDocs, name="search", description="Alias for search_docs"),
    tool(Utilities, category="Admin", hidden=True),
    tool(Catalog, hidden=True),
    tool(SearchDocs(Index()), name="other"),
    tool(SearchDocs, available=is_known),
]
SPECS = expand(TOOLS)
assert_type(SPECS, list[ToolSpec])
assert_type(prepare(SPECS[0], {})[1], ToolResult | None)
assert_type(SearchDocs.definition(), dict[str, Any])


class Chart:
    """The relevant methods of a matplotlib figure."""

    def savefig(self, fname: object, *, transparent: bool | None = None, **options: Any) -> None:
        raise NotImplementedError


class Photo:
    """The relevant methods of a Pillow image."""

    def save(self, fp: object, **options: Any) -> None:
        raise NotImplementedError

    def convert(self, mode: str | None = None, colors: int = 256) -> "Photo":
        raise NotImplementedError


def pictures() -> list[Content]:
    return [
        Content.image(Chart()),
        Content.image(Photo(), "image/jpeg"),
        Content.image(Path("a.png")),
        Content.audio("a.wav"),
        Content.file("a.md", uri="notes://a"),
    ]


# The same name makes a block on the class and reads it on an instance.
BLOCK = Content.text("x", meta={"k": 1})
assert_type(BLOCK, Content)
assert_type(BLOCK.text, str)
assert_type(BLOCK.data, bytes)
assert_type(BLOCK.mime_type, str | None)
assert_type(Content.resource(ResourceContents("a:b", text="x")).resource, ResourceContents)
assert_type(Content.from_wire({}), Content)
ToolResult([BLOCK, "x"], structured={"a": 1})
ToolResult("x", is_error=True)

# The checker must report wrong uses, too.
Content.text(1)  # type: ignore[arg-type]
tool("SearchDocs")  # type: ignore[call-overload]
tool(SearchDocs, nmae="x")  # type: ignore[call-overload]
tool(SearchDocs, hidden="x")  # type: ignore[call-overload]
mcp(timeout="x")  # type: ignore[call-overload]
Annotations(readonly=True)  # type: ignore[call-arg]


# Ordinary parameters, and functions in every place where a class can stand.
class Light(Toolkit):
    @mcp
    async def find(
        self,
        query: Annotated[str, field(min_length=2)],
        ctx: Context,
        limit: int = field(default=10),
    ) -> list[str]:
        assert_type(limit, int)
        return [query, str(ctx.request_id)]

    @mcp
    def now(self, ctx: Context) -> str:
        return ctx.protocol_version


class Sum(Tool):
    def call(self, a: int, b: int = 1) -> int:
        return a + b


class Listed(Schema):
    tags: list[str] = []
    sizes: dict[str, int] = field(default={})


@mcp(name="minus", inline=True)
def subtract(a: int, b: int = 1) -> int:
    return a - b


async def load(key: str, ctx: Context) -> str:
    return key


def run_skill(args: dict[str, Any]) -> dict[str, Any]:
    return args


class Keys:
    def load(self, key: str) -> str:
        return key

    def __call__(self, key: str) -> str:
        return key


async def ordinary_calls_are_checked() -> None:
    assert_type(await Light().find("ab", context()), list[str])
    assert_type(subtract(2), int)
    assert_type(Sum().call(1), int)
    assert_type(Listed().tags, list[str])


FUNCTIONS = [
    subtract,
    load,
    Keys().load,
    tool(Keys(), name="keys"),
    tool(partial(subtract, b=2), name="less"),
    tool(lambda args: args, name="same", input={"a": str}),
    tool(
        run_skill,
        name="skill:x",
        description="[dynamic] x",
        input_schema={"type": "object"},
        output_schema={"type": "object"},
        timeout=5,
    ),
]
assert_type(expand(FUNCTIONS), list[ToolSpec])
CHECKED = compile_schema({"type": "object"})
assert_type(violations_result("skill:x", CHECKED.violations({})), ToolResult)
tool(load, input_shema={})  # type: ignore[call-overload]
tool(load, strict="x")  # type: ignore[call-overload]
