"""A schema checked where it is written: everything that is wrong with it, at once."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial

from .._errors import SchemaError
from .._pointer import Path
from .._schema_engine import EngineName
from .engines._compile import CompiledSchema, compile_document, match_pattern
from .engines._engine import choose_engine
from .jsonschema._document import Document, read_document
from .jsonschema._keywords import DIALECTS, LATEST
from .jsonschema._violation import Fault, Violation, show
from .report._messages import describe


def check_schema(
    schema: Mapping[str, object] | bool, documents: Mapping[str, object] | None = None
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
    schema: Mapping[str, object] | bool,
    documents: Mapping[str, object] | None = None,
    engine: EngineName | None = None,
) -> tuple[CompiledSchema | None, list[Fault]]:
    """Check a schema and compile it, in one go.

    Args:
        schema: The schema; any other value is a fault too.
        documents: Other schema documents that it refers to, by URI.
        engine: As for `compile_schema`.

    Returns:
        The compiled schema and its faults; one of the two is empty.

    Raises:
        ValueError: The engine that was named does not exist, or cannot be loaded.
    """
    engine = choose_engine(engine)
    document, faults = read_document(schema, documents)
    if document is None:
        return None, faults
    dialect = document.dialect
    slips: list[Fault] = []
    if dialect == LATEST:
        faults = document.faults(partial(match_pattern, engine))
        slips = document.slips()
    elif dialect not in DIALECTS and dialect not in document.documents:
        text = f"the dialect {dialect} cannot be checked; use {LATEST} or leave it out"
        faults = [Fault(("$schema",), text)]
    if faults:
        return None, [*faults, *slips]
    try:
        sound = document.is_self_contained()
        compiled = compile_document(schema, document, engine, sound=sound)
    except SchemaError as error:
        return None, [*slips, Fault((), str(error))]
    # A slip in a keyword does not keep the rest from being judged.
    for path, place, value, violations in rejected_values(document, engine):
        name = "default" if place == ("default",) else "example"
        reason = describe(violations)[0].removeprefix("(root): ")
        text = f"the {name} {show(value)} breaks its own schema: {reason}"
        slips.append(Fault((*path, *place), text))
    return (None, slips) if slips else (compiled, [])


def rejected_values(
    document: Document, engine: EngineName | None = None
) -> Iterator[tuple[Path, Path, object, list[Violation]]]:
    """Yield each default and example that its own schema rejects.

    Args:
        document: The schema.
        engine: The engine that compiles its patterns, a result of `choose_engine`.

    Yields:
        The path of the own schema, the path of the value in it, the value, and its violations.
    """
    own = [
        (path, place, node, value)
        for path, node in document.nodes
        for place, value in _own_values(node)
    ]
    if not own:
        return
    # Loaded with the first default or example.
    from .report._explain import Explainer

    explainer = Explainer(document, partial(match_pattern, engine))
    for path, place, node, value in own:
        # A wrong pattern raises ValueError; it is reported separately.
        with suppress(ValueError):
            violations = explainer.explain(value, node)
            if violations:
                yield path, place, value, violations


def _own_values(node: Mapping[str, object]) -> Iterator[tuple[Path, object]]:
    if "default" in node:
        yield ("default",), node["default"]
    examples = node.get("examples")
    if isinstance(examples, list):
        yield from ((("examples", index), example) for index, example in enumerate(examples))
