"""The native engine, jsonschema-rs, with the guards that it needs."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jsonschema_rs

from ..._errors import SchemaError, SchemaUnsupported
from ..._value import JSONObject
from ..jsonschema._document import Document, patterns_of, schema_error
from ..jsonschema._keywords import DIALECTS, LATEST
from ..jsonschema._values import CompilePart, Verdict
from ..jsonschema._violation import Fault

#: See `Engine`.
MAX_WORK = 5_000_000

# Steps back for one pattern and one text. Past it the text does not match, so that a pattern made
# to explode fails closed. A search takes a step for each character that it starts anew at, so a
# lower limit would miss what stands late in a text.
_BACKTRACK_LIMIT = 10_000
# Between two steps a lookaround with a repetition reads on to the end of the text: with the limit
# above, `(?=[a-z]+@)[a-z]+@` takes 4 seconds for 80,000 letters.
_READING_LIMIT = 1_000
# Bytes of a compiled pattern of a peer: a text costs up to 5 microseconds for each character then.
_PEER_PATTERN = 64 * 1024
_READS_ON = re.compile(r"\(\?<?[=!](?:[^()]|\([^()]*\))*[*+,]")

_VALIDATORS: Mapping[str, Any] = {
    uri: getattr(jsonschema_rs, f"Draft{name}Validator") for uri, name in DIALECTS.items()
}


def compile_document(document: Document, *, trusted: bool) -> tuple[Verdict, CompilePart]:
    """Compile a schema with jsonschema-rs; see `Engine`."""
    dialect, documents = document.dialect, document.documents
    if dialect not in _VALIDATORS and dialect not in documents:
        raise SchemaUnsupported(
            f"the dialect {dialect} cannot be checked; use {LATEST} or leave it out", "$schema"
        )
    make = _VALIDATORS.get(dialect, jsonschema_rs.Draft202012Validator)
    own_dialect = {"$schema": dialect} if dialect in documents else {}
    patterns = [each for _path, node in document.nodes for _at, each in patterns_of(node)]
    options = _options(dialect, documents, patterns, trusted=trusted)

    def compile_part(schema: JSONObject) -> Verdict:
        return guarded(make({**own_dialect, **schema}, **options).is_valid)

    try:
        return make(document.root, **options).is_valid, compile_part
    except ValueError as error:
        raise _reason(document, error, trusted=trusted) from None


def _reason(document: Document, error: ValueError, *, trusted: bool) -> SchemaError:
    """Return in our words why the engine refuses a schema."""
    compile_pattern = partial(match_pattern, trusted=trusted)
    faults = document.faults(compile_pattern) if document.dialect == LATEST else []
    if not faults:
        text = f"not valid in {document.dialect}, or a reference that leads nowhere"
        text += "" if trusted else ", or a pattern that is not served for a peer"
        faults = [Fault(tuple(getattr(error, "instance_path", ())), text)]
    return schema_error(faults)


def match_pattern(pattern: str, *, trusted: bool = True) -> Callable[[str], bool]:
    """Return a function that tells if a pattern is found in a text.

    Args:
        pattern: The pattern.
        trusted: As for `compile_document`.

    Raises:
        ValueError: The pattern is not a regular expression of the engine.
    """
    options = _options(LATEST, {}, [pattern], trusted=trusted)
    try:
        validator = jsonschema_rs.Draft202012Validator({"pattern": pattern}, **options)
    except ValueError:
        # The engine tells where, in the words of its library for regular expressions.
        text = "not a regular expression of ECMA-262"
        if not trusted:
            text += ", or too large, or one with a lookaround or a backreference"
        raise ValueError(text) from None
    return guarded(validator.is_valid)


def guarded(verdict: Verdict) -> Verdict:
    """Return a verdict that rejects a value that the engine cannot read, instead of raising."""

    def is_valid(value: object) -> bool:
        try:
            return verdict(value)
        # UnicodeEncodeError, which is one, for a lone surrogate.
        except ValueError:
            return False

    return is_valid


def _options(
    dialect: str, documents: Mapping[str, Any], patterns: Iterable[str], *, trusted: bool
) -> dict[str, Any]:
    regexes: object
    if trusted:
        reads_on = any(map(_READS_ON.search, patterns))
        limit = _READING_LIMIT if reads_on else _BACKTRACK_LIMIT
        regexes = jsonschema_rs.FancyRegexOptions(backtrack_limit=limit)
    else:
        # The linear engine: a peer chooses the pattern and the text, and many texts.
        regexes = jsonschema_rs.RegexOptions(size_limit=_PEER_PATTERN)
    options: dict[str, object] = {"pattern_options": regexes}
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
