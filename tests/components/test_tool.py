"""`Tool`: what a class statement defines."""

import enum
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import attrs
import pytest

from noizu_mcp import DefinitionError
from noizu_mcp.components import Context, Tool, ToolSpec, expand, prepare
from noizu_mcp.schema import Schema, compile_schema, field
from noizu_mcp.schema import fields as f
from noizu_mcp.types import Annotations, Content, Icon, ToolDefinition, ToolResult

Load = Callable[[str], ModuleType]


class Scope(enum.Enum):
    """The place to search."""

    ALL = "all"
    GUIDES = "guides"


class SearchDocs(
    Tool,
    category="Docs",
    annotations=Annotations(read_only_hint=True, idempotent_hint=True),
    timeout=10.0,
):
    """Full-text search over
    project documentation.

    The rest is for people.
    """

    class Input(Schema):
        query: str = field(min_length=2, description="Search terms")
        limit: int = field(default=10, min=1, max=50)
        scope: Scope = Scope.ALL

    class Output(Schema):
        hits: int

    def __init__(self, hits: int = 3) -> None:
        self.hits = hits

    async def call(self, args: Input, ctx: Context) -> Output:
        return self.Output(hits=self.hits + args.limit)


def spec_of(cls: Any) -> ToolSpec:
    return expand([cls])[0]


def test_the_definition_is_complete_and_without_null() -> None:
    """The definition of 2026-07-28 has what was declared, in a stable order."""
    definition = SearchDocs.definition()
    assert list(definition) == [
        "name",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "_meta",
    ]
    assert definition["name"] == "search_docs"
    assert definition["description"] == "Full-text search over project documentation."
    assert list(definition["inputSchema"]["properties"]) == ["query", "limit", "scope"]
    assert definition["inputSchema"]["required"] == ["query"]
    assert definition["annotations"] == {"readOnlyHint": True, "idempotentHint": True}
    assert definition["_meta"] == {"category": "Docs"}
    assert ToolDefinition.from_wire(definition).to_wire() == definition


def test_attributes_of_ones_own() -> None:
    """A name similar to an option is accepted if it cannot be meant as one."""

    class Play(Tool):
        names = ("a", "b")  # not a string, as `name` is
        game = "chess"  # short words differ by one letter all the time
        output_dir = "x"  # another word
        _nmae = "x"
        titles = MappingProxyType({"a": "A"})
        tile: str
        time_out = "never"

        def inputs(self) -> None:
            """Is no mapping."""

        def call(self) -> str:
            return self.game

    class Again(Play, name="again"):
        time_out = "later"

    class Named(Tool, abstract=True):
        titel = 3

    class Titled(Named, title="T"):
        titel = 4  # a base defines it

        def call(self) -> None: ...

    class Both(Tool, title="T"):
        titel = "the option is given already"

        def call(self) -> None: ...

    assert Again.definition()["name"] == "again"
    assert Titled.definition()["title"] == Both.definition()["title"] == "T"


def test_a_definition_is_a_copy() -> None:
    """Changing a returned definition changes no other one."""
    SearchDocs.definition()["inputSchema"]["type"] = "array"
    assert SearchDocs.definition()["inputSchema"]["type"] == "object"


async def test_a_call() -> None:
    """Arguments are an instance of the input, enum members are members."""
    spec = spec_of(SearchDocs(4))
    args, refused = prepare(spec, {"query": "install", "scope": "guides", "unknown": 1})
    assert refused is None
    assert (args.query, args.limit, args.scope) == ("install", 10, Scope.GUIDES)
    assert (await spec.invoke(args, None)).hits == 14
    assert (spec.mode, spec.takes_context, spec.timeout) == ("async", True, 10.0)
    assert spec.source == f"{__name__}.SearchDocs"


@pytest.mark.parametrize("form", ["keyword", "attribute"])
def test_keywords_and_attributes_mean_the_same(form: str) -> None:
    """Every option can be given in both ways."""
    options: dict[str, Any] = {
        "name": "files.read",
        "title": "Read",
        "description": "Reads",
        "category": "Files",
        "annotations": {"open_world_hint": False},
        "icons": [Icon("data:,")],
        "meta": {"com.example/k": 1},
        "visible": False,
        "timeout": None,
        "max_concurrency": 2,
        "inline": True,
        "strict": True,
        "input": {"path": f.string()},
        "output_schema": {"type": "integer"},
    }
    body = {"call": lambda self, args: 1}
    kind: Any = type(Tool)
    if form == "keyword":
        cls = kind("Any", (Tool,), body, **options)
    else:
        cls = kind("Any", (Tool,), {**body, **options})
    spec = spec_of(cls)
    assert spec.definition == {
        "name": "files.read",
        "title": "Read",
        "description": "Reads",
        "inputSchema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "additionalProperties": False,
        },
        "outputSchema": {"type": "integer"},
        "annotations": {"openWorldHint": False},
        "icons": [{"src": "data:,"}],
        "_meta": {"com.example/k": 1, "category": "Files"},
    }
    assert (spec.title, spec.description, spec.category) == ("Read", "Reads", "Files")
    assert (spec.hidden, spec.timeout, spec.max_concurrency, spec.mode) == (True, None, 2, "inline")
    assert spec.icons == (Icon("data:,"),)
    assert spec.annotations == Annotations(open_world_hint=False)


def test_the_smallest_tool() -> None:
    """Four attributes and one method are sufficient."""

    class Echo(Tool):
        name = "echo"
        description = "Echoes"
        input_schema = {"type": "object", "properties": {"q": {"type": "string"}}}

        def call(self, args: Any) -> Any:
            return args

    spec = spec_of(Echo)
    args, _ = prepare(spec, {"q": "x", "kept": [1]})
    assert spec.invoke(args, None) == {"q": "x", "kept": [1]}
    assert (spec.mode, spec.hidden, spec.meta, spec.output) == ("thread", False, None, None)
    assert not spec.takes_context


def test_no_input_and_empty_input_differ() -> None:
    """Without a declaration the raw dict is delivered, an empty one drops everything."""

    class Nothing(Tool):
        def call(self, args: dict[str, Any]) -> Any:
            return args

    class Empty(Tool):
        input: Any = {}

        def call(self, args: Any) -> Any:
            return args

    assert Nothing.definition()["inputSchema"] == {"type": "object"}
    assert prepare(spec_of(Nothing), {"a": 1}) == ({"a": 1}, None)
    assert Empty.definition()["inputSchema"] == {"type": "object", "properties": {}}
    args, _ = prepare(spec_of(Empty), {"__proto__": 1})
    assert not hasattr(args, "__proto__")


def test_meta_is_absent_without_category_and_never_shared() -> None:
    """The category is merged into a copy; annotations may be empty."""
    meta = {"k": "v", "category": "old"}

    class Plain(Tool, annotations={}):
        def call(self) -> None: ...

    class Both(Tool, meta=meta, category="X"):
        def call(self) -> None: ...

    class Kept(Tool, meta=meta):
        def call(self) -> None: ...

    assert "_meta" not in Plain.definition()
    assert Plain.definition()["annotations"] == {}
    assert Both.definition()["_meta"] == {"k": "v", "category": "X"}
    assert Kept.definition()["_meta"] == meta
    assert meta == {"k": "v", "category": "old"}


def test_input_schema_wins() -> None:
    """A raw schema overrides the other forms."""

    class Both(Tool):
        input_schema = '{"type": "object", "properties": {"a": {"type": "string"}}}'
        output_schema = {"type": "string"}
        input = {"b": int}
        output = {"b": int}

        def call(self, args: Any) -> Any: ...

    assert list(Both.definition()["inputSchema"]["properties"]) == ["a"]
    assert Both.definition()["outputSchema"] == {"type": "string"}


@attrs.frozen
class Booking:
    """A booking.

    Attributes:
        nights: How many nights.
    """

    nights: int


def test_annotations_of_call_declare() -> None:
    """Without another form the annotations of `call` are the schemas."""

    class Book(Tool):
        def call(self, args: Booking) -> list[int]:
            return [args.nights]

    spec = spec_of(Book)
    assert spec.input.schema["required"] == ["nights"]
    assert spec.output is not None
    assert spec.output.schema == {"type": "array", "items": {"type": "integer"}}
    args, _ = prepare(spec, {"nights": 2})
    assert spec.invoke(args, None) == [2]


@pytest.mark.parametrize(
    "annotation", [str, None, Any, dict, list, Content, ToolResult, list[Content], Content | str]
)
def test_annotations_that_declare_no_output(annotation: Any) -> None:
    """Strings, content, results and bare containers declare no output schema."""

    class Silent(Tool):
        def call(self) -> annotation: ...

    assert "outputSchema" not in Silent.definition()


@pytest.mark.parametrize("annotation", [dict, dict[str, Any], Any, object, Mapping[str, int]])
def test_annotations_that_declare_no_input(annotation: Any) -> None:
    """Arguments annotated as a mapping stay a plain dict."""

    class Plain(Tool):
        def call(self, args: annotation) -> None: ...

    assert spec_of(Plain).input.schema == {"type": "object"}


def test_annotations_as_text_are_found_where_the_class_stands() -> None:
    """Names of the enclosing function and of the class itself are resolved."""

    class Local(Schema):
        a: int

    class Text(Tool):
        class Output(Schema):
            b: int

        def call(self, args: "Local", c: "Context") -> "Output": ...

    spec = spec_of(Text)
    assert list(spec.input.schema["properties"]) == ["a"]
    assert spec.takes_context


def test_parameter_sections_describe_fields() -> None:
    """Docstrings of the class and of `call` describe fields without their own description."""

    class Described(Tool):
        """Described.

        Args:
            a: from the class
        """

        input = {"a": f.string(), "b": f.string(), "c": f.string(description="own")}

        def call(self, args: Any) -> None:
            """Call it.

            Args:
                a: not this
                b: from the method
                c: nor this
            """

    properties = Described.definition()["inputSchema"]["properties"]
    texts = {name: schema["description"] for name, schema in properties.items()}
    assert texts == {"a": "from the class", "b": "from the method", "c": "own"}


def test_abstract_bases_carry_options_and_forms() -> None:
    """A base is not a tool; its options apply to subclasses that do not override them."""

    class Base(Tool, abstract=True, category="Base", timeout=1, description="Of the base"):
        class Input(Schema):
            a: int

        def call(self, args: Any) -> Any:
            return args.a

    class First(Base):
        pass

    class Second(Base, category="Own"):
        """Of its own."""

        input = {"b": int}

    assert First.definition() == {
        "name": "first",
        "description": "Of the base",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
        },
        "_meta": {"category": "Base"},
    }
    assert spec_of(First).timeout == 1.0
    assert Second.definition()["_meta"] == {"category": "Own"}
    assert Second.definition()["description"] == "Of its own."
    assert list(Second.definition()["inputSchema"]["properties"]) == ["b"]
    with pytest.raises(TypeError, match="Base is abstract: there is no tool to describe"):
        Base.definition()

    class Empty(Tool, abstract=True):
        pass

    with pytest.raises(TypeError, match="Empty is abstract: there is no tool to describe"):
        Empty.definition()


def test_mixins_count_too() -> None:
    """A class that is not a tool may provide `call`, options and forms."""

    class Mixin:
        category = "Mixed"
        hidden = True
        input = {"a": str}

        def call(self, args: Any) -> Any:
            return args.a

    class Mixed(Mixin, Tool):
        pass

    spec = spec_of(Mixed)
    assert (spec.category, spec.hidden) == ("Mixed", True)
    args, _ = prepare(spec, {"a": "x"})
    assert spec.invoke(args, None) == "x"


def test_a_subclass_of_a_tool_with_a_name() -> None:
    """A concrete tool can be subclassed under another name."""

    class More(SearchDocs, name="search_more"):
        pass

    assert More.definition()["name"] == "search_more"
    assert More.definition()["inputSchema"] == SearchDocs.definition()["inputSchema"]


def test_optional_parameters_are_fine() -> None:
    """Defaults make a method easier to call directly."""

    class Direct(Tool):
        def call(self, args: Any = None, *, ctx: Any = None) -> Any:
            return (args, ctx)

    assert spec_of(Direct).invoke({}, "ctx") == ({}, "ctx")


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_static_and_class_methods(kind: Any) -> None:
    """`call` may be either."""
    function = (lambda args: args) if kind is staticmethod else (lambda cls, args: args)
    cls: Any = type(Tool)("Kind", (Tool,), {"call": kind(function)})
    assert spec_of(cls).invoke({"a": 1}, None) == {"a": 1}


async def test_a_wrapped_coroutine_is_async() -> None:
    """A decorated coroutine function does not run in a thread."""
    import functools

    def wrap(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any) -> Any:
            return function(*args)

        return wrapper

    class Wrapped(Tool):
        @wrap
        async def call(self, args: Any) -> Any:
            return args

    spec = spec_of(Wrapped)
    assert spec.mode == "async"
    assert await spec.invoke({}, None) == {}


def test_keywords_never_reach_init_subclass() -> None:
    """Options are removed; a base with its own hook gets an ordinary class statement."""
    seen = []

    class Base(Tool, abstract=True):
        def __init_subclass__(cls, **keywords: Any) -> None:
            seen.append(keywords)
            super().__init_subclass__()

    class Own(Base, title="T"):
        def call(self) -> None: ...

    assert seen == [{}]


def test_metaclasses_can_be_extended() -> None:
    """The place in an error is the class statement, not the metaclass in between."""

    # The metaclass has no public name.
    class Meta(type(Tool)):  # type: ignore[misc]
        def __new__(mcs, *args: Any, **keywords: Any) -> Any:
            return super().__new__(mcs, *args, **keywords)

    with pytest.raises(DefinitionError) as caught:

        class Own(Tool, metaclass=Meta, title=""):
            def call(self) -> None: ...

    assert caught.value.problems[0].where == "Own.title"
    line = caught.value.problems[0].line
    assert line is not None
    assert "class Own" in Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1]


def test_classes_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a source file the place is the frame that made the class."""
    names = {"Tool": Tool, "__name__": "nowhere"}
    source = "\nclass Bad(Tool, title=1):\n    def call(self): ...\n"
    with pytest.raises(DefinitionError) as caught:
        exec(compile(source, "<typed>", "exec"), names)
    assert str(caught.value).startswith("<typed>:2: Bad.title: must be a text")
    source = "class Mixin:\n    timeout = 'x'\n\nclass Bad(Mixin, Tool):\n    def call(self): ...\n"
    with pytest.raises(DefinitionError) as caught:
        exec(compile(source, "<typed>", "exec"), names)
    assert str(caught.value).startswith("<typed>:4: Bad.timeout: must be seconds above 0")


def test_problems_of_another_module(load: Load, tmp_path: Any) -> None:
    """A schema class of another module is reported with its own file and line."""
    (tmp_path / "shapes.py").write_text(
        "from noizu_mcp.schema import Schema, field\n"
        "class Holder:\n"
        "    class Shape(Schema):\n"
        "        limit: int = field(default=60, max=50)\n",
        encoding="utf-8",
    )
    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(DefinitionError) as caught:
            load(
                "from shapes import Holder\n"
                "class Bad(Tool):\n    def call(self, args: Holder.Shape): ..."
            )
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("shapes", None)
    expected = "shapes.py:4: Bad.call.args.limit: default 60 is above max 50"
    assert str(caught.value).startswith(expected)


def test_published_schemas_are_schemas() -> None:
    """The published schema can be compiled, and accepts what the tool accepts."""
    definition = SearchDocs.definition()
    assert compile_schema(definition["inputSchema"]).is_valid({"query": "ab"})
    assert compile_schema(definition["outputSchema"]).violations({}) != []


def test_the_docstring_describes_arguments_of_an_annotated_class() -> None:
    """A class in the signature gets descriptions from the tool's docstring, too."""

    @attrs.frozen
    class Place:
        city: str

    class Find(Tool):
        """Find a place.

        Args:
            city: where to look
        """

        def call(self, args: Place) -> str:
            return args.city

    properties = Find.definition()["inputSchema"]["properties"]
    assert properties["city"]["description"] == "where to look"
