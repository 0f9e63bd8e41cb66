"""Resources and templates: definitions, and results of reading."""

import enum
from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs
import pytest

from noizu_mcp import ProtocolError
from noizu_mcp.components import (
    Context,
    Resource,
    ResourceSpec,
    ResourceTemplate,
    TemplateSpec,
    expand,
    kind_of,
    resource,
    resource_template,
    to_contents,
    to_listed,
)
from noizu_mcp.schema import Schema, argument, field
from noizu_mcp.types import ContentAnnotations, Icon, ResourceContents, ResourceDefinition


def resource_spec(item: Any) -> ResourceSpec:
    (spec,) = expand([item], "resources")
    assert isinstance(spec, ResourceSpec)
    return spec


def template_spec(item: Any) -> TemplateSpec:
    (spec,) = expand([item], "resources")
    assert isinstance(spec, TemplateSpec)
    return spec


class AppConfig(Resource, uri="config://app", mime_type="application/json", subscribable=True):
    """Application configuration.

    Read by everybody.
    """

    async def read(self, uri: str, ctx: Context) -> str:
        return f"{uri} {ctx}"


class Everything(Resource):
    uri = "file:///a%20b"
    name = "a b"
    title = "T"
    description = "D"
    mime_type = "text/plain; charset=utf-8"
    size = 0
    annotations = {"audience": ["user"], "priority": 1}
    icons = [Icon("data:,")]
    meta = {"k": 1}
    hidden = True
    timeout = 3

    def read(self) -> str:
        return "x"


class TableSchema(ResourceTemplate, uri_template="db://{table}/schema", mime_type="text/sql"):
    async def read(self, uri: str, args: Any, ctx: Context) -> Any:
        return [uri, args.table, ctx]

    async def complete(self, variable: str, prefix: str, ctx: Context) -> list[str]:
        return [variable, prefix, str(ctx)]

    async def list(self, ctx: Context) -> AsyncIterator[Any]:
        yield {"uri": "db://a/schema"}
        yield {"uri": "db://b/schema", "name": str(ctx)}


async def test_a_resource() -> None:
    """A minimal class becomes a resource."""
    spec = resource_spec(AppConfig)
    assert (
        spec.definition
        == AppConfig.definition()
        == {
            "uri": "config://app",
            "name": "config://app",
            "description": "Application configuration.",
            "mimeType": "application/json",
        }
    )
    assert (spec.uri, spec.name, spec.mime_type) == (
        "config://app", "config://app", "application/json"
    )  # fmt: skip
    assert (spec.mode, spec.takes_context, repr(spec.timeout)) == ("async", True, "UNSET")
    assert (spec.hidden, spec.subscribable) == (False, True)
    assert await spec.invoke("config://app", "ctx") == "config://app ctx"
    assert repr(spec) == f"ResourceSpec('config://app', {__name__}.AppConfig)"
    assert [kind_of(each).feature for each in (AppConfig, TableSchema)] == ["resources"] * 2


def test_all_options_as_attributes() -> None:
    """Every option is in the definition; a sync method runs in a thread."""
    spec = resource_spec(Everything)
    assert spec.definition == {
        "uri": "file:///a%20b",
        "name": "a b",
        "title": "T",
        "description": "D",
        "mimeType": "text/plain; charset=utf-8",
        "size": 0,
        "annotations": {"audience": ["user"], "priority": 1},
        "icons": [{"src": "data:,"}],
        "_meta": {"k": 1},
    }
    assert (spec.hidden, spec.subscribable, spec.timeout) == (True, False, 3.0)
    assert (spec.mode, spec.takes_context, spec.invoke("u", "ctx")) == ("thread", False, "x")


def test_definitions_are_copies() -> None:
    """Changing a returned definition does not change the class."""
    Everything.definition()["_meta"]["k"] = 2
    assert Everything.definition()["_meta"] == {"k": 1}


async def test_a_template() -> None:
    """Variables are attributes, and methods of the class complete and list them."""
    spec = template_spec(TableSchema)
    assert (
        spec.definition
        == TableSchema.definition()
        == {
            "uriTemplate": "db://{table}/schema",
            "name": "db://{table}/schema",
            "mimeType": "text/sql",
        }
    )
    args = spec.match("db://a%20b/schema")
    assert args.table == "a b"
    assert spec.match("db://a/other") is None
    assert await spec.invoke("u", args, "ctx") == ["u", "a b", "ctx"]
    assert (spec.variables, spec.uri_template.text) == (("table",), "db://{table}/schema")
    source: Any = spec.complete("table")
    assert (source.mode, await source.invoke("pre", "ctx")) == ("async", ["table", "pre", "ctx"])
    assert spec.list is not None
    assert spec.list_mode == "async"
    assert to_listed(spec, await spec.list("ctx")) == [
        {"uri": "db://a/schema", "name": "db://a/schema", "mimeType": "text/sql"},
        {"uri": "db://b/schema", "name": "ctx", "mimeType": "text/sql"},
    ]
    assert repr(spec) == f"TemplateSpec('db://{{table}}/schema', {__name__}.TableSchema)"


def test_the_least_of_a_template() -> None:
    """A minimal template has neither completions nor a list."""

    class Least(ResourceTemplate, uri_template="x:{a}{/b*}{?c}"):
        def read(self, uri: str, args: Any) -> Any:
            return args

    spec = template_spec(Least)
    assert (spec.list, spec.list_mode, spec.complete("a")) == (None, "thread", None)
    args = spec.match("x:1/2/3")
    assert (args.a, args.b, args.c) == ("1", ["2", "3"], None)
    args = spec.match("x:1?c=")
    assert (args.a, args.b, args.c) == ("1", None, "")


def test_lists_of_every_kind() -> None:
    """A method may return or yield, with or without the context."""

    class Yields(ResourceTemplate, uri_template="x:{a}", mime_type="text/html"):
        def read(self, uri: str, args: Any) -> Any: ...
        def list(self) -> Iterator[Any]:
            yield ResourceDefinition("x:1", "one", mime_type="text/plain")
            yield "x:2"
            yield AppConfig
            yield Everything()

    class Returns(ResourceTemplate, uri_template="x:{a}"):
        def read(self, uri: str, args: Any) -> Any: ...
        def list(self, context: Context) -> Any:
            return []

    spec = template_spec(Yields)
    assert spec.list is not None
    assert spec.list_mode == "thread"
    assert to_listed(spec, spec.list("ctx")) == [
        {"uri": "x:1", "name": "one", "mimeType": "text/plain"},
        {"uri": "x:2", "name": "x:2", "mimeType": "text/html"},
        AppConfig.definition(),
        Everything.definition(),
    ]
    spec = template_spec(Returns)
    assert spec.list is not None
    assert to_listed(spec, spec.list("ctx")) == []
    assert to_listed(spec, ["x:1"]) == [{"uri": "x:1", "name": "x:1"}]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, TypeError, "list returned None; return [] for none"),
        ("x:1", TypeError, "expected a list of resources, got 'x:1'"),
        ({"uri": "x:1"}, TypeError, "expected a list of resources, got {'uri': 'x:1'}"),
        (3, TypeError, "expected a list of resources, got 3"),
        ([3], TypeError, "expected a ResourceDefinition, a mapping, a URI or a Resource, got 3"),
        (
            [Resource],
            TypeError,
            "expected a ResourceDefinition, a mapping, a URI or a Resource, got",
        ),
        (["users"], TypeError, "expected an absolute URI like 'db://users', got 'users'"),
        (["db://{a}"], TypeError, "expected an absolute URI like 'db://users', got 'db://{a}'"),
        ([{}], ProtocolError, "resource.uri: expected a string, got nothing"),
        ([{"uri": 3, "name": "n"}], ProtocolError, "resource.uri: expected a string, got 3"),
    ],
)
def test_wrong_lists(value: Any, error: Any, message: str) -> None:
    """The error for an invalid item quotes it."""
    with pytest.raises(error) as caught:
        to_listed(template_spec(TableSchema), value)
    assert str(caught.value).startswith(message)


class Colour(enum.Enum):
    RED = "red"


class Typed(ResourceTemplate, uri_template="x:{id}/{colour}{/tags*}{?deep,ratio}"):
    """Typed variables.

    Args:
        id: Which one.
    """

    class Arguments(Schema):
        id: int = field(min=1)
        colour: Colour = argument(complete=["red", "green"])
        tags: list[int] = field(factory=list)
        deep: bool = False
        ratio: float | None = None

    def read(self, uri: str, args: Arguments) -> Any:
        return args


def test_typed_variables() -> None:
    """Strings are parsed by the fields' types, and defaults replace absent variables."""
    spec = template_spec(Typed)
    args = spec.match("x:7/red/1/2?ratio=0.5&deep=true")
    assert args == Typed.Arguments(id=7, colour=Colour.RED, tags=[1, 2], deep=True, ratio=0.5)
    assert spec.match("x:7/red") == Typed.Arguments(id=7, colour=Colour.RED)
    assert (spec.complete("colour"), spec.complete("id")) == (("red", "green"), None)


@pytest.mark.parametrize(
    "uri", ["x:0/red", "x:a/red", "x:1/blue", "x:1/red/a", "x:1/red?deep=1", "x:1/red?ratio=x"]
)
def test_what_does_not_fit_is_not_found(uri: str) -> None:
    """A URI with a value of the wrong type does not match the template."""
    assert template_spec(Typed).match(uri) is None


def test_traversal_is_an_option() -> None:
    """Path traversal is refused unless the class allows it."""

    class Files(ResourceTemplate, uri_template="file:///{+path}"):
        def read(self, uri: str, args: Any) -> Any:
            return args.path

    class All(Files, uri_template="all:///{+path}", traversal=True):
        pass

    class Base(Files, abstract=True):
        pass

    assert template_spec(Files).match("file:///a/../b") is None
    assert template_spec(All).match("all:///a/../b").path == "a/../b"
    with pytest.raises(TypeError, match="Base is abstract: there is no resource"):
        Base.definition()


def test_bases_and_mixins() -> None:
    """A base provides its options and its method; the URI is the subclass's."""

    class Base(Resource, abstract=True, mime_type="text/plain", hidden=True):
        def read(self, uri: str) -> str:
            return f"{type(self).__name__} {uri}"

    class Mixin:
        uri = "x:mixin"

    class One(Base, uri="x:1", visible=True):
        pass

    class Two(Mixin, Base):
        pass

    one, two = resource_spec(One), resource_spec(Two)
    assert (one.uri, one.mime_type, one.hidden) == ("x:1", "text/plain", True)
    assert (two.uri, two.invoke("u", None)) == ("x:mixin", "Two u")
    with pytest.raises(TypeError, match="Base is abstract: there is no resource"):
        Base.definition()


def test_methods_of_every_kind() -> None:
    """Static methods, class methods and decorated methods can answer, too."""

    class Static(Resource, uri="x:1"):
        @staticmethod
        def read(uri: str) -> str:
            return f"static {uri}"

    class OfClass(Resource, uri="x:2"):
        @classmethod
        def read(cls, uri: str, ctx: Any = None) -> str:
            return f"{cls.__name__} {ctx}"

    assert resource_spec(Static).invoke("u", "ctx") == "static u"
    assert resource_spec(OfClass).invoke("u", "ctx") == "OfClass ctx"
    assert resource_spec(OfClass).takes_context


def test_overrides_of_registrations() -> None:
    """Every option of a registration overrides the class's."""
    overrides: dict[str, Any] = {
        "name": "n",
        "title": "T",
        "description": "D",
        "mime_type": "a/b",
        "annotations": ContentAnnotations(priority=0),
        "icons": [Icon("data:,")],
        "meta": {"m": 1},
        "hidden": False,
        "timeout": None,
        "subscribable": False,
    }
    shown = {
        "name": "n",
        "title": "T",
        "description": "D",
        "mimeType": "a/b",
        "annotations": {"priority": 0},
        "icons": [{"src": "data:,"}],
        "_meta": {"m": 1},
    }
    one = resource_spec(resource(Everything, uri="x:1", size=9, **overrides))
    assert one.definition == {"uri": "x:1", **shown, "size": 9}
    assert (one.hidden, one.timeout, one.subscribable, one.uri) == (False, None, False, "x:1")
    many = template_spec(resource_template(TableSchema(), **overrides))
    assert many.definition == {"uriTemplate": "db://{table}/schema", **shown}
    assert (many.hidden, many.timeout, many.subscribable) == (False, None, False)
    assert resource_spec(resource(AppConfig, uri="x:2")).name == "x:2"


@attrs.frozen
class Point:
    x: int


@pytest.mark.parametrize(
    ("mime_type", "value", "wire"),
    [
        (None, "x", [{"uri": "u:", "text": "x"}]),
        ("text/plain", "", [{"uri": "u:", "mimeType": "text/plain", "text": ""}]),
        ("image/png", b"\x00", [{"uri": "u:", "mimeType": "image/png", "blob": "AA=="}]),
        (None, bytearray(b""), [{"uri": "u:", "blob": ""}]),
        (None, memoryview(b"a"), [{"uri": "u:", "blob": "YQ=="}]),
        ("a/b", ResourceContents("o:", text="x"), [{"uri": "o:", "text": "x"}]),
        (
            "a/b",
            ["x", b"", ResourceContents("o:", text="y"), {"text": "z"}, {"uri": "p:", "blob": ""}],
            [
                {"uri": "u:", "mimeType": "a/b", "text": "x"},
                {"uri": "u:", "mimeType": "a/b", "blob": ""},
                {"uri": "o:", "text": "y"},
                {"uri": "u:", "mimeType": "a/b", "text": "z"},
                {"uri": "p:", "mimeType": "a/b", "blob": ""},
            ],
        ),
        (
            "a/b",
            [{"text": "x", "mimeType": "c/d", "_meta": {"k": 1}}],
            [{"uri": "u:", "mimeType": "c/d", "text": "x", "_meta": {"k": 1}}],
        ),
        (None, {"a": 1}, [{"uri": "u:", "mimeType": "application/json", "text": '{"a":1}'}]),
        ("a/json", {"text": "x"}, [{"uri": "u:", "mimeType": "a/json", "text": '{"text":"x"}'}]),
        (None, Point(1), [{"uri": "u:", "mimeType": "application/json", "text": '{"x":1}'}]),
        (None, 3, [{"uri": "u:", "mimeType": "application/json", "text": "3"}]),
        (None, [1, "a"], [{"uri": "u:", "mimeType": "application/json", "text": '[1,"a"]'}]),
        (
            None,
            [{"text": "x", "blob": ""}],
            [{"uri": "u:", "mimeType": "application/json", "text": '[{"text":"x","blob":""}]'}],
        ),
        (
            None,
            [{"id": 1}],
            [{"uri": "u:", "mimeType": "application/json", "text": '[{"id":1}]'}],
        ),
    ],
)
def test_contents(mime_type: str | None, value: Any, wire: Any) -> None:
    """`read` may return strings, bytes, contents and JSON values."""
    assert [each.to_wire() for each in to_contents(mime_type, "u:", value)] == wire


async def _never() -> None: ...


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, TypeError, "read returned None; return '' for an empty text"),
        ([], TypeError, "read returned no contents; return '' for an empty text, '[]' for JSON"),
        ((), TypeError, "read returned no contents"),
        ([b"", 3], TypeError, "expected a list of contents, texts and bytes only, got [b'', 3]"),
        (object(), TypeError, "object has no JSON form"),
        ({"a": [float("nan")]}, ValueError, "/a/0: JSON cannot express NaN"),
        ([{"text": 3}], ProtocolError, "contents.text: expected a string, got 3"),
        ([{"blob": "?"}], ProtocolError, 'contents.blob: expected base64, got "?"'),
    ],
)
def test_wrong_contents(value: Any, error: Any, message: str) -> None:
    """The error for a value that cannot be sent quotes it in the log."""
    with pytest.raises(error) as caught:
        to_contents(None, "u:", value)
    assert message in str(caught.value)


def test_a_forgotten_await() -> None:
    """A coroutine is refused, and closed."""
    with pytest.raises(TypeError, match="a coroutine was returned; make read async, or await it"):
        to_contents(None, "u:", _never())
