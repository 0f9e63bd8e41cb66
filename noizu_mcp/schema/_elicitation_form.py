"""Forms: what `elicitation/create` may ask a client's user for.

`requestedSchema` is one object of plain fields (spec 2025-06-18, 2025-11-25 and 2026-07-28,
client/elicitation). A declaration is read as everywhere else; here it is made flat, or refused.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from ._declared_schema import Read, Shape, read_shape
from ._elicitation_fields import flat_field
from .declare._choice_titles import Titles
from .declare._classes import declarer
from .engines._compile import CompiledSchema
from .jsonschema._fault import Fault
from .jsonschema._violation import Violation, show

#: On a class that has been asked for: its flat shape.
FLAT: Final = "__mcp_flat__"
#: The first revision with elicitation, and the first whose choices have titles.
_FIRST: Final = "2025-06-18"
_TITLED: Final = "2025-11-25"

# They say nothing about what an answer may be, or (the last two) forbid what is dropped anyway.
_HARMLESS = frozenset(
    (
        *("type", "properties", "required", "$schema", "$id", "$comment", "$defs", "title"),
        *("description", "examples", "additionalProperties", "unevaluatedProperties"),
    )
)
_NO_FIELDS = (
    "has no fields to ask for; declare a class with fields, or a mapping of fields"
    " (write properties: {} to ask for no more than consent)"
)
_OTHERS = "asks for names that are not declared, and a form has named fields only; declare each"
_NAMED_ONLY: tuple[Any, ...] = (True, False, {})


def flat_shape(declared: Any) -> Read:
    """Read what a form asks for.

    Text (`format`: email, uri, date, date-time), numbers with `min` and `max`, booleans, one choice
    or a list of choices; `| None` makes a field optional, and what is left blank is None.

    Args:
        declared: A class with fields, a mapping (fields as data, or a JSON Schema), JSON text, or
            a ready `Shape`. The result for a class is kept: asking again costs a look-up, and so
            does passing the result itself.

    Returns:
        The shape, or None; and what no form can ask, by field. One of the two is empty. `schema` is
        a `requestedSchema` of the newest revision; `compiled` judges an answer and `build` turns
        it into an instance of the class, a record (fields as data) or a dict (JSON Schema). Both
        pass over names that were not asked for.
    """
    made = declared.__dict__.get(FLAT) if isinstance(declared, type) else None
    if made is not None:
        return made, []
    if isinstance(declared, Shape) and isinstance(declared.build, _Answers):
        return declared, []
    shape, faults = read_shape(declared)
    if shape is None:
        return None, faults
    owner = declared if isinstance(declared, type) else None
    flat, absent, faults = _flatten(shape.schema, shape.titles, owner)
    if faults:
        return None, faults
    made = _answered(shape, flat, absent)
    if owner is not None:
        setattr(owner, FLAT, made)
    return made, []


def flat_for(schema: Mapping[str, Any], revision: str) -> dict[str, Any] | None:
    """Return the schema of a form in the words of a protocol revision.

    Up to 2025-06-18 only booleans have a default, titles of choices stand in `enumNames`, and
    nobody can pick several choices.

    Args:
        schema: The `schema` of a flat shape.
        revision: `2025-06-18`, or a later one.

    Returns:
        A `requestedSchema`; None if the revision cannot ask for one of the fields, or for anything.
    """
    if revision >= _TITLED:
        return dict(schema)
    fields = schema["properties"].values()
    if revision < _FIRST or any(field["type"] == "array" for field in fields):
        return None
    older = {name: _older(field) for name, field in schema["properties"].items()}
    return {**schema, "properties": older}


def _older(field: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(field)
    if made["type"] != "boolean":
        made.pop("default", None)
    choices = made.pop("oneOf", None)
    if choices is not None:
        made["enum"] = [choice["const"] for choice in choices]
        made["enumNames"] = [choice["title"] for choice in choices]
    return made


class _Answers:
    """Builds what a form was answered.

    Args:
        names: The names that were asked for.
        absent: Those that are null, and not absent, where the user left them blank.
        build: Builds the declared value, if anything is to be built.
    """

    __slots__ = ("_absent", "_build", "_names")

    def __init__(
        self, names: tuple[str, ...], absent: dict[str, None], build: Callable[[Any], Any] | None
    ) -> None:
        self._names = names
        self._absent = absent
        self._build = build

    def __call__(self, answer: Any) -> Any:
        known = self.complete(answer)
        return known if self._build is None else self._build(known)

    def complete(self, answer: Any) -> Any:
        """Return an answer as the declaration has it; what is no object stays as it is."""
        if not isinstance(answer, dict):
            return answer
        given = {name: answer[name] for name in self._names if name in answer}
        return {**self._absent, **given}


def _answered(shape: Shape, flat: dict[str, Any], absent: dict[str, None]) -> Shape:
    """Return a shape with a flat schema whose answers are judged by what was declared."""
    answers = _Answers(tuple(flat["properties"]), absent, shape.build)
    accepts, explain = shape.compiled.is_valid, shape.compiled.violations

    def is_valid(answer: Any) -> bool:
        return accepts(answers.complete(answer))

    def violations(answer: Any) -> list[Violation]:
        return explain(answers.complete(answer))

    compiled = CompiledSchema(flat, shape.compiled.engine, is_valid, violations)
    return attrs.evolve(shape, schema=flat, build=answers, compiled=compiled)


def _flatten(
    schema: Mapping[str, Any], titles: Mapping[str, Titles], owner: type | None
) -> tuple[dict[str, Any], dict[str, None], list[Fault]]:
    """Return the flat schema, the names that blank means null for, and what no form can ask."""
    faults = [Fault((), text, owner) for text in _root_problems(schema)]
    properties: dict[str, Any] = {}
    nullable: set[str] = set()
    for name, declared in schema.get("properties", {}).items():
        field = flat_field(declared, *titles.get(name, (None, {})))
        properties[name] = field.schema
        nullable |= {name} if field.nullable else set()
        of = declarer(owner, name) if owner is not None else None
        faults += [Fault((name,), text, of) for text in field.problems]
    required = schema.get("required", [])
    asked = [name for name in required if name not in nullable]
    faults += [
        Fault((name,), "is required, but not among the properties; declare it", owner)
        for name in asked
        if name not in properties
    ]
    flat = {"type": "object", "properties": properties, **({"required": asked} if asked else {})}
    return flat, {name: None for name in required if name in nullable}, faults


def _root_problems(schema: Mapping[str, Any]) -> list[str]:
    if "properties" not in schema:
        return [_NO_FIELDS]
    problems = [
        f"{show(keyword)} cannot be said of a form; leave it out, or check it in the handler"
        for keyword in schema
        if keyword not in _HARMLESS and not keyword.startswith("x-")
    ]
    extra = ("additionalProperties", "unevaluatedProperties")
    if any(schema.get(keyword, True) not in _NAMED_ONLY for keyword in extra):
        problems.append(_OTHERS)
    return problems
