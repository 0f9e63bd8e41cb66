"""The native engine, jsonschema-rs, with the guards that it needs."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from ..._errors import SchemaError, SchemaUnsupported
from ..jsonschema._bounds import is_deeper, is_larger, path_text, survey
from ..jsonschema._dialects import DIALECTS, LATEST, dialect_of
from ..jsonschema._fault import Fault
from ..jsonschema._structure import schema_faults
from ..jsonschema._violation import Violation
from ._validator import Judge, Verdict

# Steps for one pattern and one text: a few milliseconds. Past it the text does not match, so that a
# pattern made to explode fails closed.
BACKTRACK_LIMIT = 10_000

# The engine's own errors. It collects those of each alternative, so where alternatives refer back
# their number is multiplied at every level: sixteen with two ways each take half a minute.
_MAX_TOLD_DEPTH = 8
# And it copies the part of the value that each of them is about.
_MAX_TOLD_SIZE = 10_000

_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
_VALIDATORS: Mapping[str, Any] = {
    uri: getattr(jsonschema_rs, f"Draft{name}Validator") for uri, name in DIALECTS.items()
}


def compile_native(schema: dict[str, Any] | bool, documents: Mapping[str, Any]) -> Judge:
    """Compile a schema with jsonschema-rs.

    Args:
        schema: The schema, plain JSON types.
        documents: Other documents that it refers to, by URI. Nothing is ever fetched.

    Raises:
        SchemaUnsupported: The dialect is unknown.
        SchemaError: The schema is not valid, or refers to what is not there.
    """
    validator = _validator(schema, documents)
    standard = dialect_of(schema) == LATEST
    # What other documents hold is not surveyed: they may well refer back.
    recursive = bool(documents) or not standard or survey(schema).recursive

    def translated(value: Any) -> list[Violation]:
        # Only few violations need it: see `Judge`.
        from ._native_errors import translate

        if (recursive and is_deeper(value, _MAX_TOLD_DEPTH)) or is_larger(value, _MAX_TOLD_SIZE):
            return []
        try:
            return translate(validator.iter_errors(value), schema, value)
        # A value that the engine cannot show, or an error of a shape that it had not before: the
        # value stays rejected, with general words.
        except (ValueError, LookupError, TypeError, AttributeError):
            return []

    return Judge(
        schema,
        _guarded(validator.is_valid),
        match_pattern,
        recursive=recursive,
        translate=translated,
        explainable=standard,
        # Where a schema refers back, a walk may come to one part of a value again and again.
        compile_part=None if recursive else _verdict,
    )


def match_pattern(pattern: str) -> Verdict:
    """Return a function that tells if a pattern is found in a text.

    Raises:
        ValueError: The pattern is not a regular expression of the engine.
    """
    return _verdict({"pattern": pattern})


def _verdict(schema: dict[str, Any]) -> Verdict:
    """Return the verdict of a 2020-12 schema that refers to nothing; raises ValueError."""
    return _guarded(jsonschema_rs.Draft202012Validator(schema, **_options({})).is_valid)


def _guarded(verdict: Verdict) -> Verdict:
    """Return the verdict that rejects what the engine cannot read, instead of raising."""

    def is_valid(value: Any) -> bool:
        try:
            return verdict(value)
        # UnicodeEncodeError, which is one, for a lone surrogate.
        except ValueError:
            return False

    return is_valid


def _validator(schema: dict[str, Any] | bool, documents: Mapping[str, Any]) -> Any:
    dialect = dialect_of(schema)
    if dialect not in _VALIDATORS and dialect not in documents:
        raise SchemaUnsupported(
            f"the dialect {dialect} cannot be checked; use {LATEST} or leave it out", "$schema"
        )
    make = _VALIDATORS.get(dialect, jsonschema_rs.Draft202012Validator)
    try:
        return make(schema, **_options(documents, dialect))
    except ValueError as error:
        raise SchemaError(_why(schema, documents, error)) from None


def _why(schema: Any, documents: Mapping[str, Any], error: ValueError) -> str:
    """Return in our words why the engine refuses a schema."""
    faults: list[Fault] = []
    if dialect_of(schema) == LATEST:
        faults = schema_faults(schema, documents, match_pattern)
    if faults:
        return "; ".join(f"{path_text(fault.path)}: {fault.text}" for fault in faults)
    place = path_text(tuple(getattr(error, "instance_path", ())))
    return f"{place}: not valid in {dialect_of(schema)}, or a reference that leads nowhere"


def _options(documents: Mapping[str, Any], dialect: str = LATEST) -> dict[str, Any]:
    options: dict[str, Any] = {"pattern_options": _PATTERNS}
    if dialect not in documents:
        # `format` is an annotation (2020-12 validation section 7.2.1), unless a metaschema of the
        # author's own asks for more.
        options["validate_formats"] = False
    if not documents:
        # Never a request, whatever a $ref says (spec, basic, 1.20).
        return {**options, "offline": True}

    def retrieve(uri: str) -> Any:
        """Stand in for the engine's own retrieval, which would go to the network."""
        return documents[uri.partition("#")[0]]

    options["retriever"] = retrieve
    if dialect in documents:
        own = [(dialect, documents[dialect])]
        options["registry"] = jsonschema_rs.Registry(own, retriever=retrieve)
    return options
