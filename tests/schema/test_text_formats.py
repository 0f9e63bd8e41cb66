"""Types that are strings in JSON: dates, durations, paths, addresses, UUIDs, decimals, bytes."""

import dataclasses
import datetime as dt
import enum
import typing as t
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path, PurePath, PurePosixPath
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.schema import Schema, dump_value, field, read_shape

ID = "12345678-1234-5678-1234-567812345678"
# The type, its JSON, its value, and its schema.
KNOWN = [
    (Path, "a/b.txt", Path("a/b.txt"), {"type": "string"}),
    (PurePath, "a", PurePath("a"), {"type": "string"}),
    (PurePosixPath, "/a", PurePosixPath("/a"), {"type": "string"}),
    (dt.date, "2026-01-02", dt.date(2026, 1, 2), {"type": "string", "format": "date"}),
    (dt.time, "10:30:00", dt.time(10, 30), {"type": "string", "format": "time"}),
    (
        dt.datetime,
        "2026-01-02T10:30:00+00:00",
        dt.datetime(2026, 1, 2, 10, 30, tzinfo=dt.UTC),
        {"type": "string", "format": "date-time"},
    ),
    (dt.timedelta, "P1DT2H", dt.timedelta(1, 7200), {"type": "string", "format": "duration"}),
    (UUID, ID, UUID(ID), {"type": "string", "format": "uuid"}),
    (Decimal, "1.50", Decimal("1.50"), None),
    (bytes, "YQ==", b"a", {"type": "string", "contentEncoding": "base64"}),
    (IPv4Address, "10.0.0.1", IPv4Address("10.0.0.1"), {"type": "string", "format": "ipv4"}),
    (IPv6Address, "::1", IPv6Address("::1"), {"type": "string", "format": "ipv6"}),
    (IPv4Network, "10.0.0.0/8", IPv4Network("10.0.0.0/8"), {"type": "string"}),
    (IPv6Network, "fe80::/10", IPv6Network("fe80::/10"), {"type": "string"}),
]
TYPES = pytest.mark.parametrize(
    ("cls", "sent", "value", "schema"), KNOWN, ids=[cls.__name__ for cls, *_ in KNOWN]
)


def shape_of(declared, **options):
    shape, faults = read_shape(declared, **options)
    assert [fault.text for fault in faults] == []
    return shape


@TYPES
def test_its_schema_and_its_value(cls, sent, value, schema):
    """A string is parsed as the type, and dumped unchanged."""
    shape = shape_of({"x": cls})
    built, violations = shape.read({"x": sent})

    assert violations == []
    assert (built.x, type(built.x)) == (value, type(value))
    assert schema is None or shape.schema["properties"]["x"] == schema
    assert dump_value(value) == sent
    assert shape_of(cls, input=False).compiled.is_valid(sent)


@TYPES
def test_it_stands_in_every_form(cls, sent, value, schema):
    """It works in every kind of class and in data, as item, value, option, set and new type."""
    New = t.NewType("New", cls)
    parts = {
        "item": (list[cls], [sent], [value]),
        "named": (dict[str, cls], {"a": sent}, {"a": value}),
        "maybe": (cls | None, sent, value),
        "pair": (tuple[cls, int], [sent, 1], (value, 1)),
        "many": (tuple[cls, ...], [sent], (value,)),
        "unique": (set[cls], [sent], {value}),
        "fixed": (frozenset[cls], [sent], frozenset({value})),
        "new": (New, sent, value),
        "noted": (t.Annotated[cls, field(description="d")], sent, value),
        "either": (cls | int, sent, value),
    }
    given = {name: json for name, (_, json, _) in parts.items()}
    wanted = {name: made for name, (_, _, made) in parts.items()}
    notes = {name: annotation for name, (annotation, _, _) in parts.items()}
    classes = [
        type("Ours", (Schema,), {"__annotations__": notes, "__module__": __name__}),
        attrs.make_class("Attrs", {n: attrs.field(type=a) for n, a in notes.items()}),
        dataclasses.make_dataclass("Data", notes.items()),
        t.TypedDict("Typed", notes),
        notes,
    ]
    for declared in classes:
        built, violations = shape_of(declared).read(given)
        assert violations == []
        found = built if isinstance(built, dict) else {n: getattr(built, n) for n in notes}
        assert found == wanted
        assert dump_value(built) == given


@TYPES
def test_it_has_defaults(cls, sent, value, schema):
    """A default may be a value, or its text."""
    for default in (value, sent):

        class Input(Schema):
            x: cls = default

        shape = shape_of(Input)
        assert shape.build({}).x == value
        assert shape.schema["properties"]["x"]["default"] == sent


@pytest.mark.parametrize(
    ("cls", "sent", "expected"),
    [
        (dt.timedelta, "1 day", "a duration like PT1H30M"),
        (dt.timedelta, "P", "a duration like PT1H30M"),
        (dt.timedelta, "PT", "a duration like PT1H30M"),
        (dt.timedelta, "P1DT", "a duration like PT1H30M"),
        (dt.timedelta, "P1Y", "a duration like PT1H30M"),
        (dt.timedelta, "P999999999W", "a duration like PT1H30M"),
        (IPv4Address, "10.0.0.256", "an IPv4 address"),
        (IPv6Address, "10.0.0.1", "an IPv6 address"),
        (IPv4Network, "10.0.0.1/8", "an IPv4 network"),
        (IPv6Network, "x", "an IPv6 network"),
    ],
)
def test_what_is_no_such_text(cls, sent, expected):
    """An invalid text is refused in our own words."""
    built, (violation,) = shape_of({"x": cls}).read({"x": sent})

    assert built is None
    assert violation.message == f'expected {expected}, got string "{sent}"'


@given(st.timedeltas())
def test_durations_are_read_as_they_were_written(value):
    """Every timedelta has a text that is parsed as the same value."""
    text = dump_value(value)

    assert shape_of({"x": dt.timedelta}).read({"x": text})[0].x == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("P2W", dt.timedelta(weeks=2)),
        ("PT0S", dt.timedelta()),
        ("PT90M", dt.timedelta(minutes=90)),
        ("-PT1.5S", -dt.timedelta(seconds=1.5)),
        ("P1DT1H1M1.000001S", dt.timedelta(1, 3661, 1)),
    ],
)
def test_durations(text, value):
    """Weeks, fractions of a second and a sign are accepted."""
    assert shape_of({"x": dt.timedelta}).read({"x": text})[0].x == value
    assert dump_value(value) == ("P14D" if "W" in text else "PT1H30M" if "90" in text else text)


@pytest.mark.parametrize("text", ["NaN", "Infinity"])
def test_decimals_without_a_text(text):
    """NaN and infinity are not JSON, and not silently replaced by a string."""
    with pytest.raises(ValueError, match=f"JSON cannot express {text}"):
        dump_value({"price": Decimal(text)})


def test_enums_of_such_types():
    """A member is sent as the text of its value."""

    class Day(enum.Enum):
        FIRST = "2026-01-01"

    assert shape_of({"d": Day}).read({"d": "2026-01-01"})[0].d is Day.FIRST
    assert dump_value([Day.FIRST]) == ["2026-01-01"]
