"""A schema checked where it is written: everything that is wrong with it, at once."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .._errors import SchemaError
from .engines._compile import CompiledSchema, EngineName, compile_schema, pattern_compiler
from .jsonschema._bounds import broken_caps
from .jsonschema._dialects import DIALECTS, LATEST, dialect_of
from .jsonschema._fault import Fault
from .jsonschema._keywords import Path, walk
from .jsonschema._structure import schema_faults, typo_faults
from .jsonschema._violation import Violation, pointer, show
from .report._report import describe

# The name under which a schema refers to itself while its defaults are checked.
_SELF = "urn:noizu-mcp:schema"

Judge = Callable[[Path, Any, Any], list[Violation]]


def check_schema(
    schema: Mapping[str, Any] | bool, documents: Mapping[str, Any] | None = None
) -> list[Fault]:
    """Return everything that is wrong in a schema, `[]` if it can be compiled and published.

    Checked are the dialect and its metaschema, likely slips of keywords, patterns, references (none
    is fetched), `default` and `examples` against their own schemas, and size, depth and cost.

    Args:
        schema: The schema; anything else is a fault too.
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
        schema: The schema; anything else is a fault too.
        documents: Other schema documents that it refers to, by URI.
        engine: As for `compile_schema`.

    Returns:
        The compiled schema, and what is wrong; one of the two is empty.
    """
    others = documents or {}
    plain = dict(schema) if isinstance(schema, Mapping) else schema
    faults = _written_faults(plain, others, engine)
    if faults:
        return None, faults
    # A slip in a keyword does not keep the rest from being judged.
    slips = typo_faults(plain) if dialect_of(plain) == LATEST else []
    try:
        compiled = compile_schema(schema, engine, others)
    except SchemaError as error:
        return None, [*slips, Fault((), str(error))]
    faults = [*slips, *_own_value_faults(plain, others, engine)]
    return (None, faults) if faults else (compiled, [])


def _written_faults(schema: Any, documents: Mapping[str, Any], engine: EngineName) -> list[Fault]:
    if not isinstance(schema, (dict, bool)):
        return [Fault((), f"a schema is an object, true or false, not {show(schema)}")]
    caps = broken_caps(schema)
    if caps:
        return [Fault((), text) for text in caps]
    dialect = dialect_of(schema)
    if dialect != LATEST:
        known = dialect in DIALECTS or dialect in documents
        text = f"the dialect {dialect} cannot be checked; use {LATEST} or leave it out"
        return [] if known else [Fault(("$schema",), text)]
    faults = schema_faults(schema, documents, pattern_compiler(engine))
    return [*faults, *typo_faults(schema)] if faults else []


def _own_value_faults(
    schema: Any, documents: Mapping[str, Any], engine: EngineName
) -> Iterator[Fault]:
    """Yield a fault for each default and example that its own schema rejects."""
    judge: Judge | None = None
    for path, node in walk(schema):
        for place, value in _own_values(node):
            judge = judge or _judge(schema, documents, engine)
            violations = judge(path, node, value)
            if violations:
                what = "default" if place == ("default",) else "example"
                reason = describe(violations)[0].removeprefix("(root): ")
                text = f"the {what} {show(value)} breaks its own schema: {reason}"
                yield Fault((*path, *place), text)


def _own_values(node: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    if "default" in node:
        yield ("default",), node["default"]
    examples = node.get("examples")
    if isinstance(examples, list):
        yield from ((("examples", index), example) for index, example in enumerate(examples))


def _judge(schema: Any, documents: Mapping[str, Any], engine: EngineName) -> Judge:
    """Return what judges a value by the subschema at a path."""
    # Loaded with the first default or example.
    from .report._explain import Explainer, is_explainable

    if dialect_of(schema) == LATEST and is_explainable(schema):
        compiler = pattern_compiler(engine)
        explainer = Explainer(schema, lambda pattern, text: compiler(pattern)(text))
        return lambda _path, node, value: explainer.explain(node, value)
    return lambda path, _node, value: _judge_by_engine(schema, path, value, documents)


def _judge_by_engine(
    schema: Any, path: Path, value: Any, documents: Mapping[str, Any]
) -> list[Violation]:
    fragment = pointer(path).replace("%", "%25")
    own = {**documents, _SELF: schema}
    return compile_schema({"$ref": f"{_SELF}#{fragment}"}, documents=own).violations(value)
