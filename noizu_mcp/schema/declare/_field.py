"""`field(...)` and `argument(...)`: what a class body says about a field besides its type.

A marker only keeps what it was given. Nothing is checked here, so that a class body never raises
half-way; the reader of the class reports everything that is wrong at once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict, TypeVar, Unpack, overload

import attrs

T = TypeVar("T")


class Missing:
    """The type of `MISSING`, the default of a field that has none; None is a default."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


@attrs.frozen(eq=False)
class Marker:
    """A field as it was declared, unchecked.

    Attributes:
        maker: The function that made it, as written in messages: `field`, `f.string`.
        options: The keyword arguments, known or not.
        misplaced: Positional arguments that the maker does not take.
        kind: The field's type in the data form; None in the typed form, where the annotation says.
        inner: Data form only: values of an enum, fields of an object, item of an array.
    """

    maker: str
    options: dict[str, Any]
    misplaced: tuple[Any, ...] = ()
    kind: str | None = None
    inner: Any = MISSING


class CommonOptions(TypedDict, total=False):
    """Options of every field."""

    required: bool
    title: str
    description: str
    examples: Sequence[Any]
    header: str


class ConstraintOptions(TypedDict, total=False):
    """Options that a type takes: numbers, text, lists."""

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
    """Options of a typed field: the common ones and those that its type takes."""

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
    """Say more of a field than its type; inside `Annotated[...]` for any class or parameter.

    Never raises: what is wrong is reported by the class that uses the field.

    Args:
        *misplaced: Nothing; kept only to be reported.
        **options: `default`, or `factory` (a callable without arguments) for a mutable one;
            `required` (default: no default and not `| None`), `description`, `examples`,
            `header` (mirrored as the HTTP header `Mcp-Param-<header>`), numbers: `min`, `max`,
            `exclusive_min`, `exclusive_max`, `multiple_of`; text: `min_length`, `max_length`,
            `pattern`, `format`; lists: `min`, `max` (items), `unique`; for the forms of
            `ctx.elicit`: `title`, and `titles` for the choices of an enum by value.

    Returns:
        A marker that the class statement reads; typed as the field so that checkers agree.
    """
    return Marker("field", options, misplaced)


@overload
def argument(*, default: T, **options: Unpack[ArgumentOptions]) -> T: ...
@overload
def argument(**options: Unpack[ArgumentOptions]) -> Any: ...
def argument(*misplaced: Any, **options: Any) -> Any:
    """Describe an argument of a prompt; like `field`, without `header` and `titles`.

    Args:
        *misplaced: Nothing; kept only to be reported.
        **options: Those of `field` that its type takes, `title`: its name for people, and
            `complete`: a list of completions, or an async function `(prefix, ctx)` that returns
            them.

    Returns:
        A marker that the class statement reads; typed as the argument.
    """
    return Marker("argument", options, misplaced)
