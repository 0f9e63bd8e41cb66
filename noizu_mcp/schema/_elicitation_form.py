"""The forms of `elicitation/create`: the questions that a client can ask its user.

`requestedSchema` is one object of plain fields (specification 2025-06-18, 2025-11-25, 2026-07-28,
client, elicitation): text, a number, yes or no, one choice or several of a list. Nothing is nested
and nothing is null; a field that the user leaves blank is absent. A declaration is read like any
other; here its schema is made flat, or refused. The file is loaded with the first form.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from .._value import JSONMapping, JSONObject
from ._declared_schema import Shape, ShapeRead, read_shape
from .declare._field_options import Titles
from .declare._resolve import declarers
from .engines._compile import CompiledSchema
from .jsonschema._violation import Fault, show

#: On a class that has been asked for: its flat shape.
FLAT: Final = "__mcp_flat__"

# Keywords of the root that limit no answer; the last two forbid names that are dropped anyway.
_OF_THE_ROOT = frozenset(
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
_NAMED_ONLY: tuple[object, ...] = (True, False, {})


def flat_shape(declared: object) -> ShapeRead:
    """Read the declaration of a form.

    A form asks for text (`format`: email, uri, date, date-time), numbers with `min` and `max`,
    booleans, one choice or a list of choices. `| None` makes a field optional; a field that is left
    blank is None.

    Args:
        declared: A class with fields, a mapping (fields as data, or a JSON Schema), JSON text, or
            a ready `Shape`. The result for a class is kept, so that asking again costs a look-up;
            the result itself may be passed too.

    Returns:
        The shape, or None; and a fault for each field that no form can ask for. One of the two is
        empty. `schema` is a `requestedSchema` of the newest revision; `compiled` validates an
        answer; `build` turns it into an instance of the class, a record (fields as data) or a dict
        (JSON Schema). Both ignore names that were not asked for.
    """
    made = declared.__dict__.get(FLAT) if isinstance(declared, type) else None
    if made is not None:
        return made, []
    if isinstance(declared, Shape) and isinstance(declared.build, _FlatAnswers):
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


def older_form(schema: JSONMapping) -> JSONObject | None:
    """Return the schema of a form as 2025-06-18 defines it.

    There only booleans have a default, the titles of choices stand in `enumNames`, and no field has
    several choices (client/elicitation, Requested Schema).

    Args:
        schema: The `schema` of a flat shape.

    Returns:
        A `requestedSchema`; None if the revision cannot ask for one of the fields.
    """
    if any(field["type"] == "array" for field in schema["properties"].values()):
        return None
    older = {name: _older(field) for name, field in schema["properties"].items()}
    return {**schema, "properties": older}


def _older(field: JSONMapping) -> JSONObject:
    made = dict(field)
    if made["type"] != "boolean":
        made.pop("default", None)
    choices = made.pop("oneOf", None)
    if choices is not None:
        made["enum"] = [choice["const"] for choice in choices]
        made["enumNames"] = [choice["title"] for choice in choices]
    return made


@attrs.frozen(eq=False)
class _FlatAnswers:
    """The builder of answers.

    Attributes:
        names: The names that were asked for.
        absent: The names whose declaration has null where the user leaves the field blank.
        build: The builder of the declaration, if it has one.
    """

    names: tuple[str, ...]
    absent: dict[str, None]
    build: Callable[[object], object] | None

    def __call__(self, answer: object) -> object:
        known = self.complete(answer)
        return known if self.build is None else self.build(known)

    def complete(self, answer: object) -> Any:
        """Return an answer as the declaration expects it; a value of another type is unchanged."""
        if not isinstance(answer, dict):
            return answer
        given = {name: answer[name] for name in self.names if name in answer}
        return {**self.absent, **given}


def _answered(shape: Shape, flat: JSONObject, absent: dict[str, None]) -> Shape:
    """Return a shape with a flat schema, whose answers are validated by the declaration."""
    answers = _FlatAnswers(tuple(flat["properties"]), absent, shape.build)
    declared = shape.compiled
    compiled = CompiledSchema(
        flat,
        lambda answer: declared.is_valid(answers.complete(answer)),
        lambda answer: declared.violations(answers.complete(answer)),
        declared.engine,
    )
    changed: dict[str, object] = {"schema": flat, "build": answers, "compiled": compiled}
    changed["accepts"] = lambda answer: shape.accepts(answers.complete(answer))
    return Shape(**{**vars(shape), **changed})


def _flatten(
    schema: JSONMapping, titles: Mapping[str, Titles], owner: type | None
) -> tuple[JSONObject, dict[str, None], list[Fault]]:
    """Return the flat schema, the names for which blank means null, and the faults."""
    faults = [Fault((), text, owner) for text in _root_problems(schema)]
    properties: JSONObject = {}
    nullable: set[str] = set()
    owners = declarers(owner) if owner is not None else {}
    for name, declared in schema.get("properties", {}).items():
        bare, has_null = _without_null(declared if isinstance(declared, dict) else {})
        properties[name], problems = _flat_field(bare, *titles.get(name, (None, {})))
        if has_null:
            nullable.add(name)
        faults += [Fault((name,), text, owners.get(name, owner)) for text in problems]
    required = schema.get("required", [])
    asked = [name for name in required if name not in nullable]
    faults += [
        Fault((name,), "is required, but not among the properties; declare it", owner)
        for name in asked
        if name not in properties
    ]
    flat = {"type": "object", "properties": properties, **({"required": asked} if asked else {})}
    return flat, {name: None for name in required if name in nullable}, faults


def _root_problems(schema: Mapping[str, object]) -> list[str]:
    if "properties" not in schema:
        return [_NO_FIELDS]
    problems = [
        f"{show(keyword)} is not allowed in a form; leave it out, or check it in the handler"
        for keyword in schema
        if keyword not in _OF_THE_ROOT and not keyword.startswith("x-")
    ]
    extra = ("additionalProperties", "unevaluatedProperties")
    if any(schema.get(keyword, True) not in _NAMED_ONLY for keyword in extra):
        problems.append(_OTHERS)
    return problems


# One field.

_FORMATS = ("email", "uri", "date", "date-time")

# One order for every form; a keyword that is not here is never sent.
_ORDER = (
    *("type", "title", "description", "enum", "enumNames", "oneOf", "items"),
    *("format", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "default"),
)
_ALWAYS = ("type", "title", "description", "default")
_TAKEN: Mapping[str, tuple[str, ...]] = {
    "text": (*_ALWAYS, "format", "minLength", "maxLength"),
    "number": (*_ALWAYS, "minimum", "maximum"),
    "boolean": _ALWAYS,
    "choice": (*_ALWAYS, "enum", "enumNames", "oneOf"),
    "list": (*_ALWAYS, "items", "minItems", "maxItems"),
    "item": ("type", "title", "description", "enum", "anyOf"),
}
_CHOICES = ("enum", "enumNames", "oneOf")
_KINDS = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
}
# Keywords that forbid no answer: a form offers each choice once.
_HARMLESS = ("$comment", "examples", "deprecated", "readOnly", "writeOnly", "uniqueItems")
_HINTS = {
    "pattern": "use a format or choices (Literal), or check the answer in the handler",
    "exclusiveMinimum": "write min (minimum)",
    "exclusiveMaximum": "write max (maximum)",
    "multipleOf": "check the answer in the handler",
    "const": "write enum with this one value",
    "contentEncoding": "bytes cannot be typed in; ask for text (str)",
}
_NULL = {"type": "null"}

_NESTED = "is an object, and a form is flat; ask for its fields one by one, each with its own name"
_SEVERAL = "takes several types, and a field of a form has one; ask for text (str) and read it"
_ANYTHING = "takes anything; say what to ask for: text, a number, yes or no, or choices"
_NOTHING = "takes nothing but null; leave it out"
_FREE_LIST = (
    "is a list of free values, and a form lists choices only; write list[Literal[...]]"
    " (items with enum), or ask for text and split it"
)
_NOT_TEXT = "choice {} is not text; write the choices as text and convert them in the handler"


def _flat_field(
    schema: JSONObject, title: str | None, names: Mapping[object, str]
) -> tuple[JSONObject, list[str]]:
    """Turn the schema of a property into a field of a form.

    Args:
        schema: The schema of the property, valid and without null.
        title: The title of the field, if its declaration has one outside of the schema.
        names: The titles of choices, by value; a choice without one shows its value.

    Returns:
        A PrimitiveSchemaDefinition of the specification; or the reasons why no form can ask for it.
    """
    refusal = _refusal(schema)
    if refusal is not None:
        return {}, [refusal]
    kind = "choice" if {"enum", "oneOf"} & schema.keys() else _KINDS[schema["type"]]
    problems = [*_strangers(schema, kind), *_problems(schema, kind)]
    if problems:
        return {}, problems
    made = {key: value for key, value in schema.items() if key not in _CHOICES}
    if kind == "choice":
        made |= {"type": "string", **_choices(schema, "oneOf", names)}
    elif kind == "list":
        made["items"] = _choices(schema["items"], "anyOf", names)
    if title is not None:
        made["title"] = title
    return {key: made[key] for key in _ORDER if key in made}, []


def _without_null(declared: JSONObject) -> tuple[JSONObject, bool]:
    """Return a schema without null among its values, and True if null was one of them."""
    made, nullable = dict(declared), False
    branches = made.get("anyOf", ())
    others = [branch for branch in branches if branch != _NULL]
    if len(others) == 1 < len(branches) and isinstance(others[0], dict):
        del made["anyOf"]
        made, nullable = {**others[0], **made}, True
    kinds = made.get("type")
    if isinstance(kinds, list):
        rest = [kind for kind in kinds if kind != "null"]
        made["type"] = rest[0] if len(rest) == 1 else rest or "null"
        nullable = nullable or len(rest) < len(kinds)
    if None in made.get("enum", ()):
        made["enum"] = [value for value in made["enum"] if value is not None]
        nullable = nullable or "type" not in made
    if made.get("default", ...) is None:
        del made["default"]
    return made, nullable


def _refusal(schema: JSONMapping) -> str | None:
    """Return the reason why a schema is not a kind of field that forms have, or None."""
    kind = schema.get("type")
    if "$ref" in schema:
        return f"refers to {show(schema['$ref'])}, and a form is flat; write it out in this place"
    if isinstance(kind, list) or "anyOf" in schema or _is_union(schema.get("oneOf", [])):
        return _SEVERAL
    if kind is None and not {"enum", "oneOf"} & schema.keys():
        return _ANYTHING
    if kind == "array":
        items = schema.get("items")
        keywords = items.keys() if isinstance(items, dict) else set()
        free = not {"enum", "anyOf"} & keywords or _is_union(schema["items"].get("anyOf", []))
        return _FREE_LIST if free else None
    return {"object": _NESTED, "null": _NOTHING}.get(kind or "string")


def _is_union(branches: Any) -> bool:
    """Tell if branches are types, not choices, each of which is a `const`."""
    return not all(isinstance(branch, dict) and "const" in branch for branch in branches)


def _strangers(schema: Mapping[str, object], kind: str) -> Iterator[str]:
    """Yield a problem for each keyword that this kind of field does not have."""
    for keyword in schema:
        if keyword not in _TAKEN[kind] and keyword not in _HARMLESS and keyword[:2] != "x-":
            hint = _HINTS.get(keyword, "leave it out")
            where = "the items of a list" if kind == "item" else f"a {kind} field"
            yield f"{show(keyword)} is not allowed for {where} in a form; {hint}"


def _problems(schema: JSONMapping, kind: str) -> Iterator[str]:
    """Yield a problem for each keyword whose value no form can have."""
    if kind == "text":
        if (name := schema.get("format", _FORMATS[0])) not in _FORMATS:
            known = ", ".join(_FORMATS)
            yield f"format {show(name)} is unknown to forms ({known}); ask for text (str)"
    elif kind == "choice":
        yield from _choice_problems(schema, "oneOf")
        yield from _name_problems(schema)
    elif kind == "list":
        yield from _strangers(schema["items"], "item")
        yield from _choice_problems(schema["items"], "anyOf")


def _choice_problems(schema: JSONMapping, titled: str) -> Iterator[str]:
    """Yield the problems of choices, which stand in `enum` or, with titles, in another keyword."""
    branches = schema.get(titled, [])
    values = [*schema.get("enum", ()), *(branch["const"] for branch in branches)]
    others = [value for value in values if not isinstance(value, str)]
    if others:
        yield _NOT_TEXT.format(show(others[0]))
    elif schema.get("type", "string") != "string" or not values:
        yield "has no choices that fit its type; list some, as text"
    if branches and "enum" in schema:
        yield f"enum and {titled} together; keep {titled}, which has the titles"
    if not all(isinstance(branch.get("title"), str) for branch in branches):
        yield f"each choice in {titled} needs a title; write enum for choices without titles"


def _name_problems(schema: JSONMapping) -> Iterator[str]:
    names = schema.get("enumNames", [""] * len(schema.get("enum", ())))
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not texts or len(names) != len(schema.get("enum", ())):
        yield "enumNames must hold one text for each value of enum, in the same order"


def _choices(schema: JSONMapping, titled: str, names: Mapping[object, str]) -> JSONObject:
    """Return the keywords of choices: if there are titles, `titled`, else `enum`."""
    if titled in schema:
        return {titled: [{key: each[key] for key in ("const", "title")} for each in schema[titled]]}
    if names:
        values = schema["enum"]
        return {titled: [{"const": each, "title": names.get(each, each)} for each in values]}
    return {"type": "string", **{key: schema[key] for key in _CHOICES if key in schema}}
