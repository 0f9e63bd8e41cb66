"""Both engines agree if both serve a schema, and every rejection is explained."""

import copy

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from noizu_mcp import SchemaError
from noizu_mcp.schema import SchemaUnsupported, compile_schema, describe

DIALECTS = [
    *(f"https://json-schema.org/draft/{name}/schema" for name in ("2020-12", "2019-09")),
    *(f"http://json-schema.org/draft-0{number}/schema" for number in (7, 6, 4)),
]
NAMES = ["a", "b", '"', "\\", "{a}", "%s", "$ref", "id", "é", "a\nb", "a b", "0", "", "/", "~"]
PATTERNS = ["^a", "b$", r"\d", "^[^ab]+", "^(?:a|b)*$", "é", r"\{a\}", r"\\", "^.{1,2}$", "ab?b"]
names = st.sampled_from(NAMES)
scalars = st.sampled_from(
    [None, True, False, 0, 1, 1.0, -1, 1.5, 2, 2**53 + 1, 1e22, "", "a", "b", "ab", "é", '"', "{a}"]
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
numbers = st.sampled_from([-1, 0, 1, 1.5, 2, 0.1, 2**53, 1e22])
counts = st.integers(0, 3) | st.just(1.0)
types = st.sampled_from(["null", "boolean", "object", "array", "number", "string", "integer"])
patterns = st.sampled_from([*PATTERNS, r"\p{L}", "(a+)+", "(?!a)b"])


def keywords(inner):
    """Draw each keyword with a value; subschemas are drawn from `inner`."""
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(names, inner, max_size=3)
    lists = st.lists(names, unique=True, max_size=2)
    return {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, max_size=3),
        "const": values,
        **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], numbers),
        "multipleOf": st.sampled_from([1, 2, 0.1, 1.5]),
        **dict.fromkeys(["minLength", "maxLength", "minItems", "maxItems"], counts),
        **dict.fromkeys(["minProperties", "maxProperties"], counts),
        **dict.fromkeys(["minContains", "maxContains"], counts),
        "pattern": patterns,
        "uniqueItems": st.booleans(),
        "required": lists,
        "dependentRequired": st.dictionaries(names, lists, max_size=2),
        **dict.fromkeys(["properties", "dependentSchemas"], named),
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
        **dict.fromkeys(["additionalProperties", "propertyNames", "items", "contains"], inner),
        **dict.fromkeys(["not", "if", "then", "else"], inner),
        **dict.fromkeys(["allOf", "anyOf", "oneOf", "prefixItems"], some),
        "unevaluatedProperties": inner,
        "$ref": st.sampled_from(["#/$defs/a", "#/$defs/A", "#b", "#"]),
        "default": values,
        "format": st.just("email"),
        "$comment": st.just("{variable} {name} \n"),
    }


def objects(inner):
    """Draw schemas of a few keywords."""
    table = keywords(inner)
    chosen = st.lists(st.sampled_from(sorted(table)), unique=True, min_size=1, max_size=4)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: table[key] for key in keys}))


nodes = st.recursive(st.booleans() | objects(st.booleans()), objects, max_leaves=6)


@st.composite
def schemas(draw):
    """Draw a schema whose references resolve."""
    root = draw(objects(nodes))
    anchored = draw(objects(st.booleans()))
    return {
        **root,
        "$defs": {"a": draw(nodes), "A": draw(nodes), "x": {**anchored, "$anchor": "b"}},
    }


def compiled_in_python(schema):
    """Return the schema compiled in Python, or None if it is refused."""
    try:
        return compile_schema(schema, "python")
    except SchemaUnsupported:
        return None


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(schemas(), st.lists(values, min_size=1, max_size=5))
def test_engines_agree(schema, instances):
    """Verdicts and lines are equal, rejections have lines, and nothing is modified."""
    before = copy.deepcopy((schema, instances))
    native = compile_schema(schema, "native")
    python = compiled_in_python(schema)
    for value in instances:
        valid = native.is_valid(value)
        lines = describe(native.violations(value))
        assert valid is (not lines)
        if python is not None:
            assert valid is python.is_valid(value)
            assert lines == describe(python.violations(value))
            assert "(root): does not match the schema" not in lines
    assert before == (schema, instances)


CHANGED = {"contains", "minContains", "maxContains", "prefixItems", "if", "then", "else"}
CHANGED |= {"dependentRequired", "dependentSchemas", "unevaluatedProperties"}


def lasting(node):
    """Remove the keywords that some drafts from 6 on lack, at any depth."""
    if isinstance(node, list):
        return [lasting(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {name: lasting(item) for name, item in node.items() if name not in CHANGED}


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(schemas(), st.sampled_from(DIALECTS), st.lists(values, min_size=1, max_size=5))
def test_engines_agree_on_older_dialects(schema, dialect, instances):
    """The Python engine serves the keywords whose meaning has not changed."""
    schema = {**lasting(schema), "$schema": dialect}
    python = compiled_in_python(schema)
    if python is not None:
        try:
            native = compile_schema(schema, "native")
        except SchemaError:  # such as a reference without a target, which this draft ignores
            reject()
        assert list(map(native.is_valid, instances)) == list(map(python.is_valid, instances))


def of_a_class(kind, **fields):
    """Draw the schema of a class with fields, with one of them as its tag."""
    properties = {"kind": {"const": kind}, **fields}
    return {"type": "object", "properties": properties, "required": list(properties)}


POINT = {"type": "array", "prefixItems": [{"type": "integer"}, {"minimum": 0}], "minItems": 2}
SHAPES = [
    of_a_class("dot", at=POINT),
    of_a_class("line", points={"type": "array", "items": POINT, "uniqueItems": True}),
    of_a_class("group", names={"additionalProperties": {"type": "object", "maxProperties": 1}}),
]
DRAWING = {
    "type": "object",
    "properties": {
        "shapes": {"type": "array", "items": {"anyOf": SHAPES}},
        "one": {"oneOf": SHAPES},
        "frame": {"$ref": "#/$defs/frame"},
        "free": {"not": {"required": ["a"]}, "propertyNames": {"maxLength": 1}},
    },
    "additionalProperties": False,
    "$defs": {"frame": {"type": "object", "properties": {"a": POINT, "b": POINT}}},
}
# One in ten is arbitrary: most parts of a value fit, as with mistakes of a model.
points = st.tuples(st.integers(), st.integers(0)).map(list)


def mostly(strategy):
    return st.integers(0, 9).flatmap(lambda die: strategy if die else values)


shapes = mostly(
    st.fixed_dictionaries({"kind": st.just("dot"), "at": mostly(points)})
    | st.fixed_dictionaries({"kind": st.just("line"), "points": st.lists(mostly(points))})
    | st.fixed_dictionaries(
        {"kind": st.just("group"), "names": st.dictionaries(names, mostly(st.just({})), max_size=3)}
    )
)
drawings = st.fixed_dictionaries(
    {"shapes": st.lists(shapes, max_size=4), "one": shapes},
    optional={
        "frame": st.fixed_dictionaries({"a": mostly(points), "b": mostly(points)}),
        "free": st.dictionaries(names, values, max_size=2),
        "more": values,
    },
)


def assert_nothing_is_passed_over(schema, value):
    """Check the report against that of the Python engine, which walks through the whole value."""
    compiled = compile_schema(schema, "native")
    if not compiled.is_valid(value):
        try:
            everything = compile_schema(schema, "python").violations(value)
        except SchemaUnsupported:
            reject()
        # A schema that contradicts itself, {"not": {"$ref": "#"}}, has a general message only.
        told = [found for found in compiled.violations(value) if found.keyword]
        assert [found for found in everything if found.keyword] == told


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(drawings)
def test_parts_that_fit_hide_no_fault(value):
    """The parts of a long value that the report skips have no faults."""
    assert_nothing_is_passed_over(DRAWING, value)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(schemas(), values)
def test_parts_of_any_schema_hide_no_fault(schema, value):
    """The same holds for schemas with any keywords."""
    assert_nothing_is_passed_over(schema, value)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PATTERNS), st.text("ab1é{}\\ \n", max_size=5))
def test_patterns_agree(pattern, text):
    """A pattern that both engines serve matches the same strings."""
    schema = {"pattern": pattern}
    native, python = compile_schema(schema, "native"), compile_schema(schema, "python")
    assert native.is_valid(text) is python.is_valid(text)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(values, values)
def test_equality_agrees(left, right):
    """Values that are equal as JSON are equal for const, enum and uniqueItems on both engines."""
    answers = {
        compile_schema(schema, engine).is_valid(value) is expected
        for engine in ("native", "python")
        for schema, value, expected in (
            ({"const": left}, right, True),
            ({"enum": [left]}, right, True),
            ({"uniqueItems": True}, [left, right], False),
        )
    }
    assert len(answers) == 1


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1, 2, 3, 7, 0.1, 0.01, 0.5, 1.5, 2.5, 0.1234]),
)
def test_multiples_agree(value, divisor):
    """Multiples are exact in decimal on both engines."""
    schema = {"multipleOf": divisor}
    native, python = compile_schema(schema, "native"), compile_schema(schema, "python")
    assert native.is_valid(value) is python.is_valid(value)
    assert native.violations(value) == python.violations(value)
