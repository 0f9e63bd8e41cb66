"""The pure-Python engine: fastjsonschema, for the part of 2020-12 in which it is proven right."""

from collections.abc import Callable, Mapping
from typing import Any

from ..._errors import SchemaError
from ..jsonschema._bounds import path_text, survey
from ..jsonschema._dialects import LATEST, dialect_of
from ..jsonschema._structure import data_faults, ref_faults, structure_faults
from ._python_codegen import Mismatch, generate
from ._python_rewrite import rewrite
from ._refusals import check_served, unsupported
from ._regex import match_pattern
from ._regex_parse import PatternRefusedError
from ._validator import Judge, Verdict


def compile_python(
    schema: dict[str, Any] | bool, documents: Mapping[str, Any], *, trusted: bool
) -> Judge:
    """Compile a schema into Python code.

    Args:
        schema: The schema, plain JSON types.
        documents: Known by URI; a schema that needs one of them is refused.
        trusted: False for a schema from a peer, which is refused: it would become code, and its
            patterns would run without a limit.

    Raises:
        SchemaUnsupported: The schema is outside of what this engine serves.
        SchemaError: The schema is not valid, or refers to what is not there.
    """
    if not trusted:
        raise unsupported("", "a schema that came from a peer")
    if dialect_of(schema) == LATEST:
        _check_valid(schema, documents)
    check_served(schema)
    function = _function(schema)
    return Judge(schema, _verdict(function), match_pattern, recursive=survey(schema).recursive)


def _check_valid(schema: Any, documents: Mapping[str, Any]) -> None:
    faults = data_faults(schema) or structure_faults(schema) or ref_faults(schema, documents)
    if faults:
        raise SchemaError("; ".join(f"{path_text(fault.path)}: {fault.text}" for fault in faults))


def _function(schema: dict[str, Any] | bool) -> Callable[[Any], Any]:
    try:
        return generate(rewrite(schema))
    except PatternRefusedError as error:
        raise unsupported("pattern", f"a pattern: {error.reason}") from None
    # The generator fails in many ways on what it cannot express; each of them is a refusal.
    except Exception as error:
        raise unsupported("", f"this schema ({type(error).__name__})") from error


def _verdict(function: Callable[[Any], Any]) -> Verdict:
    def is_valid(value: Any) -> bool:
        try:
            function(value)
        except Mismatch:
            return False
        # Deeper than the stack, or not JSON, such as a key that is no string.
        except (RecursionError, TypeError, ValueError):
            return False
        return True

    return is_valid
