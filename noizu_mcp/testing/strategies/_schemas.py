"""`from_schema` and `violating`: strategies for any JSON Schema."""

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, overload

from ..._value import JSON
from ...schema import Document, compile_schema
from ._violation import Violation

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: What is said where Hypothesis is not installed.
NEEDS: Final = "strategies need hypothesis: pip install 'noizu-mcp[testing]'"


def load_checked() -> ModuleType:
    """Load the files that make strategies: the names of the test kit can be imported without.

    Raises:
        ImportError: Hypothesis is not installed.
    """
    try:
        from . import _checked
    except ModuleNotFoundError as error:
        raise ImportError(NEEDS) from error
    return _checked


def from_schema(
    schema: Mapping[str, JSON] | bool,
    *,
    formats: "bool | Mapping[str, SearchStrategy[str]]" = False,
    documents: Mapping[str, JSON] | None = None,
) -> "SearchStrategy[JSON]":
    """Return the strategy for the values that fit a JSON Schema.

    Each value is checked by the schema engine before a test gets it. Values at a limit are likely:
    the least and the greatest number, size and length, empty ones, integers that exceed 32, 53 and
    64 bits, and characters outside the Basic Multilingual Plane.

    Args:
        schema: A schema of 2020-12, or of 2019-09, draft 7, 6 or 4 if its `$schema` says so.
        formats: `format` is an annotation, so by default any text will do. True: texts have the
            formats of the specification (2020-12 validation section 7.3); a mapping adds strategies
            for other formats, or replaces some.
        documents: Other schema documents by their URI, for `$ref`.

    Returns:
        The strategy; the values are plain JSON.

    Raises:
        SchemaError: The schema is not valid.
        Unsatisfiable: No value fits; now, or when a value is drawn.
        ImportError: Hypothesis is not installed.
    """
    loaded = load_checked()
    compiled = compile_schema(schema, documents=documents)
    document = Document(compiled.schema, documents)
    made: SearchStrategy[JSON] = loaded.checked(
        document, "is", compiled.is_valid, loaded.select_formats(formats)
    )
    return made


@overload
def violating(
    schema: Mapping[str, JSON] | bool,
    labelled: Literal[False] = False,
    *,
    formats: "bool | Mapping[str, SearchStrategy[str]]" = False,
    documents: Mapping[str, JSON] | None = None,
) -> "SearchStrategy[JSON]": ...
@overload
def violating(
    schema: Mapping[str, JSON] | bool,
    labelled: Literal[True],
    *,
    formats: "bool | Mapping[str, SearchStrategy[str]]" = False,
    documents: Mapping[str, JSON] | None = None,
) -> "SearchStrategy[Violation]": ...
def violating(
    schema: Mapping[str, JSON] | bool,
    labelled: bool = False,
    *,
    formats: "bool | Mapping[str, SearchStrategy[str]]" = False,
    documents: Mapping[str, JSON] | None = None,
) -> "SearchStrategy[JSON]":
    """Return the strategy for near misses: values that break one keyword of a JSON Schema.

    The other keywords are fitted, unless the schema does not let a value break one alone. Each
    value is checked by the schema engine before a test gets it.

    Args:
        schema: As for `from_schema`.
        labelled: True to draw `Violation(value, keyword, path)` instead of the value alone.
        formats: As for `from_schema`, for the texts that fit; no text breaks a format.
        documents: As for `from_schema`.

    Returns:
        The strategy.

    Raises:
        SchemaError: The schema is not valid.
        Unsatisfiable: No value breaks the schema; now, or when a value is drawn.
        ImportError: Hypothesis is not installed.
    """
    loaded = load_checked()
    compiled = compile_schema(schema, documents=documents)
    document = Document(compiled.schema, documents)
    made: SearchStrategy[JSON] = loaded.checked(
        document,
        "near",
        lambda value: not compiled.is_valid(value),
        loaded.select_formats(formats),
    )
    if labelled:
        made = loaded.labelled(made, compiled.violations)
    return made
