"""One way to compile a JSON Schema, whichever engine does it."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

from ..._schema_engine import EngineName
from ..jsonschema._document import (
    MAX_SCHEMA_DEPTH,
    MAX_TRUSTED_DEPTH,
    Document,
    read_document,
    schema_error,
)
from ..jsonschema._keywords import LATEST
from ..jsonschema._values import (
    MAX_VALUE_DEPTH,
    CompilePart,
    Verdict,
    find_not_json,
    is_deeper,
)
from ..jsonschema._violation import Fault, Violation
from ._engine import choose_engine, load_engine

# A pattern of a few characters may take a millisecond to compile.
MAX_PATTERNS = 100
MAX_PATTERN_SIZE = 10_000

Explain = Callable[[object], list[Violation]]


class CompiledSchema(NamedTuple):
    """A JSON Schema, ready to judge values.

    Attributes:
        schema: The schema that was compiled; it is never changed.
        is_valid: Tells if a value fits. Never raises, never changes the value. A value that JSON
            cannot express, such as a lone surrogate that a keyword looks at, does not fit. Nor does
            a value nested deeper than 128 levels if the schema is recursive.
        violations: Returns the violations of a value, the first 100 of more, `[]` exactly if it
            fits. Never raises.
        engine: The engine that was named when the schema was compiled, or None.
    """

    schema: Mapping[str, object] | bool
    is_valid: Callable[[object], bool]
    violations: Callable[[object], list[Violation]]
    engine: EngineName | None


def compile_schema(
    schema: Mapping[str, object] | bool,
    engine: EngineName | None = None,
    documents: Mapping[str, object] | None = None,
    *,
    trusted: bool = True,
) -> CompiledSchema:
    """Compile a JSON Schema: 2020-12 unless `$schema` says otherwise.

    Nothing is ever fetched (spec 2026-07-28, basic: `$ref`), and `format` is an annotation.

    Args:
        schema: The schema, made of plain JSON types.
        engine: "native" is jsonschema-rs; "python" is written in Python, and refuses what it cannot
            judge exactly. None for the engine in `NOIZU_MCP_SCHEMA_ENGINE`, else the native one
            if it can be loaded, else the Python one.
        documents: Other schema documents by their URI, for `$ref`.
        trusted: False for a schema that came from a peer: limits on size, depth, cost and patterns
            apply.

    Raises:
        SchemaError: The schema is not valid, has a reference that leads nowhere, or breaks a limit.
        SchemaUnsupported: The engine cannot serve the schema; the keyword is named. Or the native
            engine was named, and cannot be loaded.
        ValueError: There is no such engine.
    """
    engine = choose_engine(engine)
    depth = MAX_TRUSTED_DEPTH if trusted else MAX_SCHEMA_DEPTH
    document, faults = read_document(schema, documents, depth, capped=not trusted)
    if document is not None and not trusted:
        faults = _pattern_faults(document)
    if document is None or faults:
        raise schema_error(faults)
    return compile_document(schema, document, engine, trusted=trusted)


def _pattern_faults(document: Document) -> list[Fault]:
    """Return the fault of a schema of a peer with too many patterns."""
    patterns = document.patterns()
    size = sum(map(len, patterns))
    if len(patterns) > MAX_PATTERNS or size > MAX_PATTERN_SIZE:
        text = f"{len(patterns)} patterns with {size} characters"
        return [Fault((), f"{text}, more than {MAX_PATTERNS} or than {MAX_PATTERN_SIZE}")]
    return []


def compile_document(
    schema: Mapping[str, object] | bool,
    document: Document,
    engine: EngineName | None,
    *,
    trusted: bool = True,
    sound: bool = False,
) -> CompiledSchema:
    """Compile a schema that has been read.

    Args:
        schema: The schema that `CompiledSchema.schema` shows.
        document: The document made of it, within the limits.
        engine: A result of `choose_engine`.
        trusted: As for `compile_schema`.
        sound: True if no engine can refuse the schema, so that none need be loaded now.
    """
    verdict, compile_part = _compile(document, engine, trusted=trusted, sound=sound)
    # Other documents may hold more than is referred to, and older drafts refer in other ways.
    wide = bool(document.documents) or document.dialect != LATEST
    recursive = wide or document.survey.recursive
    is_valid = partial(_is_valid_within, verdict) if recursive else verdict
    explain = cache(partial(_explainer, document.root, document.documents, engine, compile_part))
    violations = partial(_violations, is_valid, explain, recursive)
    return CompiledSchema(schema, is_valid, violations, engine)


def _compile(
    document: Document, engine: EngineName | None, *, trusted: bool, sound: bool
) -> tuple[Verdict, CompilePart]:
    """Return a verdict that never raises, and the function that compiles a part of the schema.

    A sound schema is compiled with the first value. To load an engine takes a tenth of the time in
    which a small server starts, and 4 MiB. A client starts all of its servers, and calls tools of
    a few.
    """
    root = document.root
    made: tuple[Verdict, CompilePart] | None = None
    if not sound:
        made = load_engine(engine).compile_document(document, trusted=trusted)
    verdict = made and made[0]

    def compiled() -> tuple[Verdict, CompilePart]:
        nonlocal made
        made = made or load_engine(engine).compile_document(Document(root), trusted=trusted)
        return made

    def is_valid(value: object) -> bool:
        nonlocal verdict
        if verdict is None:
            verdict = compiled()[0]
        try:
            return verdict(value)
        # For a value that the engine cannot read.
        except ValueError:
            return False

    def compile_part(part: Any) -> Verdict:
        return compiled()[1](part)

    return is_valid, compile_part


def match_pattern(engine: EngineName | None, pattern: str) -> Callable[[str], bool]:
    """Return a function that tells if a pattern is found in a text, as an engine does it.

    Args:
        engine: A result of `choose_engine`.
        pattern: The pattern, of ECMA-262.

    Raises:
        ValueError: The pattern is not valid, or not served.
    """
    return load_engine(engine).match_pattern(pattern)


def _explainer(
    root: object,
    documents: Mapping[str, object],
    engine: EngineName | None,
    compile_part: CompilePart | None,
) -> Explain:
    # Most programs never see a violation, so the module is not imported before.
    from ..report._explain import Explainer

    return Explainer(
        Document(root, documents), partial(match_pattern, engine), compile_part
    ).explain


def _is_valid_within(verdict: Verdict, value: object) -> bool:
    """Judge a value with a limit on depth: engines recurse, and a C stack does not forgive."""
    return not is_deeper(value, MAX_VALUE_DEPTH) and verdict(value)


def _violations(
    verdict: Verdict, explain: Callable[[], Explain], recursive: bool, value: object
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
