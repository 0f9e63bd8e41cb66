"""A field: what a declaration says about it beside its type, and what that means for the type.

A marker keeps its options as they were written. Nothing is checked when it is made, so that a class
body never raises half-way: the reader of the class checks the options, turns them into keywords of
JSON Schema, and reports everything that is wrong at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypedDict, TypeVar, Unpack, overload

import attrs

from ..jsonschema._keywords import is_number
from ._nodes import (
    MISSING,
    Array,
    Choice,
    Format,
    Map,
    Node,
    Object,
    Scalar,
    Tuple,
    Union,
)

T = TypeVar("T")


@attrs.frozen(eq=False)
class Marker:
    """The options of a field, unchecked.

    Attributes:
        maker: The name of the function that made it, for messages: `field`, `f.string`.
        options: The keyword arguments, known or unknown.
        misplaced: The positional arguments, where the maker takes none.
        kind: The type in the data form; None in the typed form, where the annotation is the type.
        inner: The values of `f.enum`, the fields of `f.object`, the item of `f.array`.
    """

    maker: str
    options: dict[str, Any]
    misplaced: tuple[Any, ...] = ()
    kind: str | None = None
    inner: Any = MISSING

    def __mcp_json__(self) -> Any:
        """Refuse to be dumped: a field in a JSON Schema is a mistake."""
        raise TypeError(f"{self.maker}(...) is a field, which stands in a mapping of fields only")


class CommonOptions(TypedDict, total=False):
    """Options of every field."""

    required: bool
    title: str
    description: str
    examples: Sequence[Any]
    header: str


class ConstraintOptions(TypedDict, total=False):
    """Options that bound the values of a type."""

    min: float
    max: float
    exclusive_min: float
    exclusive_max: float
    multiple_of: float
    min_length: int
    max_length: int
    pattern: str
    format: str
    unique: bool


class FieldOptions(CommonOptions, ConstraintOptions, total=False):
    """Options of `field`."""

    titles: Mapping[Any, str]


class ArgumentOptions(ConstraintOptions, total=False):
    """Options of an argument of a prompt, or a variable of a template."""

    required: bool
    title: str
    description: str
    examples: Sequence[Any]
    complete: Any


@overload
def field(*, default: T, **options: Unpack[FieldOptions]) -> T: ...
@overload
def field(*, factory: Callable[[], T], **options: Unpack[FieldOptions]) -> T: ...
@overload
def field(**options: Unpack[FieldOptions]) -> Any: ...
def field(*misplaced: Any, **options: Any) -> Any:
    """Declare the options of a field: after the `=`, or inside `Annotated[...]`.

    Never raises. Wrong options are reported by the class, or the function, that uses the field.

    Args:
        *misplaced: Must be empty; a positional argument is reported like a wrong option.
        **options: `default`, or `factory` (a callable without arguments) for a mutable default;
            `required` (by default, a field without a default and without `| None` is required);
            `description` (str); `examples` (list); `header` (str, mirrored as the HTTP header
            `Mcp-Param-<header>`, 2026-07-28, transports). Numbers: `min`, `max`, `exclusive_min`,
            `exclusive_max`, `multiple_of`. Text: `min_length`, `max_length` (characters),
            `pattern` (a regular expression of ECMA-262), `format`. Lists: `min`, `max` (items),
            `unique`. Only the forms of `ctx.elicit` show `title` and `titles` (the text for each
            choice of an enum, by value).

    Returns:
        A marker that the class statement reads. Type checkers see the type of the field.
    """
    return Marker("field", options, misplaced)


@overload
def argument(*, default: T, **options: Unpack[ArgumentOptions]) -> T: ...
@overload
def argument(**options: Unpack[ArgumentOptions]) -> Any: ...
def argument(*misplaced: Any, **options: Any) -> Any:
    """Declare the options of a prompt's argument, or of a variable of a resource template.

    Never raises, as `field` does not.

    Args:
        *misplaced: Must be empty; a positional argument is reported like a wrong option.
        **options: The options of `field` except `header` and `titles`; `title` is the name that
            people see; `complete` is a list of completions, or an async function `(prefix, ctx)`
            that returns them.

    Returns:
        A marker that the class statement reads. Type checkers see the type of the argument.
    """
    return Marker("argument", options, misplaced)


_NUMBER = {
    "min": "minimum",
    "max": "maximum",
    "exclusive_min": "exclusiveMinimum",
    "exclusive_max": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
#: The keyword of each option, by family of types.
KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "string": {
        "min_length": "minLength",
        "max_length": "maxLength",
        "pattern": "pattern",
        "format": "format",
    },
    "integer": _NUMBER,
    "number": _NUMBER,
    "array": {"min": "minItems", "max": "maxItems", "unique": "uniqueItems"},
    "object": {"min": "minProperties", "max": "maxProperties"},
}
_CONSTRAINTS = frozenset(option for table in KEYWORDS.values() for option in table)
# Options of the type, not of the field.
_OF_TYPE = _CONSTRAINTS | {"titles"}
_COMMON = frozenset({"required", "default", "description", "examples", "header", "title", "titles"})
# Options beside the constraints, where a maker does not take the common ones alone.
_OWN = {
    "field": _COMMON | {"factory"},
    "argument": (_COMMON | {"complete"}) - {"header", "titles"},
}


def _is_titles(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


# The test of an option's value, and its name in messages.
_Takes = tuple[Callable[[Any], bool], str]
_A_NUMBER: _Takes = (is_number, "a number")
_A_COUNT: _Takes = (
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
    "a whole number, 0 or more",
)
_OPTION_TAKES: Mapping[str, _Takes] = {
    "required": (_is_flag, "True or False"),
    "description": (_is_text, "text"),
    "examples": (lambda value: isinstance(value, (list, tuple)), "a list"),
    "header": (_is_text, "text"),
    "factory": (callable, "a callable without arguments"),
    "title": (_is_text, "text"),
    "titles": (_is_titles, "a mapping of choices to text"),
}
# By keyword, since `min` counts items for a list and is any number for a number.
_KEYWORD_TAKES: Mapping[str, _Takes] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _A_NUMBER),
    "multipleOf": (lambda value: is_number(value) and value > 0, "a number above 0"),
    "pattern": (_is_text, "text"),
    "format": (_is_text, "text"),
    "uniqueItems": (_is_flag, "True or False"),
}
_BOUNDS = (("min", "max"), ("min_length", "max_length"))


def marker_problems(marker: Marker) -> list[str]:
    """Return the problems of a marker, whatever its type: unknown options, wrong values."""
    problems = [
        f"{marker.maker}(...) takes keyword arguments only, got {value!r}"
        for value in marker.misplaced
    ]
    options = marker.options
    known = _OWN.get(marker.maker, _COMMON) | _CONSTRAINTS
    for option, value in options.items():
        if option not in known:
            # Most programs have no mistake, and need none of the advice.
            from ._mistakes import unknown_option

            problems.append(unknown_option(marker, option, known))
        elif option in _OPTION_TAKES and value is not None and not _OPTION_TAKES[option][0](value):
            problems.append(f"{option} must be {_OPTION_TAKES[option][1]}, got {value!r}")
    if options.get("required") and {"default", "factory"} & options.keys():
        problems.append("required=True with a default: drop one, an absent field gets its default")
    if {"default", "factory"} <= options.keys():
        problems.append("default and factory together: drop one")
    return problems


def constrain(node: Node, options: Mapping[str, Any]) -> list[str]:
    """Put the options that bound values on a node, or on those types of a union that take them.

    Args:
        node: The type of the field.
        options: All options of the field; those of the field itself are left alone.

    Returns:
        The problems: an option of another type, a value that its keyword cannot have.
    """
    if not options.keys() & _OF_TYPE:
        return []
    problems: list[str] = []
    targets = list(_targets(node))
    for option, value in options.items():
        if option in _CONSTRAINTS and value is not None:
            problems.extend(_constrain(targets, option, value))
    titles = options.get("titles")
    if titles is not None and _is_titles(titles):
        problems.extend(_title_choices(node, titles))
    for target in targets:
        names = KEYWORDS.get(family(target), {})
        for low, high in _BOUNDS:
            least = target.keywords.get(names.get(low, ""))
            most = target.keywords.get(names.get(high, ""))
            if least is not None and most is not None and least > most:
                problems.append(f"{low} {least} is above {high} {most}: nothing fits")
    return problems


def _constrain(targets: Sequence[Node], option: str, value: Any) -> Iterator[str]:
    takers = [target for target in targets if option in KEYWORDS.get(family(target), ())]
    if not takers:
        from ._mistakes import misfit

        yield misfit(list(dict.fromkeys(map(family, targets))), option)
    for target in takers:
        keyword = KEYWORDS[family(target)][option]
        holds, wanted = _KEYWORD_TAKES.get(keyword, _A_COUNT)
        if not holds(value):
            yield f"{option} must be {wanted}, got {value!r}"
            return
        if keyword != "uniqueItems" or value:
            target.keywords[keyword] = value


def _targets(node: Node) -> Iterator[Node]:
    """Yield a node, or the types of a union."""
    if isinstance(node, Union):
        for option in node.options:
            yield from _targets(option)
    else:
        yield node


_FAMILIES = {
    Choice: "enum",
    Array: "array",
    Tuple: "tuple",
    Map: "object",
    Object: "object with fields",
}


def family(node: Node) -> str:
    """Return the name of a node's type: a row of `KEYWORDS`, or a name for messages."""
    if isinstance(node, Scalar):
        return node.cast.name if isinstance(node.cast, Format) else node.kind
    return _FAMILIES.get(type(node), "Any")


# Titles are names for people. Only forms show them: a tool schema is read by a model, for which
# they are noise.

#: The title of one field, and the titles of its choices by their JSON values.
Titles = tuple[str | None, Mapping[Any, str]]


def form_titles(node: Node) -> dict[str, Titles]:
    """Return the titles of those fields of the root that have any, by name."""
    found: dict[str, Titles] = {}
    for field in node.fields if isinstance(node, Object) else ():
        choices = next((each.titles for each in _choices(field.node) if each.titles), {})
        if field.title is not None or choices:
            found[field.name] = (field.title, choices)
    return found


def _title_choices(node: Node, titles: Mapping[Any, str]) -> list[str]:
    """Put titles on an enum, on a list of one, or on the enums of a union.

    Returns:
        The problems: a title for a value that is not a choice, or no choices at all.
    """
    named = {key.value if isinstance(key, Enum) else key: text for key, text in titles.items()}
    found = list(_choices(node))
    for choice in found:
        choice.titles = named
    # Null is the absence of a choice, which a form cannot show.
    known = [[value for value in choice.values if value is not None] for choice in found]
    strangers = [
        (key, values)
        for values in known
        for key in named
        if not any(type(value) is type(key) and value == key for value in values)
    ]
    if found and not strangers:
        return []
    from ._mistakes import titles_problems

    return titles_problems(strangers)


def _choices(node: Node) -> Iterator[Choice]:
    if isinstance(node, Choice):
        yield node
    elif isinstance(node, (Union, Array)):
        for child in node.children():
            yield from _choices(child)
