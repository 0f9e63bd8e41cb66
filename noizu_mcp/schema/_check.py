"""A schema checked where it is written: everything that is wrong with it, at once."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from .._errors import SchemaError
from .engines._compile import CompiledSchema, EngineName, compile_document, pattern_compiler
from .jsonschema._document import MAX_SCHEMA_DEPTH, Document, as_plain
from .jsonschema._fault import Fault
from .jsonschema._keywords import DIALECTS, LATEST, Path
from .jsonschema._values import find_not_json
from .jsonschema._violation import show
from .report._messages import describe


def check_schema(
    schema: Mapping[str, Any] | bool, documents: Mapping[str, Any] | None = None
) -> list[Fault]:
    """Return everything that is wrong in a schema, `[]` if it can be compiled and published.

    The check covers the dialect and its metaschema, likely slips of keywords, patterns, references
    (none is fetched), `default` and `examples` against their own schemas, and size, depth and cost.

    Args:
        schema: The schema; any other value is a fault too.
        documents: Other schema documents that it refers to, by URI.
    """
    return read_schema(schema, documents)[1]


def read_schema(
    schema: Mapping[str, Any] | bool,
    documents: Mapping[str, Any] | None = None,
    engine: EngineName = "auto",
) -> tuple[CompiledSchema | None, list[Fault]]:
    """Check a schema and compile it, in one go.

    Args:
        schema: The schema; any other value is a fault too.
        documents: Other schema documents that it refers to, by URI.
        engine: As for `compile_schema`.

    Returns:
        The compiled schema and its faults; one of the two is empty.
    """
    plain = as_plain(schema)
    if plain is None:
        text = f"a schema is an object, true or false, not {show(schema)}"
        return None, [Fault((), text)]
    unfit = find_not_json(plain, inf, MAX_SCHEMA_DEPTH)
    if unfit is not None:
        return None, [Fault(*unfit)]
    document = Document(plain, documents)
    caps = document.broken_caps()
    if caps:
        return None, [Fault((), text) for text in caps]
    faults = _dialect_faults(document)
    slips: list[Fault] = []
    if document.dialect == LATEST:
        faults = document.faults(pattern_compiler(engine))
        slips = document.slips()
    if faults:
        return None, [*faults, *slips]
    try:
        compiled = compile_document(schema, document, engine)
    except SchemaError as error:
        return None, [*slips, Fault((), str(error))]
    # A slip in a keyword does not keep the rest from being judged.
    faults = [*slips, *_own_value_faults(document, engine)]
    return (None, faults) if faults else (compiled, [])


def _dialect_faults(document: Document) -> list[Fault]:
    dialect = document.dialect
    if dialect in DIALECTS or dialect in document.documents:
        return []
    text = f"the dialect {dialect} cannot be checked; use {LATEST} or leave it out"
    return [Fault(("$schema",), text)]


def _own_value_faults(document: Document, engine: EngineName) -> Iterator[Fault]:
    """Yield a fault for each default and example that its own schema rejects."""
    own = [
        (path, place, node, value)
        for path, node in document.nodes
        for place, value in _own_values(node)
    ]
    if not own:
        return
    # Loaded with the first default or example.
    from .report._explain import Explainer

    explainer = Explainer(document, pattern_compiler(engine))
    for path, place, node, value in own:
        violations = explainer.explain(value, node)
        if violations:
            name = "default" if place == ("default",) else "example"
            reason = describe(violations)[0].removeprefix("(root): ")
            text = f"the {name} {show(value)} breaks its own schema: {reason}"
            yield Fault((*path, *place), text)


def _own_values(node: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    if "default" in node:
        yield ("default",), node["default"]
    examples = node.get("examples")
    if isinstance(examples, list):
        yield from ((("examples", index), example) for index, example in enumerate(examples))
