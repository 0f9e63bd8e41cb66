"""Input schemas as each API takes them, and the report of what changes."""

from itertools import pairwise

import pytest

from noizu_mcp.models import SchemaLoss, tools_for
from noizu_mcp.types import ToolDefinition


def described(**properties):
    return {"type": "object", "properties": properties}


def adapt(schema, provider="gemini", *, strict=False):
    """Return the tool for a model, its schema, and the report, as texts."""
    tools = tools_for(provider, [ToolDefinition("t", input_schema=schema)], strict=strict)
    made = tools[0]["functionDeclarations"][0] if provider == "gemini" else tools[0]
    made = made.get("function", made)
    report = [str(each).removeprefix("t ").removeprefix("t: ") for each in tools.report]
    return made, made.get("parameters") or made.get("input_schema"), report


def property_of(schema, provider="gemini", *, strict=False):
    """Return a property as the model gets it, and the report."""
    whole = described(a=schema) | {"required": ["a"]}
    whole["$defs"] = {"tag": {"type": "string", "description": "A tag."}}
    _, adapted, report = adapt(whole, provider, strict=strict)
    return adapted["properties"]["a"], [each.replace("/properties/a", "a") for each in report]


TOLD = "looser: the API does not take it; the description tells it"
GEMINI = {
    "text": (
        {"type": "string", "minLength": 1, "pattern": "^a", "format": "date-time"},
        {"type": "STRING", "minLength": 1, "pattern": "^a", "format": "date-time"},
        [],
    ),
    "a format": (
        {"type": "string", "format": "uri", "description": "Where."},
        {"type": "STRING", "description": 'Where. (format: "uri")'},
        [f"a format: {TOLD}"],
    ),
    "a pattern": (
        {"type": "string", "pattern": "(?=a)"},
        {"type": "STRING", "description": '(pattern: "(?=a)")'},
        [f"a pattern: {TOLD}"],
    ),
    "exclusive bounds of an integer": (
        {"type": "integer", "minimum": 2, "exclusiveMinimum": 0, "exclusiveMaximum": 9},
        {"type": "INTEGER", "minimum": 2, "maximum": 8},
        [],
    ),
    "an exclusive bound that is no integer": (
        {"type": "integer", "exclusiveMinimum": 0.5},
        {"type": "INTEGER", "description": "(exclusiveMinimum: 0.5)"},
        [f"a exclusiveMinimum: {TOLD}"],
    ),
    "exclusive bounds of a number": (
        {"type": "number", "exclusiveMinimum": 0, "multipleOf": 2},
        {"type": "NUMBER", "description": "(exclusiveMinimum: 0, multipleOf: 2)"},
        [f"a exclusiveMinimum: {TOLD}", f"a multipleOf: {TOLD}"],
    ),
    "a default": (
        {"type": "boolean", "default": False},
        {"type": "BOOLEAN", "description": "(default: false)"},
        [],
    ),
    "an enum of texts": ({"enum": ["a", "b"]}, {"type": "STRING", "enum": ["a", "b"]}, []),
    "an enum with null": (
        {"enum": ["a", None]},
        {"type": "STRING", "enum": ["a"], "nullable": True},
        [],
    ),
    "an enum of numbers": (
        {"enum": [1, 2]},
        {"type": "INTEGER", "description": "(enum: [1,2])"},
        [f"a enum: {TOLD}"],
    ),
    "an enum and a type": (
        {"type": "string", "enum": ["a", 1]},
        {"type": "STRING", "enum": ["a"]},
        [],
    ),
    "a constant number": (
        {"type": "number", "const": 1},
        {"type": "NUMBER", "description": "(const: 1)"},
        [f"a const: {TOLD}"],
    ),
    "a constant": ({"const": "a"}, {"type": "STRING", "enum": ["a"]}, []),
    "null": ({"type": "null"}, {"type": "NULL"}, []),
    "null as a constant": ({"const": None}, {"type": "NULL"}, []),
    "a type or null": ({"type": ["null", "string"]}, {"type": "STRING", "nullable": True}, []),
    "several types": (
        {"type": ["integer", "number", "boolean", "null"], "maximum": 3},
        {"nullable": True, "anyOf": [{"type": "NUMBER", "maximum": 3}, {"type": "BOOLEAN"}]},
        [],
    ),
    "an optional": (
        {"anyOf": [{"type": "integer", "description": "Lines."}, {"type": "null"}]},
        {"type": "INTEGER", "description": "Lines.", "nullable": True},
        [],
    ),
    "alternatives": (
        {"oneOf": [{"type": "string"}, {"type": "boolean"}], "description": "x"},
        {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}], "description": "x"},
        [],
    ),
    "alternatives that overlap": (
        {"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]},
        {"anyOf": [{"type": "STRING"}, {"type": "STRING", "maxLength": 3}]},
        ["a oneOf: looser: more than one of the alternatives may hold"],
    ),
    "alternatives in alternatives": (
        {"oneOf": [{"type": "null"}, {"type": ["string", "boolean"]}]},
        {"nullable": True, "anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}]},
        ["a oneOf: looser: more than one of the alternatives may hold"],
    ),
    "many alternatives": (
        {"oneOf": [{"const": f"{n}"} for n in range(65)]},
        {"anyOf": [{"type": "STRING", "enum": [f"{n}"]} for n in range(65)]},
        ["a oneOf: looser: more than one of the alternatives may hold"],
    ),
    "an alternative of one": (
        {"anyOf": [{"type": "string", "maxLength": 3, "description": "b"}], "description": "a"},
        {"type": "STRING", "maxLength": 3, "description": "a b"},
        [],
    ),
    "keywords beside alternatives": (
        {
            "type": "object",
            "properties": {"b": {"type": "string"}, "c": {"type": "string"}},
            "anyOf": [{"required": ["b"]}, {"required": ["c"]}],
        },
        {
            "anyOf": [
                {
                    "type": "OBJECT",
                    "properties": {"b": {"type": "STRING"}, "c": {"type": "STRING"}},
                    "required": [name],
                }
                for name in "bc"
            ]
        },
        [],
    ),
    "a reference": (
        {"$ref": "#/$defs/tag", "maxLength": 3},
        {"type": "STRING", "maxLength": 3, "description": "A tag."},
        [],
    ),
    "a description beside a reference": (
        {"$ref": "#/$defs/tag", "description": "The tag."},
        {"type": "STRING", "description": "The tag."},
        [],
    ),
    "a reference to a metaschema": (
        {"$ref": "https://json-schema.org/draft/2020-12/schema", "type": "boolean"},
        {"type": "BOOLEAN"},
        ["a $ref: looser: https://json-schema.org/draft/2020-12/schema is not followed"],
    ),
    "all of": (
        {
            "allOf": [
                {"type": ["string", "number"], "minLength": 1, "maxLength": 9},
                {"type": "string", "minLength": 2, "maxLength": 8, "description": "x"},
                {"enum": ["abc", "d"]},
                {"enum": ["abc", "e"]},
            ]
        },
        {
            "type": "STRING",
            "minLength": 2,
            "maxLength": 8,
            "enum": ["abc"],
            "description": "x",
        },
        [],
    ),
    "all of some objects": (
        {
            "allOf": [
                described(b={"type": "string"}, c={"type": "string"}) | {"required": ["b"]},
                described(b={"maxLength": 2}) | {"required": ["c", "b"]},
            ]
        },
        {
            "type": "OBJECT",
            "properties": {"b": {"type": "STRING", "maxLength": 2}, "c": {"type": "STRING"}},
            "required": ["b", "c"],
        },
        [],
    ),
    "all of some lists": (
        {
            "allOf": [
                {"type": "array", "items": {"type": "number"}, "uniqueItems": False},
                {"items": {"type": "integer"}, "uniqueItems": True},
            ]
        },
        {"type": "ARRAY", "items": {"type": "INTEGER"}, "description": "(uniqueItems: true)"},
        [f"a uniqueItems: {TOLD}"],
    ),
    "two patterns": (
        {"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]},
        {"type": "STRING", "pattern": "a"},
        ["a pattern: looser: two schemas have it; one of them counts"],
    ),
    "one pattern twice": (
        {"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "a"}]},
        {"type": "STRING", "pattern": "a"},
        [],
    ),
    "a closed part": (
        {
            "allOf": [
                described(b={"type": "string"}) | {"additionalProperties": False},
                described(c={"type": "string"}) | {"additionalProperties": {"type": "string"}},
            ]
        },
        {
            "type": "OBJECT",
            "properties": {"b": {"type": "STRING"}, "c": {"type": "STRING"}},
            "description": "(additionalProperties: false)",
        },
        [
            (
                "a additionalProperties: looser: properties of one schema that another one "
                "excludes are allowed"
            ),
            f"a additionalProperties: {TOLD}",
        ],
    ),
    "two open parts": (
        {
            "allOf": [
                {"type": "object", "additionalProperties": {"type": "string"}},
                {"additionalProperties": {"maxLength": 2}},
            ]
        },
        {
            "type": "OBJECT",
            "description": '(additionalProperties: {"allOf":[{"type":"string"},{"maxLength":2}]})',
        },
        [f"a additionalProperties: {TOLD}"],
    ),
    "an object": (
        described(b={"type": "string"}) | {"required": ["b", "c"], "minProperties": 1},
        {
            "type": "OBJECT",
            "properties": {"b": {"type": "STRING"}},
            "required": ["b"],
            "minProperties": 1,
        },
        [f"a required: {TOLD}"],
    ),
    "names of any kind": (
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
        {"type": "OBJECT", "description": '(patternProperties: {"^x":{"type":"string"}})'},
        [f"a patternProperties: {TOLD}"],
    ),
    "a property that must not be sent": (
        described(b=False, c={"type": "string"}),
        {"type": "OBJECT", "properties": {"c": {"type": "STRING"}}},
        ["a properties: looser: b is left out; it must not be sent"],
    ),
    "a list": (
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": 1, "maxItems": 2},
        [],
    ),
    "a list that is empty": (
        {"type": "array", "items": False},
        {"type": "ARRAY", "items": {"type": "STRING"}},
        [f"a items: {TOLD}"],
    ),
    "places of a list": (
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        {
            "type": "ARRAY",
            "items": {"type": "STRING"},
            "description": '(prefixItems: [{"type":"string"}])',
        },
        [f"a prefixItems: {TOLD}"],
    ),
    "places of an older list": (
        {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "boolean"}},
        {
            "type": "ARRAY",
            "items": {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}]},
            "description": '(prefixItems: [{"type":"string"}])',
        },
        [f"a prefixItems: {TOLD}"],
    ),
    "conditions": (
        {"type": "string", "not": {"const": "b"}, "if": {"minLength": 2}, "then": {"pattern": "c"}},
        {
            "type": "STRING",
            "description": '(not: {"const":"b"}, if: {"minLength":2}, then: {"pattern":"c"})',
        },
        [f"a not: {TOLD}", f"a if: {TOLD}", f"a then: {TOLD}"],
    ),
    "no type": (
        {"minLength": 2},
        {"type": "STRING", "minLength": 2},
        ["a type: narrower: without a type it is taken for string"],
    ),
    "a long value": (
        {"type": "string", "pattern": f"(?=a){'b' * 300}"},
        {"type": "STRING", "description": f'(pattern: "(?=a){"b" * 193}…)'},
        [f"a pattern: {TOLD}"],
    ),
}


@pytest.mark.parametrize("case", GEMINI)
def test_schemas_of_gemini(case):
    """A schema is reduced to Gemini's subset; each difference is reported."""
    schema, adapted, report = GEMINI[case]

    assert property_of(schema) == (adapted, report)


@pytest.mark.parametrize("schema", [{}, True, {"not": {"type": "string"}}])
def test_a_value_of_any_type(schema):
    """Any value is a union of all types, whose lists contain strings."""
    adapted, report = property_of(schema)

    kinds = ["STRING", "NUMBER", "BOOLEAN", "ARRAY", "OBJECT"]
    assert [each["type"] for each in adapted["anyOf"]] == kinds
    assert adapted["nullable"] is True
    assert report[0] == "a type: narrower: a value of any type; its lists have texts in them"
    assert len(report) == (2 if schema and schema is not True else 1)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"not": {}},
        {"enum": ["a"], "const": "b"},
        {"type": "string", "enum": [1.5, 2.0]},
        {"allOf": [{"type": "string"}, {"type": "boolean"}]},
        {"anyOf": [False, {"not": True}]},
        {"type": "array", "allOf": [False]},
    ],
)
def test_a_property_without_values(schema):
    """A property that no value fits is left out, and not required."""
    made, adapted, report = adapt(described(a=schema, b={"type": "string"}) | {"required": ["a"]})

    assert adapted == {"type": "OBJECT", "properties": {"b": {"type": "STRING"}}}
    assert report == [
        "properties: looser: a is left out; it must not be sent",
        f"required: {TOLD}",
    ]
    assert made["description"] == "t"


def test_recursion_is_unrolled():
    """A recursive schema is expanded twice."""
    node = described(below={"type": "array", "items": {"$ref": "#"}})
    _, adapted, report = adapt(node)

    once = adapted["properties"]["below"]["items"]
    twice = once["properties"]["below"]["items"]
    assert "anyOf" in twice["properties"]["below"]["items"]
    assert report[0].endswith("$ref: looser: # leads to itself, and is followed 2 times")


STRICT = {
    "a text": (
        {"type": "string", "minLength": 1, "format": "uri", "pattern": "a"},
        {"type": "string", "pattern": "a", "format": "uri", "description": "(minLength: 1)"},
        {"type": "string", "pattern": "a", "description": '(minLength: 1, format: "uri")'},
    ),
    "a number": (
        {"type": "number", "exclusiveMinimum": 1},
        {"type": "number", "description": "(exclusiveMinimum: 1)"},
        {"type": "number", "exclusiveMinimum": 1},
    ),
    "a list": (
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string"},
            "description": "(maxItems: 3)",
        },
        {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string"}},
    ),
    "a longer list": (
        {"type": "array", "items": {"type": "string"}, "minItems": 2},
        {"type": "array", "items": {"type": "string"}, "description": "(minItems: 2)"},
        {"type": "array", "minItems": 2, "items": {"type": "string"}},
    ),
    "an enum": (
        {"enum": ["a", 1, True, None]},
        *[
            {
                "anyOf": [
                    {"type": "string", "enum": ["a"]},
                    {"type": "integer", "enum": [1]},
                    {"type": "boolean", "enum": [True]},
                    {"type": "null"},
                ]
            }
        ]
        * 2,
    ),
    "an object": (
        described(b={"type": "string"}),
        {
            "type": "object",
            "properties": {"b": {"type": "string"}},
            "required": [],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"b": {"type": ["string", "null"]}},
            "required": ["b"],
            "additionalProperties": False,
        },
    ),
}


@pytest.mark.parametrize("case", STRICT)
def test_strict_schemas(case):
    """A schema is reduced to the strict subset of Anthropic, and of OpenAI."""
    schema, anthropic, openai = STRICT[case]

    assert property_of(schema, "anthropic", strict=True)[0] == anthropic
    assert property_of(schema, "openai", strict=True)[0] == openai


EACH = pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])


@EACH
def test_alternatives_at_the_root(provider):
    """APIs accept no alternatives at the root; the description lists the groups of arguments."""
    text = {"type": "string"}
    schema = described(a=text, b=text, c=text) | {
        "required": ["a"],
        "anyOf": [{"required": ["b"]}, {"required": ["c", "a"]}],
    }
    made, adapted, report = adapt(schema, provider)

    assert adapted["required"] == ["a"]
    assert [*adapted["properties"]] == ["a", "b", "c"]
    assert made["description"] == "t Give one of these groups of arguments: b; c, a."
    assert report == [
        "anyOf: looser: the properties of all alternatives are properties of the root"
    ]


@EACH
def test_a_union_at_the_root(provider):
    """The properties of all alternatives are merged; shared required ones stay required."""
    cat = described(kind={"const": "cat"}, lives={"type": "integer"}) | {"required": ["kind"]}
    dog = described(kind={"const": "dog"}, tail={"type": "integer"})
    schema = {
        "oneOf": [
            cat | {"additionalProperties": False},
            dog | {"required": ["kind", "tail"], "additionalProperties": False},
            {"type": "string"},
            False,
        ]
    }
    _, adapted, report = adapt(schema, provider)

    assert adapted["required"] == ["kind"]
    assert [*adapted["properties"]] == ["kind", "lives", "tail"]
    assert len(adapted["properties"]["kind"]["anyOf"]) == 2
    if provider != "gemini":
        assert adapted["additionalProperties"] is False
        assert len(report) == 1


def test_an_open_union_at_the_root():
    """An open alternative allows any value for properties of the others: the result is narrower."""
    text, number = {"type": "string"}, {"type": "number"}
    schema = {
        "type": "object",
        "properties": {"b": {"type": ["string", "number"]}},
        "anyOf": [described(a=text, b=text), described(a=text), described(c=number)],
    }
    _, adapted, report = adapt(schema, "openai")

    assert adapted["properties"] == {"b": {"type": ["string", "number"]}, "a": text, "c": number}
    assert [each.partition(": ")[0] for each in report] == ["anyOf", "properties", "properties"]
    assert report[1].endswith("narrower: a is what some of the alternatives say, in all of them")


@EACH
def test_conditions_at_the_root(provider):
    """Conditions and constants at the root are left out."""
    schema = described(a={"type": "string"}) | {
        "not": {"required": ["b"]},
        "enum": [{}],
        "if": {"required": ["a"]},
        "then": {"required": ["c"]},
    }
    _, adapted, report = adapt(schema, provider)

    assert adapted.keys() == {"type", "properties"}
    assert sorted(each.partition(":")[0] for each in report) == ["enum", "if", "not", "then"]


def test_a_reference_at_the_root():
    """A reference at the root is expanded, and others stay."""
    tree = described(below={"$ref": "#/$defs/tree"})
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": tree}}

    _, adapted, report = adapt(schema, "anthropic")

    assert adapted == {"$defs": {"tree": tree}, **tree}
    assert report == []


OLD = {
    "exclusive bounds": (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "exclusiveMaximum": False},
        {"type": "integer", "exclusiveMinimum": 1},
    ),
    "a bound of nothing": ({"type": "integer", "exclusiveMaximum": True}, {"type": "integer"}),
    "places": (
        {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
    ),
    "places and more": (
        {"type": "array", "items": [True]},
        {"type": "array", "prefixItems": [True]},
    ),
    "dependencies": (
        {"type": "object", "dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        {
            "type": "object",
            "dependentRequired": {"a": ["b"]},
            "dependentSchemas": {"c": {"required": ["d"]}},
        },
    ),
    "its id": ({"$id": "https://x.test/y", "type": "string"}, {"type": "string"}),
}


@pytest.mark.parametrize("case", OLD)
def test_older_drafts(case):
    """A schema of an older draft is translated to 2020-12, which the APIs expect."""
    schema, modern = OLD[case]
    whole = {"$schema": "http://json-schema.org/draft-04/schema#", **described(a=schema)}

    _, adapted, report = adapt(whole, "anthropic")

    assert adapted == described(a=modern)
    assert report == []


def test_names_of_properties():
    """A name that the API refuses is replaced everywhere, and restored in arguments."""
    text = {"type": "string"}
    schema = described(
        **{"$top": text, "tags": {"type": "array", "items": described(**{"a b": text})}}
    )
    schema |= {"required": ["$top"], "dependentRequired": {"$top": ["tags"]}}
    tools = tools_for("anthropic", [ToolDefinition("t", input_schema=schema)])

    adapted = tools[0]["input_schema"]
    (top,) = adapted["required"]
    assert top.startswith("_top_")
    assert [*adapted["properties"]] == [top, "tags"]
    assert adapted["dependentRequired"] == {top: ["tags"]}
    (inner,) = adapted["properties"]["tags"]["items"]["properties"]
    assert tools.report == ()
    sent = {top: "x", "tags": [{inner: "y"}]}
    call = tools.call_of({"id": "1", "name": "t", "input": sent})
    assert call.arguments == {"$top": "x", "tags": [{"a b": "y"}]}


def test_names_and_nulls():
    """Names are restored after nulls are removed."""
    schema = described(
        **{
            "2d": {"type": "string"},
            "a": {"anyOf": [described(b={"type": "string"}), {"type": "string"}]},
        }
    )
    tools = tools_for("openai", [ToolDefinition("t", input_schema=schema)], strict=True)
    sent = {"2d": None, "a": {"b": None}}

    call = tools.call_of({"id": "1", "function": {"name": "t", "arguments": sent}})

    assert call.arguments == {"a": {}}


DEEP = {"type": "string"}
for _ in range(70):
    DEEP = {"type": "array", "items": DEEP}
DEEPER = {"type": "string"}
for _ in range(3000):
    DEEPER = {"type": "array", "items": DEEPER}
UNUSABLE = {
    "an endless one": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        "it leads to itself without end",
    ),
    "a deep one": (described(a=DEEP), "nested deeper than 64 levels"),
    "a deeper one": (described(a=DEEPER), "it is nested too deeply"),
    "a large one": (described(a={"description": "x" * 300_000}), "bytes of JSON, more than"),
    "NaN": (described(a={"default": float("nan")}), "JSON cannot express NaN"),
}


@EACH
@pytest.mark.parametrize("case", UNUSABLE)
def test_schemas_that_cannot_be_used(provider, case):
    """A tool with an invalid schema is described without it, and reported."""
    schema, text = UNUSABLE[case]
    tools = tools_for(provider, [ToolDefinition("t", input_schema=schema)])

    (loss,) = tools.report
    assert (loss.tool, loss.keyword, loss.effect) == ("t", "inputSchema", "looser")
    assert text in loss.text
    if provider == "anthropic":
        assert tools[0]["input_schema"] == {"type": "object"}


INVALID = {
    "a type": (described(a={"type": "text", "minLength": 1}), described(a={"minLength": 1})),
    "properties": ({"type": "object", "properties": [], "required": True}, {"type": "object"}),
    "a part of properties": (
        {"type": "object", "properties": {"a": 1, "b": {"type": 2}}},
        {"type": "object"},
    ),
    "dependencies": (
        {"type": "object", "dependentRequired": {"a": 1}, "dependencies": 1},
        {"type": "object"},
    ),
    "a reference to nowhere": (described(a={"$ref": "#/$defs/b"}), described(a={})),
    "a reference to elsewhere": (described(a={"$ref": "https://x.test"}), described(a={})),
    "in a list": (described(a={"anyOf": [{"type": 1}]}), described(a={"anyOf": [{}]})),
}


@EACH
@pytest.mark.parametrize("case", INVALID)
def test_invalid_keywords(provider, case):
    """Invalid keywords are removed and reported, and the rest stays."""
    schema, rest = INVALID[case]
    _, adapted, report = adapt(schema, provider)

    assert "looser: it is not valid: " in report[0]
    if provider == "anthropic":
        assert adapted == rest


def test_an_anchor_that_is_there_twice():
    """A duplicate anchor is reported, and the schema stays."""
    schema = described(a={"$anchor": "x"}, b={"$anchor": "x"})
    _, adapted, report = adapt(schema, "anthropic")

    assert adapted == schema
    assert report == [
        'looser: it is not valid: "$anchor": "x" is declared twice; rename one',
    ]


def test_many_references():
    """A schema that grows too large by expanding references is not described."""
    names = [f"d{n}" for n in range(14)]
    defs = {
        name: described(a={"$ref": f"#/$defs/{under}"}, b={"$ref": f"#/$defs/{under}"})
        for name, under in pairwise(names)
    } | {names[-1]: {"type": "string"}}
    schema = described(a={"$ref": "#/$defs/d0"}) | {"$defs": defs}

    _, adapted, report = adapt(schema)
    _, kept, nothing = adapt(schema, "openai")
    _, again, (lost,) = adapt(schema, "openai", strict=True)

    assert adapted is None
    (loss,) = report
    assert loss.endswith(
        "not described to the model: it has too many parts once its references are put in"
    )
    assert (kept, nothing) == (schema, [])
    assert again == schema
    assert lost.startswith("not strict: it has too many parts")


def test_an_object_without_properties():
    """Gemini gets no schema for an object without properties; what is lost is reported."""
    made, adapted, report = adapt({"type": "object", "minProperties": 1})

    assert adapted is None
    assert report == ["minProperties: looser: the API takes no object without properties"]
    assert made == {"name": "t", "description": "t"}


def test_a_loss_as_text():
    """A loss is a line with tool, path, keyword and effect."""
    loss = SchemaLoss("t", "/properties/a", "pattern", "looser", "the reason")

    assert str(loss) == "t /properties/a pattern: looser: the reason"
