"""One way to compile a JSON Schema, whichever engine does it."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from math import inf
from typing import Any, Literal, NamedTuple

from ..._errors import SchemaError, SchemaUnsupported
from ..jsonschema._document import (
    MAX_SCHEMA_DEPTH,
    MAX_TRUSTED_DEPTH,
    Document,
    as_plain,
    schema_error,
)
from ..jsonschema._keywords import LATEST
from ..jsonschema._values import MAX_VALUE_DEPTH, find_not_json, is_deeper
from ..jsonschema._violation import Fault, Violation

# A pattern of a few characters may take a millisecond to compile.
MAX_PATTERNS = 100
MAX_PATTERN_SIZE = 10_000

EngineName = Literal["auto", "native", "python"]
Verdict = Callable[[Any], bool]
CompilePart = Callable[[Any], Verdict]
Explain = Callable[[Any], list[Violation]]
CompileMatcher = Callable[[str], Callable[[str], bool]]


class CompiledSchema(NamedTuple):
    """A JSON Schema, ready to judge values.

    Attributes:
        schema: The schema that was compiled; it is never changed.
        engine: The engine that judges: "native" or "python".
        is_valid: Tells if a value fits. Never raises, never changes the value. A value that JSON
            cannot express, such as a lone surrogate that a keyword looks at, does not fit. Nor does
            a value nested deeper than 128 levels if the schema is recursive.
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
        engine: "native" is jsonschema-rs, which serves everything; "python" serves the common
            keywords of 2020-12 and refuses the rest; "auto" is the native one if it is installed.
        documents: Other schema documents by their URI, for `$ref`.
        trusted: False for a schema that came from a peer: limits on size, depth, cost and patterns
            apply, and the Python engine refuses it.

    Raises:
        SchemaError: The schema is not valid, has a reference that leads nowhere, or breaks a limit.
        SchemaUnsupported: The engine cannot serve the schema; the keyword is named. Or "native"
            was asked for, and is not installed.
        ValueError: There is no such engine.
    """
    plain = as_plain(schema)
    if plain is None:
        raise SchemaError(f"a schema is an object, true or false, not {type(schema).__name__}")
    depth = MAX_TRUSTED_DEPTH if trusted else MAX_SCHEMA_DEPTH
    fault = find_not_json(plain, inf, depth)
    if fault is not None:
        raise schema_error([Fault(*fault)])
    document = Document(plain, documents)
    caps = [] if trusted else document.broken_caps() or _broken_pattern_caps(document)
    if caps:
        raise SchemaError(f"the schema is refused: {'; '.join(caps)}")
    return compile_document(schema, document, engine, trusted=trusted)


def _broken_pattern_caps(document: Document) -> list[str]:
    """Return in words each limit for the patterns of a peer that a schema breaks."""
    patterns = document.patterns()
    size = sum(map(len, patterns))
    if len(patterns) > MAX_PATTERNS or size > MAX_PATTERN_SIZE:
        text = f"{len(patterns)} patterns with {size} characters"
        return [f"{text}, more than {MAX_PATTERNS} or than {MAX_PATTERN_SIZE}"]
    return []


def compile_document(
    schema: Mapping[str, Any] | bool,
    document: Document,
    engine: EngineName,
    *,
    trusted: bool = True,
    sound: bool = False,
) -> CompiledSchema:
    """Compile a schema that has been read.

    Args:
        schema: The schema that `CompiledSchema.schema` shows.
        document: The document made of it, within the limits.
        engine: As for `compile_schema`.
        trusted: As for `compile_schema`.
        sound: True if no engine can refuse the schema, so that the native one need not see it now.
    """
    compile_part: CompilePart | None = None
    if _is_native(engine):
        used = "native"
        if sound:
            verdict, compile_part = _native_later(document.root)
        else:
            from ._native import compile_native, guarded

            bare, compile_part = compile_native(document, trusted=trusted)
            verdict = guarded(bare)
    else:
        from ._python import compile_python

        used = "python"
        verdict = compile_python(document, trusted=trusted)
    # Other documents may hold more than is referred to, and older drafts refer in other ways.
    wide = bool(document.documents) or document.dialect != LATEST
    recursive = wide or document.survey().recursive
    is_valid = partial(_is_valid_within, verdict) if recursive else verdict
    explain = cache(partial(_explainer, document.root, document.documents, engine, compile_part))
    return CompiledSchema(
        schema, used, is_valid, partial(_violations, is_valid, explain, recursive)
    )


def _native_later(root: Any) -> tuple[Verdict, CompilePart]:
    """Return what `compile_native` returns; it runs with the first value.

    The engine takes a tenth of the time in which a small server starts, and 4 MiB. A client starts
    all of its servers, and calls tools of a few.
    """

    @cache
    def compiled() -> tuple[Verdict, CompilePart]:
        from ._native import compile_native

        return compile_native(Document(root))

    verdict: Verdict | None = None

    def is_valid(value: Any) -> bool:
        nonlocal verdict
        if verdict is None:
            verdict, _ = compiled()
        # The guard of the engine, here: one call less on the way of each request.
        try:
            return verdict(value)
        except ValueError:
            return False

    def compile_part(schema: Any) -> Verdict:
        return compiled()[1](schema)

    return is_valid, compile_part


@cache
def has_native() -> bool:
    """Tell if the native engine is installed, without loading it."""
    return find_spec("jsonschema_rs") is not None


def pattern_compiler(engine: EngineName) -> CompileMatcher:
    """Return the function that compiles a pattern as an engine does; it raises ValueError."""
    native = _is_native(engine)

    def compile_matcher(pattern: str) -> Callable[[str], bool]:
        if native:
            from ._native import match_pattern

            return match_pattern(pattern)
        from ._patterns import match_pattern as match_translated

        return match_translated(pattern)

    return compile_matcher


def _is_native(engine: str) -> bool:
    if engine not in ("auto", "native", "python"):
        raise ValueError(f'engine is "auto", "native" or "python", not {engine!r}')
    if engine == "native" and not has_native():
        raise SchemaUnsupported(
            "the native engine is not installed: pip install jsonschema-rs", "engine"
        )
    return engine != "python" and has_native()


def _explainer(
    root: Any,
    documents: Mapping[str, Any],
    engine: EngineName,
    compile_part: CompilePart | None,
) -> Explain:
    # Most programs never see a violation, so the module is not imported before.
    from ..report._explain import Explainer

    return Explainer(Document(root, documents), pattern_compiler(engine), compile_part).explain


def _is_valid_within(verdict: Verdict, value: Any) -> bool:
    """Judge a value with a limit on depth: engines recurse, and a C stack does not forgive."""
    return not is_deeper(value, MAX_VALUE_DEPTH) and verdict(value)


def _violations(
    verdict: Verdict, explain: Callable[[], Explain], recursive: bool, value: Any
) -> list[Violation]:
    """Return the violations of a value, `[]` exactly if the verdict accepts it.

    Args:
        verdict: The engine with the guards around it; never raises.
        explain: Returns the explainer.
        recursive: Whether values may be nested deeper than the schema is written.
        value: Any value.
    """
    if verdict(value):
        return []
    if recursive and is_deeper(value, MAX_VALUE_DEPTH):
        return [Violation((), "", f"nested deeper than {MAX_VALUE_DEPTH} levels")]
    found = explain()(value)
    if not found:
        # The explanation took too long, or the value is more than the engine can read.
        path, text = find_not_json(value) or ((), "does not match the schema")
        found = [Violation(path, "", text, None, None if path else value)]
    return found
