"""compile_schema: one interface, two engines, and their limits."""

import math
import threading
from types import MappingProxyType

import pytest

from noizu_mcp import SchemaError
from noizu_mcp.schema import Document, SchemaUnsupported, compile_schema

ENGINES = ("native", "python")
LIST = {"$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}}
RECURSIVE = {**LIST, "$ref": "#/$defs/list"}


def nested(levels, leaf=1):
    """Return lists nested this deep."""
    value = leaf
    for _ in range(levels):
        value = [value]
    return value


def verdict(engine, schema, value):
    """Return the verdict of an engine, or "refused"."""
    try:
        return compile_schema(schema, engine).is_valid(value)
    except SchemaUnsupported:
        return "refused"


# Where engines of JSON Schema differ most: the expected verdict, by engine if they differ.
GOTCHAS = [
    ("bool as integer", {"type": "integer"}, True, False),
    ("bool as number", {"type": "number"}, False, False),
    ("1.0 as integer", {"type": "integer"}, 1.0, True),
    ("1.5 as integer", {"type": "integer"}, 1.5, False),
    ("enum [1] and true", {"enum": [1]}, True, False),
    ("enum [true] and 1", {"enum": [True]}, 1, False),
    ("enum [0] and false", {"enum": [0]}, False, False),
    ("const 1 and 1.0", {"const": 1}, 1.0, True),
    ("const [false] and [0]", {"const": [False]}, [0], False),
    ("const object with 1 and true", {"const": {"a": 1}}, {"a": True}, False),
    ("unique [1, true]", {"uniqueItems": True}, [1, True], True),
    ("unique [1, 1.0]", {"uniqueItems": True}, [1, 1.0], False),
    ("unique objects with 1 and true", {"uniqueItems": True}, [{"a": 1}, {"a": True}], True),
    ("unique lists with 1 and true", {"uniqueItems": True}, [[1], [True]], True),
    (
        "unique whatever the order",
        {"uniqueItems": True},
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
        False,
    ),
    ("unique object and list", {"uniqueItems": True}, [{"a": []}, [["a", []]]], True),
    ("unique switched off", {"uniqueItems": False}, [1, 1], True),
    ("astral length", {"maxLength": 1}, "\U0001f600", True),
    ("combining length", {"maxLength": 1}, "e\u0301", False),
    ("lone surrogate", {"type": "string"}, "\ud800", False),
    ("multiple .01 of 19.99", {"multipleOf": 0.01}, 19.99, True),
    ("multiple .1 of 0.3", {"multipleOf": 0.1}, 0.3, True),
    ("multiple 3 of 1e22", {"multipleOf": 3}, 1e22, False),
    ("multiple 3 of 10**30", {"multipleOf": 3}, 10**30, False),
    ("multiple .5 of 10**30+1", {"multipleOf": 0.5}, 10**30 + 1, True),
    ("multiple .1234 of 1e308", {"multipleOf": 0.1234}, 1e308, False),
    ("multiple .5 of a huge integer", {"multipleOf": 0.5}, 10**400, True),
    ("multiple .3 of a huge integer", {"multipleOf": 0.3}, 10**400, False),
    ("multiple 2 of NaN", {"multipleOf": 2}, math.nan, True),
    ("multiple 2 of infinity", {"multipleOf": 2}, math.inf, True),
    ("multiple 2 of true", {"multipleOf": 2}, True, True),
    ("big integer", {"type": "integer"}, 2**70, True),
    ("big integer above a bound", {"maximum": 2**70}, 2**70 + 1, False),
    ("2**53 + 1", {"maximum": 2**53}, 2**53 + 1, False),
    ("const 2**53 + 1", {"const": 2**53 + 1}, 2**53, False),
    ("const 2**53 as float", {"const": 2**53}, 2.0**53, True),
    ("a huge integer", {"type": "number", "minimum": 0}, 10**400, True),
    ("NaN as number", {"type": "number"}, math.nan, False),
    ("infinity as number", {"type": ["number", "null"]}, -math.inf, False),
    ("NaN in an enum", {"enum": [1]}, math.nan, False),
    ("$ and a line end", {"pattern": "^a$"}, "a\n", False),
    ("digits of other scripts", {"pattern": r"^\d$"}, "\u0663", False),
    ("word characters", {"pattern": r"^\w$"}, "\u00e9", False),
    ("BOM as space", {"pattern": r"^\s$"}, "\ufeff", True),
    ("the dot and an astral", {"pattern": "^.$"}, "\U0001f600", True),
    ("the dot and a line end", {"pattern": "^.$"}, "\n", False),
    # Both are faults of the native engine: ECMA-262 has four line ends.
    ("the dot and U+2028", {"pattern": "^.$"}, "\u2028", {"native": True, "python": False}),
    ("property escape", {"pattern": r"^\p{L}$"}, "\u00e9", {"native": True, "python": "refused"}),
    ("control escape", {"pattern": r"^\cA$"}, "\x01", {"native": True, "python": "refused"}),
    ("a dollar in a class", {"pattern": "^[$]$"}, "$", True),
    ("named group", {"pattern": "^(?<n>a)$"}, "a", {"native": True, "python": "refused"}),
    ("lookbehind", {"pattern": "(?<=a+)b"}, "ab", {"native": True, "python": "refused"}),
    ("flags", {"pattern": "(?i)a"}, "A", {"native": True, "python": "refused"}),
    ("pattern property and line end", {"patternProperties": {"^a$": False}}, {"a\n": 1}, True),
    ("format is an annotation", {"format": "email"}, "no", True),
    ("content is an annotation", {"contentEncoding": "base64"}, "?", True),
    ("beside a $ref", {"$ref": "#/$defs/a", "maximum": 1, "$defs": {"a": {}}}, 2, False),
    (
        "names that differ by case",
        {"$defs": {"F": {"type": "string"}, "f": {}}, "$ref": "#/$defs/f"},
        1,
        True,
    ),
    (
        "names that differ by a sign",
        {
            "$defs": {"a-b": {"type": "string"}, "a_b": {"type": "integer"}},
            "properties": {"x": {"$ref": "#/$defs/a-b"}, "y": {"$ref": "#/$defs/a_b"}},
        },
        {"x": "", "y": ""},
        False,
    ),
    ("a $ref in a const", {"const": {"$ref": "#"}}, {"$ref": "#"}, True),
    ("a property named $ref", {"properties": {"$ref": {"type": "string"}}}, {"$ref": 1}, False),
    ("a property named id", {"properties": {"id": {"type": "string"}}}, {"id": 1}, False),
    ("a tuple", {"type": "array", "items": {"type": "integer"}}, (1, 2), True),
    ("minLength 2.0", {"minLength": 2.0}, "ab", True),
    (
        "required but not allowed",
        {"required": ["a"], "additionalProperties": False},
        {"a": 1},
        False,
    ),
    ("if without then", {"if": {"type": "string"}}, 1, True),
    ("then without if", {"then": False}, 1, True),
    ("empty enum", {"enum": []}, 1, False),
    ("dependentRequired", {"dependentRequired": {"a": ["b"]}}, {"a": 1}, False),
    (
        "minContains 0",
        {"contains": {"const": 1}, "minContains": 0},
        [],
        True,
    ),
    (
        "maxContains",
        {"contains": {"const": 1}, "maxContains": 1},
        [1, 1],
        False,
    ),
    (
        "minContains",
        {"contains": {"const": 1}, "minContains": 2},
        [1, 2, 1],
        True,
    ),
    (
        "unevaluatedProperties",
        {"unevaluatedProperties": False},
        {"a": 1},
        False,
    ),
    (
        "$dynamicRef",
        {"$dynamicRef": "#t", "$defs": {"t": {"$dynamicAnchor": "t", "type": "string"}}},
        1,
        {"native": False, "python": "refused"},
    ),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("schema", "value", "expected"), [row[1:] for row in GOTCHAS], ids=[row[0] for row in GOTCHAS]
)
def test_gotcha(engine, schema, value, expected):
    """Cases in which engines differ follow the specification, or are refused."""
    wanted = expected[engine] if isinstance(expected, dict) else expected
    assert wanted == verdict(engine, schema, value)


@pytest.mark.parametrize("engine", ENGINES)
def test_non_json_values_never_raise(engine):
    """A value that is not JSON is rejected or ignored, and reported without an exception."""
    compiled = compile_schema(
        {"type": ["string", "array", "object", "number"], "propertyNames": {"pattern": "^.*$"}},
        engine,
    )
    values = ["\ud800", ["\ud800"], {"\ud800": 1}, {1: 2}, b"", object(), math.nan, -math.inf, {1}]
    for value in values:
        assert compiled.is_valid(value) is (compiled.violations(value) == [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("named", [{"properties": {"a": {}}}, {"patternProperties": {"^a": {}}}])
def test_a_name_that_is_no_text_never_raises(engine, named):
    """A name that is not a string matches no schema."""
    compiled = compile_schema({**named, "additionalProperties": False}, engine)
    (found,) = compiled.violations({1: 2})
    assert found.message.startswith("unknown property 1")


def test_the_schema_is_kept():
    """The compiled schema contains the given schema."""
    schema = MappingProxyType({"type": "string"})
    assert compile_schema(schema).schema is schema


def test_engines_have_names():
    """An unknown engine is an error, not the default."""
    with pytest.raises(ValueError, match='schema engine must be "native" or "python", got \'rs\''):
        compile_schema({}, "rs")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("boolean", [True, False])
def test_boolean_schemas(engine, boolean):
    """True accepts everything, False nothing."""
    compiled = compile_schema(boolean, engine)
    assert compiled.is_valid(1) is boolean
    wanted = [] if boolean else ["nothing is allowed here, got 1"]
    assert wanted == [found.message for found in compiled.violations(1)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ([], "the schema: a schema is an object, true or false, not []"),
        ({"type": "strin"}, "type: takes one of null, boolean"),
        ({"properties": {"a": {"minLength": -1}}}, "properties.a.minLength: takes an integer of 0"),
        ({"patternProperties": 5}, "patternProperties: takes an object whose values are schemas"),
        ({"properties": [1]}, "properties: takes an object whose values are schemas, not [1]"),
        ({"required": ["a", "a"]}, "required: takes a list of different strings"),
        ({"minimum": math.inf}, "minimum: JSON cannot express Infinity"),
        ({"const": "\ud800"}, 'const: "\\ud800" has half of a surrogate pair'),
        ({"$ref": "#/$defs/no"}, '$ref: "#/$defs/no" leads nowhere: there is no "$defs"'),
        ({"$ref": "https://example.com/s"}, "nothing is ever fetched; pass it in documents="),
    ],
)
def test_bad_schemas_are_named(engine, schema, text):
    """Both engines refuse an invalid schema with its place and the reason."""
    with pytest.raises(SchemaError) as caught:
        compile_schema(schema, engine)
    assert text in str(caught.value)


def test_bad_pattern_is_named():
    """An invalid regular expression raises a SchemaError that shows it."""
    with pytest.raises(SchemaError, match=r'pattern: "\(" cannot be used'):
        compile_schema({"pattern": "("}, "native")


@pytest.mark.parametrize("uri", ["http", "https", "file"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("documents", [None, {"urn:other": True}])
def test_nothing_is_ever_fetched(uri, engine, documents, monkeypatch, tmp_path):
    """A reference to another URL fails at once: no connection is opened and no file is read."""
    target = tmp_path / "schema.json"
    target.write_text("{}")
    address = target.as_uri() if uri == "file" else f"{uri}://127.0.0.1:9/schema.json"

    def refuse(*_args, **_kwargs):
        raise AssertionError("a request was made")

    monkeypatch.setattr("socket.socket.connect", refuse)
    with pytest.raises(SchemaError, match="nothing is ever fetched"):
        compile_schema({"$ref": address}, engine, documents)


def test_documents_are_used():
    """Given documents may refer to each other; the Python engine refuses them by name."""
    documents = {
        "urn:a": {"properties": {"b": {"$ref": "urn:b#/$defs/t"}}},
        "urn:b": {"$defs": {"t": {"type": "string"}}},
    }
    compiled = compile_schema({"$ref": "urn:a"}, documents=documents)
    assert [found.message for found in compiled.violations({"b": 1})] == [
        "expected string, got integer 1"
    ]
    with pytest.raises(SchemaUnsupported, match="which is not local") as caught:
        compile_schema({"$ref": "urn:a"}, "python", documents)
    assert caught.value.keyword == "$ref"


def test_a_document_that_leads_nowhere():
    """A document with an unresolvable reference is refused, and the error has the dialect."""
    with pytest.raises(SchemaError, match="a reference that leads nowhere"):
        compile_schema({"$ref": "urn:a"}, documents={"urn:a": {"$ref": "urn:b"}})


@pytest.mark.parametrize(
    ("dialect", "schema"),
    [
        ("http://json-schema.org/draft-04/schema#", {"minimum": 1, "exclusiveMinimum": True}),
        ("http://json-schema.org/draft-06/schema#", {"exclusiveMinimum": 1}),
        ("http://json-schema.org/draft-07/schema#", {"if": True, "then": {"exclusiveMinimum": 1}}),
        ("https://json-schema.org/draft/2019-09/schema", {"exclusiveMinimum": 1}),
        ("https://json-schema.org/draft/2020-12/schema", {"exclusiveMinimum": 1}),
    ],
)
def test_older_dialects(dialect, schema):
    """A peer's schema may declare any draft from 4 on, which then applies."""
    compiled = compile_schema({"$schema": dialect, **schema}, trusted=False)
    assert (compiled.is_valid(2), compiled.is_valid(1)) == (True, False)
    assert [found.path for found in compiled.violations(1)] == [()]


def test_invalid_in_an_older_dialect():
    """A schema that violates its own older dialect is refused with its place."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"type": 1}},
    }
    with pytest.raises(SchemaError, match=r"properties\.a\.type: not valid in http://json-schema"):
        compile_schema(schema, "native")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dialect", ["http://example.com/own", 3])
def test_unknown_dialects(engine, dialect):
    """An unknown dialect is refused, and not ignored (spec, basic, 1.19)."""
    with pytest.raises((SchemaUnsupported, SchemaError), match=r"\$schema|dialect"):
        compile_schema({"$schema": dialect}, engine)


def test_a_metaschema_of_ones_own():
    """A dialect is known if its metaschema is one of the documents."""
    own = {"$id": "urn:meta", "$schema": "https://json-schema.org/draft/2020-12/schema"}
    compiled = compile_schema(
        {"$schema": "urn:meta", "type": "string"}, documents={"urn:meta": own}
    )
    assert not compiled.is_valid(1)


@pytest.mark.parametrize("engine", ENGINES)
def test_recursive_schema_has_a_depth_limit(engine):
    """A recursive schema accepts 128 levels, and rejects more with a reason."""
    compiled = compile_schema(RECURSIVE, engine)
    assert compiled.is_valid(nested(128, [])[0])
    for levels in (128 + 1, 10_000):
        found = compiled.violations(nested(levels, []))
        assert [violation.message for violation in found] == ["nested deeper than 128 levels"]


def test_deep_values_on_a_small_stack():
    """A value that would overflow a small C stack is rejected before the native engine gets it."""
    compiled = compile_schema(RECURSIVE, "native")
    answers = []
    deep = nested(50_000)  # created and deleted outside, as deletion needs stack, too
    old = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: answers.append(compiled.is_valid(deep)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert answers == [False]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"const": 1},
        {"items": {"type": "string"}},
        {"not": {"type": "array"}},
        {"uniqueItems": True, "minItems": 2},
        {"enum": [[1]]},
        {"unevaluatedItems": False},
    ],
)
def test_deep_values_without_recursion(engine, schema):
    """A flat schema accepts a value of any depth."""
    compiled = compile_schema(schema, engine)
    value = [nested(10_000), nested(10_000)]
    assert not compiled.is_valid(value)
    assert compiled.violations(value)


def test_a_deep_schema_is_refused():
    """A schema that is too deep for the engines is refused before they get it."""
    schema = {}
    for _ in range(10_000):
        schema = {"not": schema}
    for trusted in (True, False):
        with pytest.raises(SchemaError, match="nested deeper than"):
            compile_schema(schema, trusted=trusted)


def test_an_untrusted_schema_is_bounded():
    """A peer's schema is refused if it is too large, too deep, or may cost too much."""
    doubling = {"$defs": {"d200": {"type": "string"}}, "$ref": "#/$defs/d0"}
    for level in range(200):
        ref = {"$ref": f"#/$defs/d{level + 1}"}
        doubling["$defs"][f"d{level}"] = {"allOf": [ref, dict(ref)]}
    with pytest.raises(SchemaError, match=r"one value can cause .* checks, more than 100000"):
        compile_schema(doubling, trusted=False)
    endless = {**doubling, "$defs": dict(doubling["$defs"])}
    for level in range(200, 1100):
        ref = {"$ref": f"#/$defs/d{level + 1}"}
        endless["$defs"][f"d{level}"] = {"allOf": [ref, dict(ref)]}
    endless["$defs"]["d1100"] = {}
    with pytest.raises(SchemaError, match="endless checks"):
        compile_schema(endless, trusted=False)
    with pytest.raises(SchemaError, match="bytes of JSON, more than the 262144"):
        compile_schema({"description": "x" * 300_000}, trusted=False)


def test_mutual_recursion_is_cheap():
    """Classes that refer to each other cost their size, not that of their expansion."""
    names = [f"t{index}" for index in range(30)]
    refs = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    schema = {"$defs": {name: {"properties": dict(refs)} for name in names}, "$ref": "#/$defs/t0"}
    found = Document(schema).survey
    assert found.recursive
    assert found.cost < 2000


@pytest.mark.parametrize(
    ("schema", "recursive"),
    [
        (True, False),
        ({"properties": {"a": {"$ref": "#"}}}, True),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}, False),
        ({"$dynamicRef": "#a"}, True),
        ({"$ref": "urn:other"}, True),
        ({"$ref": "#/nowhere"}, False),
        ({"items": {"$id": "urn:inner", "items": {"$ref": "#"}}}, True),
    ],
)
def test_what_is_recursive(schema, recursive):
    """A schema counts as recursive if it leads back to itself, or out of sight."""
    assert Document(schema).survey.recursive is recursive


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 80 + "!"),
        (r"^(?=(a+)+$)", "a" * 80 + "!"),
        (r"^(a|b|ab)*\1$", "ab" * 80 + "!"),
    ],
)
def test_explosive_patterns(pattern, text):
    """A pattern made to explode is bounded natively, and refused by the Python engine."""
    # An unbounded match would double its steps with each letter, and never end.
    compiled = compile_schema({"pattern": pattern}, "native")
    assert not compiled.is_valid(text)
    with pytest.raises(SchemaUnsupported) as caught:
        compile_schema({"pattern": pattern}, "python")
    assert caught.value.keyword == "pattern"


def test_neither_schema_nor_value_is_changed():
    """Compilation and validation do not modify schema and value: no default is filled in."""
    schema = {"properties": {"a": {"default": 1, "$ref": "#/$defs/x"}}, "$defs": {"x": {}}}
    for engine in ENGINES:
        value = {}
        assert compile_schema(schema, engine).is_valid(value)
        assert value == {}
    assert schema == {"properties": {"a": {"default": 1, "$ref": "#/$defs/x"}}, "$defs": {"x": {}}}
