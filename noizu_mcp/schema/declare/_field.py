"""`field(...)` and `argument(...)`: the options that a declaration gives a field beside its type.

A marker keeps the options as they were written. Nothing is checked when it is made, so that a class
body never raises half-way: the class that uses the field reports everything that is wrong at once.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from inspect import signature
from typing import Any, TypedDict, TypeVar, Unpack, overload

from ..._value import Frozen
from ._nodes import MISSING

T = TypeVar("T")


class Marker(Frozen):
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
    misplaced: tuple[Any, ...]
    kind: str | None
    inner: Any

    def __init__(
        self,
        maker: str,
        options: dict[str, object],
        misplaced: tuple[object, ...] = (),
        kind: str | None = None,
        inner: object = MISSING,
    ) -> None:
        super().__init__(maker=maker, options=options, misplaced=misplaced, kind=kind, inner=inner)

    def __repr__(self) -> str:
        options = (f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.maker}({', '.join((*map(repr, self.misplaced), *options))})"

    def __mcp_json__(self) -> object:
        """Refuse to be dumped: a field in a JSON Schema is a mistake."""
        raise TypeError(f"{self.maker}(...) is a field, and belongs in a mapping of fields only")


def is_field_info(value: object) -> bool:
    """Tell if a value was made by `pydantic.Field`."""
    cls = type(value)
    return (cls.__module__, cls.__qualname__) == ("pydantic.fields", "FieldInfo")


def fill_defaults(function: Any) -> None:
    """Let direct calls of a function use the defaults in `field(default=…)`, as Python's own.

    A parameter whose field has no default, or makes a new one for each call, must then be passed,
    unless one before it has a default. The signature stays as it was written: every class that
    inherits the function reads the markers in it.

    Args:
        function: The function, without anything around it.
    """
    written = getattr(function, "__defaults__", None) or ()
    by_name = getattr(function, "__kwdefaults__", None) or {}
    if not any(map(_is_marker, (*written, *by_name.values()))):
        return
    function.__signature__ = signature(function)
    defaults = list(map(_direct_default, written))
    while defaults and defaults[0] is MISSING:
        del defaults[0]
    function.__defaults__ = tuple(
        before if default is MISSING else default
        for before, default in zip(written[-len(defaults) :], defaults, strict=False)
    )
    filled = {name: _direct_default(value) for name, value in by_name.items()}
    function.__kwdefaults__ = {
        name: default for name, default in filled.items() if default is not MISSING
    }


def _is_marker(value: object) -> bool:
    return isinstance(value, Marker) or is_field_info(value)


def _direct_default(value: Any) -> Any:
    """Return the default of a parameter in Python; MISSING for a marker without a default."""
    if isinstance(value, Marker):
        return deepcopy(value.options["default"]) if "default" in value.options else MISSING
    if is_field_info(value):
        has_none = value.is_required() or value.default_factory is not None
        return MISSING if has_none else deepcopy(value.default)
    return value


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

    titles: Mapping[object, str]


class ArgumentOptions(ConstraintOptions, total=False):
    """Options of an argument of a prompt, or a variable of a template."""

    required: bool
    title: str
    description: str
    examples: Sequence[object]
    complete: object


@overload
def field(*, default: T, **options: Unpack[FieldOptions]) -> T: ...
@overload
def field(*, factory: Callable[[], T], **options: Unpack[FieldOptions]) -> T: ...
@overload
def field(**options: Unpack[FieldOptions]) -> Any: ...
def field(*misplaced: object, **options: object) -> Any:
    """Declare the options of a field in a class or a signature: after `=`, or in `Annotated`.

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
def argument(*misplaced: object, **options: object) -> Any:
    """Declare the options of an argument of a prompt, or a variable of a resource template.

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
