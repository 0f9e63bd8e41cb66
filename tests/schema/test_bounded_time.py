"""No argument keeps an engine busy: validation and report take time linear in the value.

Where a mistake would double the work with each level of a value, the values are so deep that such a
test would never end: the test shows that it does.
"""

import pytest

from noizu_mcp import SchemaError
from noizu_mcp.schema import SchemaUnsupported, check_schema, compile_schema, describe, read_shape

from .growth import is_linear

ENGINES = ("native", "python")


def lines_of(compiled, value):
    """Validate a value that does not fit, and return the lines of the report."""
    assert not compiled.is_valid(value)
    return describe(compiled.violations(value))


def explaining(compiled):
    """Return a function that validates and explains."""
    return lambda value: describe(compiled.violations(value))


def expression(kind, names, required):
    """Return the schema of an expression: alternatives which refer back to all of them."""
    options = [
        {
            "type": "object",
            "properties": {
                "op": {"const": name} if required else {"type": "string"},
                "args": {"type": "array", "items": {"$ref": "#/$defs/expression"}},
                "leaf": {"type": "integer"},
            },
            **({"required": ["op"]} if required else {}),
        }
        for name in names
    ]
    return {"$ref": "#/$defs/expression", "$defs": {"expression": {kind: options}}}


def nested(levels, leaf):
    """Return an expression of this depth."""
    value = leaf
    for _ in range(levels):
        value = {"op": "and", "args": [value]}
    return value


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["anyOf", "oneOf"])
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(("names", "levels"), [(("and", "or"), 60), (tuple("abcdefghij"), 30)])
def test_alternatives_that_refer_back(engine, kind, required, names, levels):
    """A bad leaf deep in a recursive union is found at its path, without doubling per level."""
    compiled = compile_schema(expression(kind, names, required), engine)
    lines = lines_of(compiled, nested(levels, {"op": "and", "leaf": "bad"}))
    assert len(lines) == 1
    if not required:
        assert "/args/0/args/0" in lines[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_alternative_that_was_meant_is_explained_at_its_leaf(engine):
    """A constant identifies the intended alternative at each level."""
    compiled = compile_schema(expression("anyOf", ("and", "or"), required=True), engine)
    assert lines_of(compiled, nested(2, {"op": "or", "leaf": "bad"})) == [
        '/args/0/args/0/leaf: expected integer, got string "bad"'
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "twice",
    [
        {"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "minItems": 0}]},
        {"not": {"not": {"items": {"$ref": "#"}}}, "allOf": [{"items": {"$ref": "#"}}]},
        {
            "if": {"items": {"$ref": "#"}},
            "then": {"items": {"$ref": "#"}},
            "else": {"items": {"$ref": "#"}},
        },
    ],
)
def test_parts_that_are_judged_twice(engine, twice):
    """A recursive schema that applies twice to one value evaluates it once."""
    value = 1
    for _ in range(100):
        value = [value]
    compiled = compile_schema({"type": "array", **twice}, engine)
    assert lines_of(compiled, value)


@pytest.mark.parametrize(
    "more",
    [
        {"unevaluatedProperties": False},
        {"$dynamicAnchor": "any", "additionalProperties": {"$dynamicRef": "#any"}},
    ],
)
def test_what_only_the_native_engine_serves(more):
    """Unevaluated members and dynamic references cost no more than plain references."""
    schema = {"anyOf": [{"properties": {"a": {"$ref": "#"}}}] * 3, "type": "object", **more}
    value = 1
    for _ in range(100):
        value = {"a": value}
    assert lines_of(compile_schema(schema), value)


PRIME = 2**61 - 1
#: Positions of a number in an item.
WRAPS = [lambda number: number, lambda number: [number], lambda number: {"a": number}]


class Counted(int):
    """A number that counts its comparisons with others."""

    comparisons = 0

    __hash__ = int.__hash__

    def __eq__(self, other):
        Counted.comparisons += 1
        return int(self) == other


@pytest.mark.parametrize("wrap", WRAPS)
def test_numbers_that_share_a_hash(wrap, monkeypatch):
    """Equal items are found among numbers that a peer chose for their equal hashes in Python."""
    monkeypatch.setattr(Counted, "comparisons", 0)
    value = [wrap(Counted(number * PRIME)) for number in range(1, 1000)]
    compiled = compile_schema({"uniqueItems": True}, "python")
    assert compiled.is_valid(value)
    assert lines_of(compiled, [*value, wrap(Counted(PRIME))]) == [
        "(root): items 0 and 999 are equal, but all must differ"
    ]
    assert Counted.comparisons <= 1000


@pytest.mark.parametrize("wrap", WRAPS)
def test_numbers_that_share_a_hash_natively(wrap):
    """The native engine finds equal items among them in linear time."""

    def make(size):
        return [*(wrap(number * PRIME) for number in range(1, size)), wrap(PRIME)]

    compiled = compile_schema({"uniqueItems": True}, "native")
    assert lines_of(compiled, make(1000)) == [
        "(root): items 0 and 999 are equal, but all must differ"
    ]
    assert is_linear(compiled.is_valid, make, 2000)


SLOW = ["[a-z]+@[a-z]+", "[a-z]*1", "(a|b)+!", "^.*.*.*x", r"^\S+@\S+\.\S+$", "(a+)+$", "a{0,999}b"]


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_that_python_would_try_again_and_again(pattern):
    """The Python engine refuses such a pattern; the native engine takes linear time."""
    with pytest.raises(SchemaUnsupported, match="it can take too long") as caught:
        compile_schema({"properties": {"q": {"pattern": pattern}}}, "python")
    assert caught.value.keyword == "pattern"
    natively = compile_schema({"pattern": pattern}, "native")
    assert lines_of(natively, "a" * 100 + "@") != []
    assert is_linear(explaining(natively), lambda size: "a" * size + "@", 5000)


@pytest.mark.parametrize("pattern", [r"^[a-z]+(-[a-z]+)*$", r"^(\w+\.)+!$", "^(?:ab|cd)*$"])
@pytest.mark.parametrize(("part", "end"), [("a", "?"), ("a-", ""), ("a.", ""), ("ab", "?")])
def test_patterns_that_are_served_take_linear_time(pattern, part, end):
    """A pattern whose choices depend on the next character is served without a limit."""
    compiled = compile_schema({"pattern": pattern}, "python")
    assert lines_of(compiled, part * 100 + end)
    assert is_linear(explaining(compiled), lambda size: part * size + end, 5000)


@pytest.mark.parametrize(
    "pattern",
    ["(?=[a-z]+@)[a-z]+@", "(?<=a*)b", r"(?:(?=a*b)a)*c", r"([a-z]+)@\1", r"^(?:a|aa)+(?!\w)!$"],
)
def test_lookarounds_natively(pattern):
    """The native engine stops a lookaround or backreference that backtracks too often."""
    compiled = compile_schema({"pattern": pattern}, "native")
    assert lines_of(compiled, "a" * 100)
    assert is_linear(explaining(compiled), lambda size: "a" * size, 2000)


@pytest.mark.parametrize("pattern", ["foo(?!bar)", r"(?<!x)foo\b", r"(f)oo(?!\1)"])
def test_a_plain_lookaround_is_found_late_in_a_text(pattern):
    """The limit is high enough for a search through an ordinary text."""
    assert compile_schema({"pattern": pattern}, "native").is_valid("a" * 4000 + " foo")


def test_a_class_with_a_slow_pattern_is_refused(python_engine):
    """Without the native engine the class statement refuses it, and says what to write."""
    _, (fault,) = read_shape(
        {"type": "object", "properties": {"q": {"type": "string", "pattern": "[a-z]+@[a-z]+"}}}
    )
    assert fault.path == ("properties", "q", "pattern")
    assert "begin it with ^, and let no repetition begin like what follows it" in fault.text


def test_common_schemas_work_without_the_native_engine(python_engine):
    """Nested, nullable and recursive objects, maps, tuples and usual patterns are served."""
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$"},
            "day": {"type": "string", "format": "date", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
            "mail": {"type": "string", "pattern": "^[^@]+@[^@]+$"},
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "at": {"type": "array", "prefixItems": [{"type": "number"}] * 2, "maxItems": 2},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}], "default": None},
            "level": {"enum": ["low", "high"]},
        },
        "required": ["id"],
        "additionalProperties": False,
    }
    assert check_schema(schema) == []
    compiled = compile_schema(schema)
    assert compiled.is_valid({"id": "a-1", "next": {"id": "b", "at": [1, 2.5], "tags": ["x"]}})
    assert describe(compiled.violations({"id": "a-1", "next": {"id": "-"}})) == [
        '/next/id: "-" does not match "^[a-z0-9]+(?:-[a-z0-9]+)*$"'
    ]
    with pytest.raises(SchemaError, match=r'cannot serve "[$]dynamicRef"'):
        compile_schema({"$dynamicRef": "#a"})
