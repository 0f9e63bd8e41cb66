"""Values of a run: valid ones, invalid ones, and those at the limits."""

from noizu_mcp import ResourceTemplate, Server
from noizu_mcp.check.fuzz import fuzz
from noizu_mcp.schema import compile_schema
from noizu_mcp.types import ResourceTemplateDefinition

from .recorded import recorder, schema_of

LIMITS = {
    "maximum": ({"type": "integer", "maximum": 7}, {7, 8}),
    "minimum": ({"type": "integer", "minimum": -3}, {-3, -4}),
    "longest": ({"type": "string", "maxLength": 2}, {"aa", "aaa"}),
    "shortest": ({"type": "string", "minLength": 1}, {"a", ""}),
    "enum": ({"type": "string", "enum": ["b"]}, {"b", "bb"}),
}


async def test_limits():
    """The value at a limit is sent, and the one beyond it."""
    parts = {name: part for name, (part, _) in LIMITS.items()}
    server, calls = recorder({"x": schema_of(parts, parts)})
    report = await fuzz(server, examples=1)

    assert report.findings == []
    for name, (_, expected) in LIMITS.items():
        sent = [each[name] for each in calls["x"] if isinstance(each.get(name), int | str)]
        assert expected <= set(sent), name


async def test_lists_at_their_limit():
    """A list is made of a valid item; a very large limit is skipped."""
    part = {"type": "array", "items": {"type": "integer"}, "maxItems": 3, "minItems": 1}
    huge = {"type": "array", "maxItems": 10_001}
    server, calls = recorder({"x": schema_of({"a": part, "b": huge}, ["a"])})
    await fuzz(server, examples=6)

    lists = {
        name: {len(each[name]) for each in calls["x"] if isinstance(each.get(name), list)}
        for name in "ab"
    }
    assert {3, 4} <= lists["a"]
    assert 10_001 not in lists["b"]


async def test_schemas_without_values():
    """An unsatisfiable schema has only invalid values, and an invalid schema has none."""
    never = schema_of({"a": False}, ["a"])
    server, calls = recorder({"never": never, "odd": schema_of({"a": {"type": "objekt"}})})
    report = await fuzz(server, examples=2)

    assert calls["never"]
    assert not any(map(compile_schema(never).is_valid, calls["never"]))
    assert calls["odd"] == []
    assert report.unusable == ["odd"]


async def test_special_texts_are_sent():
    """Each stands in place of one text, beside valid ones."""
    text = {"type": "string"}
    server, calls = recorder({"x": schema_of({"a": text, "b": text}, ["a", "b"])})
    await fuzz(server, examples=2)

    sent = {each.get(name) for each in calls["x"] for name in "ab" if isinstance(each, dict)}
    assert {"99999999999999999999", "../../../etc/passwd", "\x00", "a" * 10_000} <= sent


async def test_a_malformed_template():
    """A malformed URI template has no variables, and is not read."""
    reads = []

    class Broken(Server, name="broken", version="1"):
        async def list_resource_templates(self, cursor, ctx):
            return [ResourceTemplateDefinition("a://{b", "b")]

        async def read_resource(self, uri, ctx):
            reads.append(uri)
            return ""

    class Right(ResourceTemplate, uri_template="c://{d}"):
        def read(self, uri, args, ctx):
            reads.append(uri)
            return ""

    class Both(Broken, name="both", version="1"):
        resources = [Right]

    report = await fuzz(Both, examples=1)

    assert report.is_complete
    assert all(uri.startswith("c://") for uri in reads)
