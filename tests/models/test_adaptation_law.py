"""The laws of adapted schemas, over schemas with every adapted keyword.

The first law: arguments that a model may send are valid for the tool, once the keywords that the
report calls looser are removed from the tool's schema. The second: arguments that are valid for the
tool can be sent, unless the report calls something narrower.
"""

import copy

import jsonschema
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from noizu_mcp.models import tools_for
from noizu_mcp.types import ToolDefinition

NAMES = st.sampled_from(["a", "b", "c", "$d"])
TEXTS = st.sampled_from(["", "a", "ab", "abc", "2024-01-01"])
NUMBERS = st.one_of(st.integers(-3, 12), st.sampled_from([0.5, 2.5, 9.5]))
SCALARS = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none())
SMALL = st.integers(0, 3)


def some(**keywords):
    """Draw some of these keywords."""
    return st.fixed_dictionaries({}, optional=keywords)


STRINGS = some(
    minLength=SMALL,
    maxLength=SMALL,
    pattern=st.sampled_from(["a", "^a?b*", "(?=a)"]),
    format=st.sampled_from(["date", "uri-template"]),
    enum=st.lists(TEXTS, min_size=1, max_size=3),
    default=TEXTS,
    description=st.just("a text"),
).map(lambda each: {"type": "string", **each})
BOUNDS = {
    "minimum": NUMBERS,
    "maximum": NUMBERS,
    "exclusiveMinimum": NUMBERS,
    "exclusiveMaximum": NUMBERS,
    "multipleOf": st.sampled_from([1, 2, 0.5]),
}
INTEGERS = some(**BOUNDS, enum=st.lists(st.integers(0, 9), min_size=1, max_size=3)).map(
    lambda each: {"type": "integer", **each}
)
REALS = some(**BOUNDS, const=NUMBERS, default=NUMBERS).map(lambda each: {"type": "number", **each})
LEAVES = st.one_of(
    STRINGS,
    INTEGERS,
    REALS,
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"$ref": "#/$defs/leaf"}]),
    st.sampled_from([{"type": ["string", "null"]}, {"type": ["integer", "string"], "minimum": 2}]),
    st.sampled_from([{}, True, False, {"minLength": 2}, {"not": {"type": "string"}}]),
    st.lists(SCALARS, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.sampled_from([{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/leaf", "maxLength": 2}]),
)


def objects(inner):
    return some(
        properties=st.dictionaries(NAMES, inner, max_size=3),
        required=st.lists(NAMES, unique=True, max_size=2),
        additionalProperties=st.one_of(st.booleans(), inner),
        patternProperties=st.just({"^x": {"type": "string"}}),
        minProperties=SMALL,
        dependentRequired=st.just({"a": ["b"]}),
    ).map(lambda each: {"type": "object", **each})


def arrays(inner):
    return some(
        items=inner,
        minItems=SMALL,
        maxItems=SMALL,
        uniqueItems=st.booleans(),
        prefixItems=st.lists(inner, min_size=1, max_size=2),
        contains=inner,
    ).map(lambda each: {"type": "array", **each})


def unions(inner):
    branches = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.sampled_from(["anyOf", "oneOf"]), branches).map(
            lambda pair: {pair[0]: pair[1]}
        ),
        st.tuples(objects(inner), st.sampled_from(["anyOf", "oneOf"]), branches).map(
            lambda parts: {**parts[0], parts[1]: parts[2]}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
        inner.map(lambda each: {"if": each, "then": {"required": ["a"]}, "type": "object"}),
    )


NESTED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(objects(inner), objects(inner), arrays(inner), unions(inner)),
    max_leaves=8,
)
DEFINITIONS = {
    "leaf": {"type": "string", "minLength": 1},
    "node": {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            "b": {"type": "string"},
        },
        "additionalProperties": False,
    },
}
ROOTS = st.one_of(
    objects(NESTED),
    objects(NESTED),
    unions(objects(NESTED)).map(lambda each: {"type": "object", **each}),
    st.just({"$ref": "#/$defs/node"}),
).map(lambda each: {**each, "$defs": DEFINITIONS})


def is_valid(schema, value):
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def plain_schema(schema):
    """Convert the schema of Gemini to JSON Schema."""
    if "anyOf" in schema:
        made = {**schema, "anyOf": [plain_schema(each) for each in schema["anyOf"]]}
    else:
        made = {**schema, "type": schema["type"].lower()}
    if "items" in made:
        made["items"] = plain_schema(made["items"])
    if "properties" in made:
        made["properties"] = {k: plain_schema(v) for k, v in made["properties"].items()}
    if made.pop("nullable", False):
        made = {"anyOf": [made, {"type": "null"}]}
    return made


PROVIDERS = {
    "anthropic": ("anthropic", False, lambda tools: tools[0]["input_schema"]),
    "anthropic strict": ("anthropic", True, lambda tools: tools[0]["input_schema"]),
    "openai": ("openai", False, lambda tools: tools[0]["function"]["parameters"]),
    "openai strict": ("openai", True, lambda tools: tools[0]["function"]["parameters"]),
    "gemini": (
        "gemini",
        False,
        lambda tools: plain_schema(
            tools[0]["functionDeclarations"][0].get("parameters", {"type": "OBJECT"})
        ),
    ),
}


def adapt(name, schema):
    """Return the adapted tool, its schema, and a function that reads arguments."""
    provider, strict, schema_of = PROVIDERS[name]
    tools = tools_for(provider, [ToolDefinition("tool", input_schema=schema)], strict=strict)
    calls = {
        "anthropic": lambda value: {"id": "1", "name": "tool", "input": value},
        "openai": lambda value: {"id": "1", "function": {"name": "tool", "arguments": value}},
        "gemini": lambda value: {"name": "tool", "args": value},
    }
    return tools, schema_of(tools), lambda value: tools.call_of(calls[provider](value)).arguments


def is_strict(tools):
    tool = tools[0]
    return tool.get("function", tool).get("strict", False)


@st.composite
def values(draw, schema, root=None, depth=0):
    """Draw a value that is likely to be valid."""
    root = schema if root is None else root
    schema = schema if isinstance(schema, dict) else {}
    if "$ref" in schema:
        _, folder, name = schema["$ref"].split("/")
        return draw(values(root[folder][name], root, depth + 1))
    key = next((each for each in ("anyOf", "oneOf", "allOf") if each in schema), None)
    if key is not None:
        found = draw(values(draw(st.sampled_from(schema[key])), root, depth))
        beside = {k: v for k, v in schema.items() if k != key}
        both = isinstance(found, dict) and "properties" in beside
        return {**found, **draw(values(beside, root, depth))} if both else found
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from([schema["const"]] if "const" in schema else schema["enum"]))
    kinds = schema.get("type", [*PLAIN, "object", "array"])
    kind = draw(st.sampled_from([kinds] if isinstance(kinds, str) else kinds))
    if kind == "object":
        return draw(members(schema, root, depth))
    if kind == "array":
        least = schema.get("minItems", 0)
        most = max(least, min(schema.get("maxItems", 2), 2)) if depth < 4 else least
        size = draw(st.integers(least, most))
        return [draw(values(schema.get("items", {}), root, depth + 1)) for _ in range(size)]
    return draw(PLAIN[kind])


PLAIN = {
    "string": TEXTS,
    "number": NUMBERS,
    "integer": st.integers(-3, 12),
    "boolean": st.booleans(),
    "null": st.none(),
}


@st.composite
def members(draw, schema, root, depth):
    """Draw an object."""
    needed = schema.get("required", ())
    found = {
        name: draw(values(each, root, depth + 1))
        for name, each in schema.get("properties", {}).items()
        if depth < 4 and (name in needed or draw(st.booleans()))
    }
    if schema.get("additionalProperties") is not False and draw(st.integers(0, 3)) == 3:
        found["x"] = draw(SCALARS)
    return {**{name: draw(SCALARS) for name in needed}, **found}


def without(schema, lost, *, at_root=True):
    """Return a schema without the keywords that a report calls looser."""
    if isinstance(schema, list):
        return [without(each, lost, at_root=False) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for key, value in schema.items():
        if key == "$defs" or (key == "properties" and key not in lost):
            made[key] = {name: without(each, lost, at_root=False) for name, each in value.items()}
        elif key in ("oneOf", "anyOf") and key in lost:
            # At the root alternatives are removed; elsewhere several may match.
            if not at_root:
                made["anyOf"] = without(value, lost, at_root=False)
        elif key in ("enum", "const", "default", "if", "not") and key not in lost:
            made[key] = value  # a condition that is looser would make its schema tighter
        elif key not in lost:
            made[key] = without(value, lost, at_root=False)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=100)
@given(data=st.data(), schema=ROOTS)
def test_arguments_of_a_model_are_valid(name, data, schema):
    """Arguments that fit the adapted schema fit the tool's, without the keywords in the report."""
    before = copy.deepcopy(schema)
    tools, adapted, read = adapt(name, schema)
    assert schema == before
    lost = {each.keyword for each in tools.report if each.effect == "looser"}
    value = data.draw(values(adapted))
    assume(is_valid(adapted, value))
    event(f"strict: {is_strict(tools) if name != 'gemini' else None}, looser: {len(lost)}")

    assert is_valid(without(schema, lost), read(value)), (adapted, value, read(value), lost)


def renamed(value):
    """Rename the properties of arguments to the model's names."""
    if isinstance(value, dict):
        return {SPELLED.get(key, key): renamed(each) for key, each in value.items()}
    return [renamed(each) for each in value] if isinstance(value, list) else value


#: `$d` as Anthropic and Gemini accept it.
SPELLED = {"$d": "_d_525745b0"}


def filled(schema, value, defs):
    """Fill in null for each required property that the value lacks."""
    if isinstance(schema, bool):
        return value
    if "$ref" in schema:
        return filled(defs[schema["$ref"].removeprefix("#/$defs/")], value, defs)
    for branch in schema.get("anyOf", ()):
        found = filled(branch, value, defs)
        if is_valid({**branch, "$defs": defs}, found):
            return found
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        given = {k: filled(properties.get(k, {}), each, defs) for k, each in value.items()}
        return {**dict.fromkeys(schema.get("required", ())), **given}
    if isinstance(value, list):
        return [filled(schema.get("items", {}), each, defs) for each in value]
    return value


def declared(schema, value):
    """Tell whether some inner schema declares every property of a value."""
    names = {name for each in walk(schema) for name in each.get("properties", {})}
    if isinstance(value, dict):
        return value.keys() <= names and all(declared(schema, each) for each in value.values())
    return not isinstance(value, list) or all(declared(schema, each) for each in value)


def walk(schema):
    if isinstance(schema, dict):
        yield schema
        yield from (found for each in schema.values() for found in walk(each))
    elif isinstance(schema, list):
        yield from (found for each in schema for found in walk(each))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=100)
@given(data=st.data(), schema=ROOTS)
def test_a_model_can_send_what_a_tool_takes(name, data, schema):
    """Valid arguments fit the adapted schema, if the report calls nothing narrower."""
    tools, adapted, _ = adapt(name, schema)
    assume(not any(each.effect == "narrower" for each in tools.report))
    value = data.draw(values(schema))
    assume(is_valid(schema, value) and declared(schema, value))
    sent = value if "openai" in name else renamed(value)

    assert is_valid(adapted, filled(adapted, sent, adapted.get("$defs", {}))), (adapted, sent)
