"""Field forms as type checkers understand them; checked by `mypy --strict`, never run."""

import enum
from typing import Annotated, Any, assert_type

from noizu_mcp.schema import Marker, Schema, Shape, argument, field, read_shape
from noizu_mcp.schema import fields as f


class Scope(enum.Enum):
    ALL = "all"


class Search:
    class Input(Schema):
        query: str = field(min_length=2, description="Search terms")
        limit: int = field(default=10, min=1, max=50)
        tags: list[str] = field(factory=list, max=16)
        scope: Scope = Scope.ALL
        note: str | None = None

    class Output(Schema):
        hits: int

    def call(self, args: Input) -> Output:
        assert_type(args.query, str)
        assert_type(args.limit, int)
        assert_type(args.tags, list[str])
        assert_type(args.scope, Scope)
        assert_type(args.note, str | None)
        args.query = "x"  # type: ignore[misc]
        self.Output(hits="3")  # type: ignore[arg-type]
        self.Output(3)  # type: ignore[call-arg]
        self.Output(hists=3)  # type: ignore[call-arg]
        return self.Output(hits=3)


class Arguments(Schema):
    code: str = argument(title="Code", description="The code to review")
    style: str | None = argument(default=None, complete=["strict", "friendly"])
    count: int = argument(default=1, min=1, max=9, multiple_of=1)
    ratio: float = argument(default=0.5, exclusive_min=0, exclusive_max=1)
    word: str = argument(default="ab", min_length=1, max_length=9, pattern="^a", format="x")


class Wrong(Schema):
    limit: int = field(default="x")  # type: ignore[assignment]
    bogus: int = field(bogus=1)  # type: ignore[call-overload]
    words: list[str] = argument(min=1, unique="yes")  # type: ignore[call-overload]
    count: int = argument(min="1")  # type: ignore[call-overload]
    name: str = argument(header="X")  # type: ignore[call-overload]


def both(size: Annotated[int, field(min=1)]) -> None:
    assert_type(Search.Input(query="q").limit, int)
    assert_type(Arguments(code="c").style, str | None)
    assert_type(f.string(min_length=1, required=True), Marker)
    f.array(f.object({"id": f.integer(required=True)}), min=1)
    f.object({}, min=1, max=9, default={"a": 1}, description="Any names")
    f.object({"at": f.object({"x": int}, default={})}, required=True)
    f.array(f.object({}), default=[{}], unique=True, titles={})
    f.integer(gt=0)  # type: ignore[call-arg]
    f.array(item=str)  # type: ignore[call-arg]
    f.string(min=1)  # type: ignore[call-arg]
    f.string("x")  # type: ignore[arg-type]
    shape, _faults = read_shape({"a": f.enum("x", "y", default="x")})
    assert_type(shape, Shape | None)
    declared: dict[str, Any] = {"note": str, "n": size}
    read_shape(declared, strict=True)
