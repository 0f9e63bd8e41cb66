"""Mistakes of users of other libraries: each is refused, with the correction."""

import dataclasses
import datetime as dt
import enum
import functools
import re
import typing as t

import attrs
import pydantic
import pytest

from noizu_mcp import DefinitionError, Tool
from noizu_mcp.schema import Schema, argument, field, read_shape
from noizu_mcp.schema import fields as f


class Scope(enum.Enum):
    ALL = "all"


class Level(enum.IntEnum):
    LOW = 1


class Point(t.NamedTuple):
    x: int


class Lazy:
    """A descriptor of the author's own."""

    def __get__(self, instance, owner):
        return 3


class Paging(Schema):
    limit: int = 10
    scope: "Scope | None" = None


def faults_of(declared):
    """Return the faults of an invalid form, as `path: text`."""
    shape, faults = read_shape(declared)
    assert shape is None
    return [f"{'.'.join(map(str, fault.path))}: {fault.text}" for fault in faults]


def class_with(name, value, base=Schema):
    """Return a class that is nested by its name, with one unannotated value."""
    bases = (base,) if base is not None else ()
    body = {name: value, "__qualname__": "Outer.Input", "__module__": __name__}
    return type("Input", bases, body)


NO_ANNOTATION = {
    "integer": (3, "a: int = 3"),
    "text": ("x", "a: str = 'x'"),
    "float": (0.5, "a: float = 0.5"),
    "boolean": (True, "a: bool = True"),
    "null": (None, "a: <type> | None = None"),
    "list": ([1], "a: list[<type>] = field(factory=list)"),
    "mapping": ({}, "a: dict[<type>] = field(factory=dict)"),
    "set": ({1}, "a: set[<type>] = field(factory=set)"),
    "tuple": ((1, 2), "a: tuple = (1, 2)"),
    "type": (int, "a: int"),
    "generic type": (list[str], "a: list[str]"),
    "union": (int | None, "a: int | None"),
    "choices": (t.Literal["x"], "a: Literal['x']"),
    "member of an enum": (Scope.ALL, "a: Scope = Scope.ALL"),
    "member of an enum of numbers": (Level.LOW, "a: Level = Level.LOW"),
    "bytes": (b"x", "a: bytes = …"),
    "date": (dt.date(2026, 7, 28), "a: date = …"),
    "named tuple": (Point(1), "a: Point = …"),
    "object": (re.compile("x"), "a: Pattern = …"),
    "frozen set": (frozenset(), "a: frozenset = …"),
}


@pytest.mark.parametrize("base", [Schema, None], ids=["Schema", "plain"])
@pytest.mark.parametrize(("value", "hint"), NO_ANNOTATION.values(), ids=NO_ANNOTATION)
def test_a_value_without_annotation_is_refused(value, hint, base):
    """It would not be a field, without any notice."""
    (line,) = faults_of(class_with("a", value, base))

    assert line == (
        f"a: has no annotation, so that it is not a field; write {hint},"
        " or annotate it with ClassVar if it is a constant"
    )


def test_a_number_under_a_name_with_a_capital_is_refused():
    """Only a name in capitals marks a constant; a number under another name looks like a field."""
    (line,) = faults_of(class_with("Limit", 3))

    assert "write Limit: int = 3" in line


def test_a_class_that_stands_alone_is_refused():
    """The statement raises with the line."""
    with pytest.raises(DefinitionError, match="write a: int = 3") as caught:

        class Input(Schema):
            b: int
            a = 3

    (problem,) = caught.value.problems
    assert problem.where == "Input.a"
    assert problem.line is not None


def test_a_plain_class_inside_a_tool_is_refused():
    """It is reported with everything else that is wrong in the tool."""
    with pytest.raises(DefinitionError, match=r"Add\.Input\.a: has no annotation.*a: int = 3"):

        class Add(Tool):
            """Add."""

            class Input:
                a = 3

            def call(self, args):
                """Return nothing."""


def test_an_inherited_field_keeps_its_annotation():
    """A new default for a field of a base needs the annotation again."""

    class Outer:
        class Wide(Paging):
            limit = 100
            scope = Scope.ALL

    limit, scope = faults_of(Outer.Wide)

    assert "write limit: int = 100" in limit
    assert "write scope: Scope | None = Scope.ALL" in scope


def test_constants_and_members_are_left_alone():
    """Constants and members are not mistaken for fields."""

    class Outer:
        class Input(Schema):
            MAX = 50
            DEFAULT_SCOPE = Scope.ALL
            _hidden = 3
            __dunder__ = 4
            kind: t.ClassVar[str] = "x"
            COMPILED = re.compile("x")
            Default = Scope.ALL
            Alias = int
            Names = list[str]
            shout = str.upper
            length = len
            lazy = Lazy()
            import math

            class Inner:
                x = 3

            class Color(enum.Enum):
                RED = 1

            limit: int = field(default=10, max=MAX)

            def method(self):
                return self.limit

            @property
            def double(self):
                return self.limit * 2

            @functools.cached_property
            def triple(self):
                return self.limit * 3

            @classmethod
            def make(cls):
                return cls()

            @staticmethod
            def zero():
                return 0

            short = lambda self: self.limit  # noqa: E731
            part = functools.partial(max, 1)

    shape, faults = read_shape(Outer.Input)

    assert faults == []
    assert list(shape.schema["properties"]) == ["limit"]
    assert shape.build({}).double == 20


def test_other_classes_follow_their_own_rules():
    """Attrs and dataclasses ignore such attributes, as documented."""

    @attrs.define
    class Attrs:
        x: int
        a = 3

    @dataclasses.dataclass
    class Data:
        x: int
        a = 3

    for cls in (Attrs, Data):
        shape, faults = read_shape(cls)
        assert faults == []
        assert list(shape.schema["properties"]) == ["x"]


def marked(**options):
    """Return a nested class with one integer field."""
    return type(
        "Input",
        (Schema,),
        {"__annotations__": {"a": int}, "a": field(**options), "__qualname__": "Outer.Input"},
    )


WORDS = {
    "ge": "min",
    "gt": "exclusive_min",
    "le": "max",
    "lt": "exclusive_max",
    "minimum": "min",
    "maximum": "max",
    "exclusive_minimum": "exclusive_min",
    "exclusiveMaximum": "exclusive_max",
    "multipleOf": "multiple_of",
    "min_items": "min",
    "max_items": "max",
    "minItems": "min",
    "minLength": "min_length",
    "max_len": "max_length",
    "unique_items": "unique",
    "regex": "pattern",
    "default_factory": "factory",
    "example": "examples=[...]",
    "desc": "description",
    "help": "description",
    "doc": "description",
}


@pytest.mark.parametrize(("word", "ours"), WORDS.items(), ids=WORDS)
def test_words_of_other_libraries_are_answered_with_ours(word, ours):
    """For `field(ge=1)` the error says: write min."""
    assert f"a: field has no option {word!r}; write {ours}" in faults_of(marked(**{word: 1}))


SENTENCES = {
    "alias": "a field is sent by its own name",
    "const": "Literal[...]",
    "enum": "Literal[...]",
    "choices": "Literal[...]",
    "nullable": "| None",
    "optional": "required=False",
    "type": "annotation",
    "json_schema_extra": "input_schema",
    "validator": "attrs class",
    "converter": "attrs class",
    "init": "leave it out",
    "frozen": "leave it out",
}


@pytest.mark.parametrize(("word", "hint"), SENTENCES.items(), ids=SENTENCES)
def test_what_has_no_word_here_is_explained(word, hint):
    """For options without a counterpart the error says what to do instead."""
    (line,) = faults_of(marked(**{word: 1}))

    assert line.startswith(f"a: field has no option {word!r}; ")
    assert hint in line


IN_DATA = {
    "gt": (f.integer(gt=0), "f.integer has no option 'gt'; write exclusive_min"),
    "regex": (f.string(regex="x"), "f.string has no option 'regex'; write pattern"),
    "min_items": (f.array(str, min_items=1), "f.array has no option 'min_items'; write min"),
    "enum": (f.string(enum=["x"]), 'write f.enum("plain", "loud")'),
    "values": (f.enum(values=["x"]), 'write f.enum("plain", "loud")'),
    "items": (f.array(items=str), "write f.array(f.string())"),
    "item": (f.array(item=str), "write f.array(f.string())"),
    "properties": (f.object(properties={}), "write f.object({...})"),
    "fields": (f.object(fields={}), "write f.object({...})"),
    "factory": (f.array(str, factory=list), "write default="),
    "default_factory": (f.array(str, default_factory=list), "write default="),
    "positional": (f.array(str, int), "takes keyword arguments only, got <class 'int'>"),
    "twice": (f.array(str, item=int), "f.array has no option 'item'"),
}


@pytest.mark.parametrize(("marker", "text"), IN_DATA.values(), ids=IN_DATA)
def test_words_of_other_libraries_in_data(marker, text):
    """The data form has the same errors, and never Python's own TypeError."""
    assert any(text in line for line in faults_of({"a": marker}))


def test_an_argument_answers_alike():
    """`argument` has its own options."""

    class Outer:
        class Arguments(Schema):
            a: str = argument(desc="x", suggestions=["y"])

    assert faults_of(Outer.Arguments) == [
        "a: argument has no option 'desc'; write description",
        "a: argument has no option 'suggestions'; write complete",
    ]


def test_an_unknown_option():
    """The error suggests the nearest option, or lists all of them."""
    near, far = faults_of({"a": f.string(requird=True), "b": f.string(bogus=1)})

    assert near == "a: unknown option 'requird' of f.string; did you mean 'required'?"
    assert far.startswith("b: unknown option 'bogus' of f.string; known: default, description,")


FOREIGN = {
    "pydantic": (pydantic.Field(ge=1), "pydantic's Field(...) is not read here; write field(...)"),
    "attrs": (attrs.field(default=1), "attrs.field(...) is not read here; write field(...)"),
    "dataclasses": (
        dataclasses.field(default=1),
        "dataclasses.field(...) is not read here; write field(...)",
    ),
}


@pytest.mark.parametrize(("value", "text"), FOREIGN.values(), ids=FOREIGN)
def test_a_field_of_another_library(value, text):
    """In a Schema class only field(...) has a meaning, with or without an annotation."""
    body = {"__annotations__": {"a": int}, "a": value, "__qualname__": "Outer.Input"}
    annotated = type("Input", (Schema,), body)

    assert [line.partition(";")[0] for line in faults_of(annotated)] == [
        f"a: {text.partition(';')[0]}"
    ]
    assert any(text in line for line in faults_of(annotated))
    assert any("write a: <type> = field(...)" in line for line in faults_of(class_with("a", value)))


def test_field_of_another_library_inside_annotated():
    """Its options would be lost silently."""

    class Outer:
        class Input(Schema):
            a: t.Annotated[int, dataclasses.field(default=1)] = 3

    (line,) = faults_of(Outer.Input)

    assert line.startswith("a: dataclasses.field(...) is not read here; write field(...)")


def test_a_field_of_the_data_form_without_annotation():
    """The error for a class advises `field`, with the type before it."""
    (line,) = faults_of(class_with("a", f.integer(min=1)))

    assert line == "a: f.integer(...) is for mappings; in a class write a: int = field(...)"
