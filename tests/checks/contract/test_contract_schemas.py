"""Two versions of a schema: proofs, examples, and their laws."""

import json
import sys
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp._util import UNSET
from noizu_mcp.check.contract import _examples, _schemas
from noizu_mcp.check.contract._examples import instances
from noizu_mcp.check.contract._schemas import close, compare_schemas
from noizu_mcp.schema import compile_schema

search = _schemas.search

INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
NATURAL = {**INTEGER, "minimum": 1}
DAY = {**TEXT, "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}


@pytest.fixture(autouse=True, scope="module")
def no_search():
    """Disable Hypothesis's search within its own tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_schemas, "search", lambda *_: UNSET)
        yield


def shape(**properties):
    return {"type": "object", "properties": properties}


def strict(**properties):
    return {**shape(**properties), "additionalProperties": False}


def tree(required=(), **properties):
    node = shape(next={"$ref": "#/$defs/Node"}, **properties)
    return {"$ref": "#/$defs/Node", "$defs": {"Node": {**node, "required": list(required)}}}


def effect(direction, old, new):
    found = compare_schemas(direction, old, new)
    return "breaking" if found.is_breaking else "compatible" if found.text else "same"


# Old, new, the effect as an input, the effect as an output.
CHANGES = {
    "a new optional property": (shape(a=INTEGER), shape(a=INTEGER, b=TEXT), "compatible", "same"),
    "a new required property": (
        shape(a=INTEGER),
        {**shape(a=INTEGER, b=TEXT), "required": ["b"]},
        "breaking",
        "compatible",
    ),
    "a first property": ({"type": "object"}, shape(a=INTEGER), "compatible", "compatible"),
    "a property is gone": (shape(a=INTEGER, b=TEXT), shape(a=INTEGER), "same", "compatible"),
    "a property is refused": (
        shape(a=INTEGER, b=TEXT),
        {**shape(a=INTEGER), "additionalProperties": False},
        "breaking",
        "compatible",
    ),
    "others are refused": (shape(a=INTEGER), strict(a=INTEGER), "breaking", "compatible"),
    "others are refused without a name": (shape(), strict(), "breaking", "compatible"),
    "others are refused below": (
        shape(a={"type": "array", "items": shape(b=INTEGER)}),
        shape(a={"type": "array", "items": strict(b=INTEGER)}),
        "breaking",
        "compatible",
    ),
    "others are refused in an alternative": (
        shape(a={"anyOf": [shape(b=INTEGER), {"type": "null"}]}),
        shape(a={"anyOf": [strict(b=INTEGER), {"type": "null"}]}),
        "breaking",
        "compatible",
    ),
    "others are refused on the way round": (
        tree(v=INTEGER),
        {**tree(), "$defs": {"Node": strict(v=INTEGER, next={"$ref": "#/$defs/Node"})}},
        "breaking",
        "compatible",
    ),
    "others are refused beside parts": (
        {**shape(a=INTEGER), "allOf": [shape(b=INTEGER)]},
        {**shape(a=INTEGER), "allOf": [shape(b=INTEGER)], "unevaluatedProperties": False},
        "breaking",
        "compatible",
    ),
    "others have a type": (
        shape(a=INTEGER),
        {**shape(a=INTEGER), "additionalProperties": INTEGER},
        "breaking",
        "compatible",
    ),
    "a bound": (shape(a=INTEGER), shape(a={**INTEGER, "maximum": 9}), "breaking", "compatible"),
    "a wider type": (shape(a=INTEGER), shape(a={"type": "number"}), "compatible", "breaking"),
    "null": (shape(a=INTEGER), shape(a={"type": ["integer", "null"]}), "compatible", "breaking"),
    "fewer choices": (
        shape(a={"enum": ["x", "y"]}),
        shape(a={"enum": ["x"]}),
        "breaking",
        "compatible",
    ),
    "another way to write it": (
        shape(a={"type": ["integer", "string"]}),
        shape(a={"anyOf": [TEXT, INTEGER]}),
        "same",
        "same",
    ),
    "a reference": (
        shape(a=shape(b=INTEGER)),
        {**shape(a={"$ref": "#/$defs/A"}), "$defs": {"A": shape(b=INTEGER)}},
        "same",
        "same",
    ),
    "a property behind a reference": (
        {**shape(a={"$ref": "#/$defs/A"}), "$defs": {"A": shape(b=INTEGER)}},
        {
            **shape(a={"allOf": [{"$ref": "#/$defs/A"}], "title": "A"}),
            "$defs": {"A": shape(b=INTEGER, c=INTEGER)},
        },
        "compatible",
        "same",
    ),
    "a property in an alternative": (
        shape(a={"anyOf": [shape(b=INTEGER), {"type": "null"}]}),
        shape(a={"anyOf": [shape(b=INTEGER, c=INTEGER), {"type": "null"}]}),
        "compatible",
        "same",
    ),
    "a property beside parts": (
        {**shape(a=INTEGER), "allOf": [shape(b=INTEGER), {"required": ["a"]}]},
        {**shape(a=INTEGER, c=TEXT), "allOf": [shape(b=INTEGER), {"required": ["a"]}]},
        "compatible",
        "same",
    ),
    "one of two is required": (
        {**shape(a=INTEGER, b=INTEGER), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {**shape(a=INTEGER, b=INTEGER), "required": ["a"]},
        "breaking",
        "compatible",
    ),
    "different items": (
        shape(a={"type": "array", "items": INTEGER}),
        shape(a={"type": "array", "items": INTEGER, "uniqueItems": True}),
        "breaking",
        "compatible",
    ),
    "names of any kind": (
        {"type": "object", "additionalProperties": INTEGER},
        {"type": "object", "additionalProperties": TEXT},
        "breaking",
        "breaking",
    ),
    "a longer way round": (tree(v=INTEGER), tree(v=INTEGER, w=TEXT), "compatible", "same"),
    "a definition with a name of its own": (
        {**shape(a={"$ref": "#A"}), "$defs": {"A": {"$anchor": "A", **shape(b=INTEGER)}}},
        {**shape(a={"$ref": "#A"}), "$defs": {"A": {"$anchor": "A", **shape(b=INTEGER, c=TEXT)}}},
        "compatible",
        "same",
    ),
    "required on the way round": (
        tree(v=INTEGER),
        tree(["v"], v=INTEGER),
        "breaking",
        "compatible",
    ),
    "a format": (shape(a=TEXT), shape(a={**TEXT, "format": "date"}), "same", "same"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_effect_of_a_change(name):
    """Arguments may be extended, and results restricted."""
    old, new, as_input, as_output = CHANGES[name]

    assert effect("input", old, new) == as_input
    assert effect("output", old, new) == as_output
    assert effect("input", old, old) == effect("output", new, new) == "same"


@pytest.mark.parametrize("name", [name for name in CHANGES if name.startswith("others")])
def test_others_are_taken_again(name):
    """Allowing more is compatible in arguments, and breaking in results."""
    new, old, *_ = CHANGES[name]

    assert effect("input", old, new) == "compatible"
    assert effect("output", old, new) == "breaking"


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("direction", ["input", "output"])
def test_an_example_is_right(name, direction):
    """One schema allows it, and the other refuses it for the reported reasons."""
    old, new, *_ = CHANGES[name]
    giver, taker = (old, new) if direction == "input" else (new, old)
    found = compare_schemas(direction, old, new)

    if found.example is not UNSET:
        assert compile_schema(giver).is_valid(found.example)
        assert not compile_schema(taker).is_valid(found.example)
        assert found.reasons


@pytest.mark.parametrize(
    ("old", "new", "example", "reason"),
    [
        (shape(a=INTEGER), shape(a={**INTEGER, "maximum": 9}), {"a": 10}, "maximum of 9"),
        (shape(a=INTEGER), {**shape(a=INTEGER), "required": ["a"]}, {}, "/a: required"),
        (shape(a=TEXT), shape(a={**TEXT, "minLength": 1}), {"a": ""}, "/a: "),
        (tree(v=INTEGER), tree(["v"], v=INTEGER), {}, "/v: required"),
        (shape(a=TEXT), strict(a=TEXT), {"other": 0}, '(root): unknown property "other"'),
        (
            shape(other=TEXT, other2=TEXT),
            strict(other=TEXT, other2=TEXT),
            {"other3": 0},
            'unknown property "other3"',
        ),
    ],
)
def test_the_example_is_small(old, new, example, reason):
    """It has nothing that is irrelevant to the change."""
    found = compare_schemas("input", old, new)

    assert found.example == example
    assert reason in found.reasons[0]


def patterned(old, new):
    return [shape(a={**TEXT, "pattern": text}) for text in (old, new)]


def test_without_a_proof_or_an_example_it_is_breaking():
    """The text says that the effect is unknown."""
    found = compare_schemas("input", *patterned("^[a-z]{9}x", "^[a-z]{9}"))

    assert found.is_breaking
    assert found.example is UNSET
    assert "no proof" in found.text


def test_hypothesis_finds_examples_for_patterns(monkeypatch):
    """The example is the same each time, and drawing values has a limit."""
    monkeypatch.setattr(_schemas, "search", search)
    old, new = patterned("^[a-z]{3,}$", "^[a-m]{3,}$")
    examples = [compare_schemas("input", old, new).example for _ in range(2)]

    assert examples == [{"a": "aan"}] * 2
    assert search({"type": "null"}, lambda _: False) is UNSET
    assert search({"not": {}}, lambda _: True) is UNSET
    # Only the engine finds that nothing fits.
    assert search({"type": "object", "not": {"$ref": "#"}}, lambda _: True) is UNSET
    # The engine computes a large difference as infinite.
    assert search({"exclusiveMaximum": float("inf")}, lambda _: True) is UNSET


def test_hypothesis_is_an_extra(monkeypatch):
    """Without Hypothesis there is no example."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)

    assert search({"type": "null"}, lambda _: True) is UNSET


@pytest.mark.parametrize(
    "name",
    sorted(
        CHANGES.keys()
        - {"another way to write it", "a property beside parts", "others are refused beside parts"}
    ),
)
def test_without_the_native_engine(name, monkeypatch):
    """Simple changes are proved and refuted without the native engine, too."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)

    test_the_effect_of_a_change(name)


def test_the_python_engine_may_not_judge_an_example(monkeypatch):
    """Schemas that only the native engine serves once they are closed have no result."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    monkeypatch.setattr(_schemas, "compile_schema", partial(compile_schema, engine="python"))
    older = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
    parts = {"allOf": [shape(b=INTEGER)], **shape(a=INTEGER), **older}
    found = compare_schemas("input", parts, {**parts, "required": ["a"]})

    assert (found.is_breaking, found.example) == (True, UNSET)
    assert compare_schemas("input", shape(a=TEXT), shape(a=INTEGER)).example == {"a": ""}


def test_the_python_engine_may_not_take_a_pattern(monkeypatch):
    """All strings are drawn then, also some that do not match."""
    monkeypatch.setattr(_examples, "compile_schema", partial(compile_schema, engine="python"))

    assert "2026-01-31" in instances({**TEXT, "pattern": "(a+)+$"})


def test_schemas_that_are_not_valid():
    """A new fault is breaking; an old one is ignored."""
    bad = shape(a={"type": "text"})

    assert "the new schema cannot be used: " in compare_schemas("input", shape(), bad).text
    assert effect("input", shape(), bad) == "breaking"
    assert "the old schema cannot be used: " in compare_schemas("input", bad, shape()).text
    assert effect("input", bad, shape()) == "compatible"


def test_annotations_are_listed_with_their_places():
    """Texts, defaults and formats that differ are listed; comments are not."""
    old = shape(a={**TEXT, "default": "x", "$comment": "old"}, b=TEXT)
    new = shape(a={**TEXT, "default": "y", "$comment": "new"}, b={**TEXT, "title": "B"})

    assert list(compare_schemas("input", old, new).annotations) == [
        ("/properties/a/default", "x", "y"),
        ("/properties/b/title", None, "B"),
    ]


def test_properties_that_come_and_go():
    """The outermost ones are listed, as JSON pointers."""
    old = shape(a=shape(**{"x/y": shape(z=TEXT)}), b=TEXT)
    new = shape(a=shape(new=shape(z=TEXT)), b=TEXT)
    found = compare_schemas("input", old, new)

    assert list(found.added) == ["/properties/a/properties/new"]
    assert list(found.removed) == ["/properties/a/properties/x~1y"]


CLOSED = {"additionalProperties": False}
UNEVALUATED = {"unevaluatedProperties": False}


@pytest.mark.parametrize(
    ("schema", "closed"),
    [
        (True, True),
        ({"type": "object"}, {"type": "object"}),
        (shape(a=TEXT), {**shape(a=TEXT), **CLOSED}),
        ({**shape(a=TEXT), "additionalProperties": TEXT}, None),
        ({**shape(a=TEXT), **UNEVALUATED}, None),
        ({"patternProperties": {"^x": TEXT}}, {"patternProperties": {"^x": TEXT}, **CLOSED}),
        ({"items": shape(a=TEXT)}, {"items": {**shape(a=TEXT), **CLOSED}}),
        ({"not": shape(a=TEXT)}, None),
        ({"not": {"items": shape(a=TEXT)}}, None),
        ({"not": {"items": {"$ref": "#/$defs/A"}}, "$defs": {"A": shape(a=TEXT)}}, None),
        ({"contains": shape(a=TEXT)}, None),
        (
            {**shape(a=TEXT), "oneOf": [{"required": ["a"]}, True]},
            {**shape(a=TEXT), "oneOf": [{"required": ["a"]}, True], **CLOSED},
        ),
        (
            {**shape(a=TEXT), "oneOf": [{"allOf": [shape(b=TEXT), True]}]},
            {**shape(a=TEXT), "oneOf": [{"allOf": [shape(b=TEXT), True]}], **UNEVALUATED},
        ),
        (
            {
                "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
                "$defs": {"A": shape(a=TEXT)},
            },
            None,
        ),
        (
            {"$defs": {"A": {**shape(a=TEXT), "$anchor": "a"}, "B": True}},
            {"$defs": {"A": {**shape(a=TEXT), "$anchor": "a", **CLOSED}, "B": True}},
        ),
        ({"not": {"$ref": "#a"}, "$defs": {"A": {**shape(a=TEXT), "$anchor": "a"}}}, None),
        (
            {
                "contains": {"$dynamicRef": "#a"},
                "$defs": {"A": {**shape(a=TEXT), "$dynamicAnchor": "a"}},
            },
            None,
        ),
    ],
)
def test_closing(schema, closed):
    """An object that names properties allows no others, unless its schema says more about them."""
    expected = schema if closed is None else closed
    if isinstance(schema, dict) and "allOf" in schema:
        expected = {**schema, **UNEVALUATED}

    assert close(schema) == expected


def test_closing_except_one_property():
    """It may have any value, in every object that is closed."""
    nested = shape(a=shape(b=TEXT), c=strict(d=TEXT))

    assert close(nested, "x") == strict(a=strict(b=TEXT, x={}), c=strict(d=TEXT), x={})


def test_closing_leaves_the_schema_alone():
    """A copy is closed."""
    schema = shape(a=shape(b=TEXT))
    before = json.dumps(schema)
    close(schema)

    assert json.dumps(schema) == before


scalars = st.sampled_from(
    [
        {},
        True,
        INTEGER,
        TEXT,
        {"type": "number"},
        {"type": ["integer", "null"]},
        {"enum": ["a", 1, None]},
        {"const": "a"},
        {**INTEGER, "minimum": 1},
        {**INTEGER, "exclusiveMaximum": 5},
        {"type": "number", "multipleOf": 0.5},
        {**TEXT, "maxLength": 2},
        {**TEXT, "pattern": "^a"},
        {"type": "boolean", "title": "B"},
    ]
)
schemas = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.builds(
            lambda properties, required, rest: {
                "type": "object",
                "properties": properties,
                "required": required,
                **rest,
            },
            st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            st.lists(st.sampled_from("abc"), max_size=1),
            st.sampled_from([{}, CLOSED, {"additionalProperties": INTEGER}, {"minProperties": 1}]),
        ),
        st.builds(
            lambda items, rest: {"type": "array", "items": items, **rest},
            inner,
            st.sampled_from([{}, {"minItems": 1}, {"maxItems": 2}, {"uniqueItems": True}]),
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"prefixItems": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=4,
)
roots = st.dictionaries(st.sampled_from("abc"), schemas, max_size=2).map(lambda own: shape(**own))


@pytest.mark.slow
@given(roots, roots)
def test_a_change_that_is_not_breaking_has_no_counterexample(old, new):
    """The new version accepts each value that the old one allows and names; examples are valid."""
    found = compare_schemas("input", old, new)
    gives, takes = compile_schema(close(old, "other", is_input=True)), compile_schema(new)
    values = [value for _, value in zip(range(300), instances(old), strict=False)]

    if not found.is_breaking:
        assert [each for each in values if gives.is_valid(each) and not takes.is_valid(each)] == []
    elif found.example is not UNSET:
        assert gives.is_valid(found.example)
        assert not takes.is_valid(found.example)


@given(roots, roots)
def test_input_and_output_mirror_each_other(old, new):
    """An example of one direction is one of the other, with the versions exchanged."""
    found = compare_schemas("output", old, new)

    if found.example is not UNSET:
        assert compile_schema(new).is_valid(found.example)
        assert not compile_schema(old).is_valid(found.example)


@pytest.mark.slow
@given(schemas)
def test_a_closed_schema_allows_less(schema):
    """Every value that it allows is valid for the original."""
    closed, own = compile_schema(close(schema)), compile_schema(schema)
    values = [value for _, value in zip(range(200), instances(schema), strict=False)]

    assert [each for each in values if closed.is_valid(each) and not own.is_valid(each)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": "array", "minItems": 3}},
        },
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "integer", "multipleOf": 7, "minimum": 30},
        {"type": "string", "minLength": 30, "maxLength": 30},
        {"type": "string", "pattern": "^a\\.b$"},
        {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        {"type": "object", "minProperties": 1, "patternProperties": {"^x-": TEXT}, **CLOSED},
        {"propertyNames": {"enum": ["k"]}, "minProperties": 1, "type": "object"},
        {"propertyNames": {"const": "k"}, "minProperties": 1, "type": "object"},
        {"type": "array", "prefixItems": [INTEGER, TEXT], "items": False, "minItems": 2},
        {"type": "array", "contains": {"const": 5}, "minItems": 1},
        {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 2},
        {"allOf": [{"type": "object", "required": ["a"]}, {"required": ["b"]}, True]},
        {"oneOf": [{"const": 1}, {"const": 2}]},
        {"type": "string", "examples": ["only-this-1"], "pattern": "^only-this-\\d$"},
        {"type": "boolean", "not": {"const": False}},
        {"required": [*"abcd"], **shape(a=NATURAL, b=NATURAL, c=DAY, d=DAY), **CLOSED},
        {"type": "number", "minimum": 0.1, "maximum": 0.2},
        {"$ref": "#/$defs/Node", "$defs": {"Node": shape(n={"$ref": "#/$defs/Node"}, v=INTEGER)}},
        {"properties": {"a": TEXT}, "$ref": "#/$defs/A", "$defs": {"A": shape(a={}, b=INTEGER)}},
    ],
)
def test_an_instance_is_found(schema):
    """A value is built for bounds, names, lists and alternatives, without a random search."""
    judge = compile_schema(schema)

    assert any(
        judge.is_valid(value) for _, value in zip(range(500), instances(schema), strict=False)
    )


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "array", "items": False, "minItems": 1},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"$ref": "https://json-schema.org/draft/2020-12/schema", "type": "null", "not": {}},
    ],
)
def test_no_instance_is_made_of_nothing(schema):
    """A contradictory schema has no instance."""
    judge = compile_schema(schema)

    assert [each for each in instances(schema) if judge.is_valid(each)] == []


def test_instances_are_bounded():
    """A schema that branches at each level stops after some steps; large numbers are not added."""
    names = [f"n{number}" for number in range(12)]
    schema = shape(**{name: {"$ref": "#"} for name in names})

    assert sum(1 for _ in instances(schema)) < 1_000
    assert list(instances({"type": "number", "minimum": 10**400})) == [10**400]


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_old_drafts_close_what_is_in_place(draft):
    """Up to draft 7 `unevaluatedProperties` cannot close an object whose parts name properties."""

    def tool(*, joined=(), **more):
        return {
            "$schema": f"http://json-schema.org/{draft}/schema#",
            **shape(a=INTEGER, **more),
            "allOf": [{"$ref": "#/definitions/part"}, *joined],
            "definitions": {"part": {**shape(b=INTEGER), "patternProperties": {"^x": TEXT}}},
        }

    either = {"anyOf": [{"$ref": "#/definitions/part"}, {"dependencies": {"a": shape(c=TEXT)}}]}

    assert effect("input", tool(), tool(d=TEXT)) == "compatible"
    assert effect("output", tool(), tool(d=TEXT)) == "same"
    assert effect("input", tool(d=TEXT), tool(d=INTEGER)) == "breaking"
    assert effect("input", tool(joined=[either]), tool(joined=[either], d=TEXT)) == "compatible"
    # Without an `a` it was any value.
    assert effect("input", tool(joined=[either]), tool(joined=[either], c=TEXT)) == "breaking"
    assert "unevaluatedProperties" not in close(tool())
    assert "patternProperties" not in close({**tool(), "allOf": [shape(b=INTEGER)]})
    metaschema = {"$ref": f"http://json-schema.org/{draft}/schema#"}
    assert "additionalProperties" not in close(tool(joined=[metaschema]))


def test_old_drafts_ignore_what_stands_beside_a_reference():
    """Keywords beside a reference close nothing, and a definition applies alone."""

    def tool(**more):
        return {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/part", "properties": {"x": TEXT}}},
            "definitions": {"part": shape(b=INTEGER, **more)},
        }

    assert effect("input", tool(), tool(c=TEXT)) == "compatible"
    assert close(tool())["properties"] == {"a": {"$ref": "#/definitions/part"}}
