"""`Schema` classes: what the class statement makes, and what it refuses."""

import typing as t
from pathlib import Path

import attrs
import pytest

from noizu_mcp import DefinitionError
from noizu_mcp.schema import Fault, Schema, dump_value, field, read_shape, to_problems
from noizu_mcp.schema import fields as f

THIS = Path(__file__).name


def line_of(text):
    """Return the number of the only line of this file that ends with a comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.endswith(f"# {text}")]
    return number


class Paging(Schema):
    """The size of a page.

    Args:
        limit: how many
    """

    limit: int = field(default=10, min=1, max=50)


class Search(Paging):
    query: str
    note: str | None


def test_instances_are_frozen_attrs_instances():
    """They are made by keyword, compared by value, and immutable; `| None` needs no default."""
    made = Search(query="q")

    assert attrs.has(Search)
    assert Search(query="q", limit=10, note=None) == made
    assert repr(made) == "Search(limit=10, query='q', note=None)"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.query = "r"
    with pytest.raises(TypeError):
        Search("q")
    with pytest.raises(TypeError):
        Search()


def test_fields_are_inherited_with_their_descriptions():
    """A subclass has the fields of its bases first, with their descriptions."""
    shape, faults = read_shape(Search)

    assert faults == []
    assert list(shape.schema["properties"]) == ["limit", "query", "note"]
    assert shape.schema["properties"]["limit"]["description"] == "how many"
    assert "description" not in shape.schema


def test_a_field_redefined_in_a_subclass():
    """The definition of the subclass is used."""

    class Wide(Paging):
        limit: int = field(default=100, max=500)

    shape, _ = read_shape(Wide)
    assert shape.schema["properties"]["limit"]["maximum"] == 500
    assert shape.build({}).limit == 100


def test_options_without_a_default():
    """required=False makes a field optional, required=True makes `| None` mandatory."""

    class Input(Schema):
        a: str = field(required=False)
        b: str | None = field(required=True)
        c: "str | None"
        d: "t.Optional[str]"
        e: t.Annotated[int | None, field(min=1)]
        f: t.Final[int] = 3

    shape, _ = read_shape(Input)

    assert shape.schema["required"] == ["b"]
    assert Input(b=None) == shape.build({"b": None})
    assert dump_value(Input(b=None)) == {"b": None, "c": None, "d": None, "e": None, "f": 3}


def test_a_class_that_stands_alone_raises_with_every_problem():
    """At module and function level one error has each problem with its line."""
    with pytest.raises(DefinitionError) as caught:

        class Input(Schema):
            limit: int = field(default=60, max=50)  # limit
            tags: list[str] = [1]  # tags
            name: str = field(  # name
                min=3
            )

    problems = caught.value.problems
    assert [p.where for p in problems] == ["Input.limit", "Input.tags", "Input.name"]
    assert [p.text for p in problems] == [
        "default 60 is above max 50; change the default or the field",
        (
            "default [1] does not fit: /0: expected string, got integer 1; change the default or"
            " the field"
        ),
        "min does not belong to string; write min_length",
    ]
    assert [line_of("limit"), line_of("tags"), line_of("name")] == [p.line for p in problems]
    assert all(p.file.endswith(THIS) for p in problems)


def test_lists_dicts_and_sets_are_defaults():
    """They are published, and every instance has its own copy."""

    class Input(Schema):
        tags: list[str] = []
        sizes: dict[str, list[int]] = field(default={"a": [1]}, description="Sizes")
        names: set[str] = {"x"}

    shape, faults = read_shape(Input)
    assert faults == []
    properties = shape.schema["properties"]
    assert [each["default"] for each in properties.values()] == [[], {"a": [1]}, ["x"]]
    first, second, built = Input(), Input(), shape.build({})
    first.tags.append("t")
    first.sizes["a"].append(2)
    first.names.clear()
    assert second == built == shape.build({}) == Input()
    assert (second.tags, second.sizes, second.names) == ([], {"a": [1]}, {"x"})


def test_a_nested_class_leaves_its_problems_to_its_user():
    """Inside of another class nothing is raised: the outer class reports the problems."""

    class Tool:
        class Input(Schema, bogus=1):
            limit: int = field(default=60, max=50)
            loose = field()
            count: int = field(factory=3)
            both: int = field(default=1, factory=int)
            data: str = f.string()

    shape, faults = read_shape(Tool.Input)

    assert shape is None
    assert [(fault.path, fault.text) for fault in faults] == [
        ((), "unknown class keyword 'bogus'; a Schema class takes none"),
        (("limit",), "default 60 is above max 50; change the default or the field"),
        (("count",), "factory must be a callable without arguments, got 3"),
        (("both",), "default and factory together: drop one"),
        (("data",), "f.string(...) is for mappings; beside an annotation write field(...)"),
        (("loose",), "field(...) without an annotation; write loose: <type> = field(...)"),
    ]
    assert {Tool.Input} == {fault.owner for fault in faults}


def test_a_field_without_annotation_in_a_class_of_its_own():
    """A missing annotation is found even in a class without other fields."""
    with pytest.raises(DefinitionError, match="without an annotation"):

        class Input(Schema):
            limit = field(min=1)


def test_names_that_cannot_be():
    """Names that differ only in underscores are the same on the wire."""

    class Tool:
        class Input(Schema):
            a: int
            _a: int
            _: int

    _, faults = read_shape(Tool.Input)

    assert [(fault.path, fault.text) for fault in faults] == [
        (("_a",), "duplicate name 'a', which 'a' has too; rename one"),
        (("_",), "the name '_' is nothing but underscores; give the field a name"),
    ]


def test_what_attrs_refuses_is_reported_too():
    """A class body that attrs refuses is reported with other problems."""

    class Tool:
        class Input(Schema):
            a: int

            def __setattr__(self, name, value):
                """Frozen classes have their own."""

    _, faults = read_shape(Tool.Input)

    assert any("cannot be made an attrs class" in fault.text for fault in faults)


def test_a_later_class_may_be_named():
    """An undefined name is looked up again when the class is used."""

    class First(Schema):
        second: "Second | None"

    _, faults = read_shape(First)
    assert "cannot find 'Second'" in faults[0].text

    class Second(Schema):
        number: int

    shape, faults = read_shape(First)
    assert faults == []
    assert First(second=Second(number=1)) == shape.build({"second": {"number": 1.0}})


def make_local():
    """Return a class whose annotation names a local class of this function."""

    class Paging(Schema):
        size: int

    class Local(Schema):
        inner: "Paging"
        more: "list[Paging] | None"

    return Local


def test_names_of_a_function_are_found_after_it_returned():
    """A local class is preferred to a global one of the same name, and stays known."""
    shape, faults = read_shape(make_local(), strict=True)

    assert faults == []
    assert list(shape.schema["properties"]["inner"]["properties"]) == ["size"]


def test_a_class_is_read_once():
    """The shape of a module-level class is made by its statement."""
    assert read_shape(Search)[0] is read_shape(Search)[0]
    assert read_shape(Search, strict=True)[0] is not read_shape(Search)[0]


T = t.TypeVar("T")


class Page(Schema, t.Generic[T]):
    items: list[T]


def test_a_generic_schema_class():
    """It is complete once its parameter has an argument."""
    shape, faults = read_shape(Page[int])

    assert faults == []
    assert Page(items=[1]) == shape.build({"items": [1.0]})


def test_problems_name_lines_of_text_and_of_code():
    """Faults become problems with file and line where these are known."""
    at_class, at_field, in_text, nowhere = to_problems(
        [
            Fault((), "a", Paging),
            Fault(("deep", "limit"), "b", Paging),
            Fault((), "c", None, 2, 3),
            Fault(("x", 1), "d"),
        ],
        "Tool.Input",
    )

    assert at_class.line is not None
    assert at_class.line < at_field.line
    assert (
        in_text.where,
        in_text.text,
        in_text.line,
    ) == ("Tool.Input", "c (line 2, column 3 of the text)", None)
    assert str(nowhere) == "Tool.Input.x.1: d"
