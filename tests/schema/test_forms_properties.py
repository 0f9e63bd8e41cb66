"""Laws of the field forms, over generated declarations."""

import datetime as dt
import decimal
import enum
import uuid
from copy import deepcopy

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.schema import (
    Marker,
    Schema,
    SchemaUnsupported,
    check_schema,
    compile_schema,
    dump_value,
    field,
    read_shape,
)
from noizu_mcp.schema import fields as f

LAW = settings(max_examples=100, deadline=None)
NAMES = ("a", "b", "c", "name_1", "query")
HOSTILE = (
    *NAMES,
    '"',
    "\\",
    "{a}",
    "%s",
    "$ref",
    "id",
    "é",
    "class",
    "a-b",
    "get",
    "\n",
    "__init__",
)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = 2
    OFF = None


@attrs.frozen
class Place:
    street: str
    number: int = 3
    more: "list[Place]" = attrs.field(factory=list)


@st.composite
def twins(draw, depth=2):
    """Draw one field in both forms: annotation, options, marker, matching JSON values."""
    kinds = ["string", "integer", "number", "boolean", "enum"]
    kind = draw(st.sampled_from([*kinds, "array", "object"] if depth else kinds))
    return draw(_TWINS[kind](depth))


def _with_default(draw, options, values):
    if draw(st.booleans()):
        options["default"] = draw(values)
    if draw(st.booleans()):
        options["description"] = draw(TEXT)
    if draw(st.booleans()):
        options["examples"] = [draw(values)]
    return options


@st.composite
def _strings(draw, _depth):
    low = draw(st.integers(0, 2))
    values = st.text(st.characters(exclude_categories=("Cs",)), min_size=low, max_size=5)
    options = _with_default(draw, {"min_length": low, "max_length": 5}, values)
    return str, options, f.string(**options), values


@st.composite
def _integers(draw, _depth):
    low = draw(st.integers(-5, 5))
    values = st.integers(low, low + 9)
    options = _with_default(draw, {"min": low, "exclusive_max": low + 10}, values)
    return int, options, f.integer(**options), st.one_of(values, values.map(float))


@st.composite
def _numbers(draw, _depth):
    values = st.floats(0, 9) | st.integers(0, 9)
    options = _with_default(draw, {"min": 0, "max": 9}, values)
    return float, options, f.number(**options), values


@st.composite
def _booleans(draw, _depth):
    options = _with_default(draw, {}, st.booleans())
    return bool, options, f.boolean(**options), st.booleans()


@st.composite
def _enums(draw, _depth):
    members = draw(st.lists(st.sampled_from(["x", "y", 1, 2.5, True]), min_size=1, unique_by=repr))
    from typing import Literal

    values = st.sampled_from(members)
    options = _with_default(draw, {}, values)
    return Literal[tuple(members)], options, f.enum(*members, **options), values


@st.composite
def _arrays(draw, depth):
    annotation, inner, marker, values = draw(twins(depth - 1))
    if annotation is float or "default" in inner or "examples" in inner or len(inner):
        annotation, marker, values = int, f.integer(), st.integers() | st.just(2.0)
    items = st.lists(values, min_size=1, max_size=3)
    return list[annotation], {"min": 1, "max": 3}, f.array(marker, min=1, max=3), items


@st.composite
def _objects(draw, depth):
    # Without fields the two differ: a class drops all names, `f.object({})` keeps them.
    cls, mapping, values = draw(forms(depth - 1, least=1))
    return cls, {}, f.object(mapping), values


_TWINS = {
    "string": _strings,
    "integer": _integers,
    "number": _numbers,
    "boolean": _booleans,
    "enum": _enums,
    "array": _arrays,
    "object": _objects,
}


@st.composite
def forms(draw, depth=2, least=0):
    """Draw a Schema class, the mapping of the same fields, and matching JSON objects."""
    annotations, body, mapping, required, optional = {}, {}, {}, {}, {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=least, max_size=4, unique=True)):
        annotation, options, marker, values = draw(twins(depth))
        must = "default" not in options and draw(st.booleans())
        annotations[name] = annotation
        own = options if must or "default" in options else {**options, "required": False}
        body[name] = field(**own)
        wanted = {**marker.options, "required": True} if must else marker.options
        mapping[name] = Marker(**{**vars(marker), "options": wanted})
        (required if must else optional)[name] = values
    # Nested by its name: the class statement does not raise.
    names = {"__annotations__": annotations, "__qualname__": "Outer.Form", "__module__": __name__}
    cls = type("Form", (Schema,), {**names, **body})
    values = st.fixed_dictionaries(required, optional={**optional, "undeclared": st.integers()})
    return cls, mapping, values


def plain(value):
    """Return typed arguments as dicts, so that both forms can be compared."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if attrs.has(type(value)):
        return {name: plain(inner) for name, inner in vars(value).items()}
    return value


@pytest.mark.slow
@LAW
@given(forms(), st.data())
def test_both_forms_are_one(form, data):
    """The same fields have the same schema, with the same key order, and the same arguments."""
    cls, mapping, values = form
    typed, typed_faults = read_shape(cls)
    asdata, data_faults = read_shape(mapping)
    assert (typed_faults, data_faults) == ([], [])
    value = data.draw(values)

    assert repr(typed.schema) == repr(asdata.schema)
    assert check_schema(typed.schema) == []
    before = deepcopy(value)
    assert repr(plain(typed.build(value))) == repr(plain(asdata.build(value)))
    assert before == value


@pytest.mark.slow
@LAW
@given(forms(), st.data())
@pytest.mark.time_limit(360)
def test_arguments_survive_the_way_back(form, data):
    """A built value is dumped as a valid value that builds an equal one."""
    cls, mapping, values = form
    value = data.draw(values)
    for declared in (cls, mapping):
        shape, _ = read_shape(declared)
        assert shape.compiled.is_valid(value)
        made = shape.build(value)
        dumped = dump_value(made)
        assert shape.compiled.is_valid(dumped)
        assert made == shape.build(dumped)
        assert "undeclared" not in dumped


@pytest.mark.slow
@LAW
@given(
    forms(),
    st.data(),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXT,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
        ),
    ),
)
def test_the_engines_agree_on_forms(form, data, junk):
    """Both engines serve the schemas of forms, with the same verdicts."""
    cls, _, values = form
    shape, _ = read_shape(cls)
    native = compile_schema(shape.schema, "native")
    python = compile_schema(shape.schema, "python")
    value = data.draw(values)
    broken = {**value, data.draw(st.sampled_from(NAMES)): junk}

    for one in (value, broken, junk):
        assert native.is_valid(one) == python.is_valid(one)
        if native.is_valid(one):
            shape.build(one)


@pytest.mark.slow
@LAW
@given(
    st.dictionaries(st.sampled_from(HOSTILE), st.sampled_from([str, int, float, bool]), max_size=5),
    st.data(),
)
def test_hostile_names_are_only_names(mapping, data):
    """Any string can be the name of a field."""
    kinds = {str: TEXT, int: st.integers(), float: st.floats(allow_nan=False), bool: st.booleans()}
    value = data.draw(st.fixed_dictionaries({}, optional={n: kinds[k] for n, k in mapping.items()}))
    shape, faults = read_shape(mapping)

    assert faults == []
    made = shape.build(value)
    assert {name: value.get(name) for name in mapping} == {name: made[name] for name in mapping}
    assert hash(made) == hash(shape.build(value))


ANNOTATIONS = [
    (dt.date, st.dates()),
    (dt.datetime, st.datetimes()),
    (dt.time, st.times()),
    (uuid.UUID, st.uuids()),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
    (bytes, st.binary(max_size=5)),
    (Mode, st.sampled_from(Mode)),
    (int | str | None, st.integers() | TEXT | st.none()),
    (set[int], st.sets(st.integers(), max_size=4)),
    (tuple[int, str], st.tuples(st.integers(), TEXT)),
    (
        dict[str, list[float]],
        st.dictionaries(
            TEXT, st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=2), max_size=2
        ),
    ),
    (
        Place,
        st.recursive(
            st.builds(Place, TEXT, st.integers()),
            lambda inner: st.builds(Place, TEXT, st.integers(), st.lists(inner, max_size=2)),
            max_leaves=4,
        ),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("annotation", "values"), ANNOTATIONS, ids=lambda case: str(case)[:30])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_python_values_survive_the_wire(annotation, values, data):
    """A value of each type is dumped as JSON that both engines accept, and restored."""
    shape, faults = read_shape({"value": annotation})
    assert faults == []
    value = data.draw(values)

    dumped = dump_value({"value": value})

    assert compile_schema(shape.schema, "python").is_valid(dumped)
    assert shape.compiled.is_valid(dumped)
    made = shape.build(dumped)
    assert value == made.value


def test_what_the_python_engine_cannot_serve_is_named():
    """Only patterns outside of its subset are published by forms and refused by it."""
    shape, _ = read_shape({"a": f.string(pattern=r"\p{L}"), "b": f.number(multiple_of=0.1)})

    with pytest.raises(SchemaUnsupported) as caught:
        compile_schema(shape.schema, "python")

    assert caught.value.keyword == "pattern"
