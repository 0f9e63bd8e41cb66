"""One way to compile a JSON Schema, whichever engine does it."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

from ..._errors import SchemaError, SchemaUnsupported
from ..jsonschema._bounds import MAX_TRUSTED_DEPTH, broken_caps, is_deeper
from ..jsonschema._violation import Violation
from ._validator import Judge, MatchPattern

EngineName = Literal["auto", "native", "python"]


class CompiledSchema(NamedTuple):
    """A JSON Schema, ready to judge values.

    Attributes:
        schema: The schema as it was given; it is never changed.
        engine: What judges: "native" or "python".
        is_valid: Tells if a value fits. Never raises, never changes the value. What is not JSON,
            such as a lone surrogate that a keyword looks at, does not fit, nor does a value nested
            deeper than 128 levels if the schema is recursive.
        violations: Returns the violations of a value, the first 100 of more, `[]` exactly if it
            fits. Never raises.
    """

    schema: Mapping[str, Any] | bool
    engine: str
    is_valid: Callable[[Any], bool]
    violations: Callable[[Any], list[Violation]]


def compile_schema(
    schema: Mapping[str, Any] | bool,
    engine: EngineName = "auto",
    documents: Mapping[str, Any] | None = None,
    *,
    trusted: bool = True,
) -> CompiledSchema:
    """Compile a JSON Schema: 2020-12 unless `$schema` says otherwise.

    Nothing is ever fetched (spec 2026-07-28, basic: `$ref`), and `format` is an annotation.

    Args:
        schema: The schema, made of plain JSON types.
        engine: "native" is jsonschema-rs, which serves everything; "python" serves a large part of
            2020-12 and refuses the rest; "auto" is the native one if it is installed.
        documents: Other schema documents by their URI, for `$ref`.
        trusted: False for a schema that came from a peer: limits on size, depth and cost apply, and
            the Python engine refuses it.

    Raises:
        SchemaError: The schema is not valid, refers to what is not there, or breaks a limit.
        SchemaUnsupported: The engine cannot serve the schema; the keyword is named. Or "native"
            was asked for, and is not installed.
        ValueError: There is no such engine.
    """
    plain = _plain(schema)
    _check_limits(plain, trusted=trusted)
    used, judge = _compile(engine, plain, documents or {}, trusted=trusted)
    return CompiledSchema(schema, used, judge.is_valid, judge.violations)


@cache
def has_native() -> bool:
    """Tell if the native engine is installed; it is loaded to find out."""
    try:
        import_module("._native", __package__)
    except ImportError:
        return False
    return True


def pattern_compiler(engine: EngineName) -> MatchPattern:
    """Return what compiles a regular expression as an engine does; it raises ValueError."""
    if _is_native(engine):
        from ._native import match_pattern

        return match_pattern
    from ._regex import match_pattern as match_in_python

    return match_in_python


def _is_native(engine: str) -> bool:
    if engine not in ("auto", "native", "python"):
        raise ValueError(f'engine is "auto", "native" or "python", not {engine!r}')
    if engine == "native" and not has_native():
        raise SchemaUnsupported(
            "the native engine is not installed: pip install jsonschema-rs", "engine"
        )
    return engine != "python" and has_native()


def _plain(schema: Any) -> dict[str, Any] | bool:
    """Return a schema that an engine accepts: a read-only mapping outside becomes a dict."""
    if isinstance(schema, Mapping):
        return schema if isinstance(schema, dict) else dict(schema)
    if isinstance(schema, bool):
        return schema
    raise SchemaError(f"a schema is an object, true or false, not {type(schema).__name__}")


def _check_limits(schema: dict[str, Any] | bool, *, trusted: bool) -> None:
    caps = [] if trusted else broken_caps(schema)
    if is_deeper(schema, MAX_TRUSTED_DEPTH):
        caps = [f"nested deeper than {MAX_TRUSTED_DEPTH} levels"]
    if caps:
        raise SchemaError(f"the schema is refused: {'; '.join(caps)}")


def _compile(
    engine: EngineName,
    schema: dict[str, Any] | bool,
    documents: Mapping[str, Any],
    *,
    trusted: bool,
) -> tuple[str, Judge]:
    if _is_native(engine):
        from ._native import compile_native

        return "native", compile_native(schema, documents)
    from ._python import compile_python

    return "python", compile_python(schema, documents, trusted=trusted)
