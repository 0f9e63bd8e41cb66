"""One field of a form: what a client can ask its user for.

Spec 2025-11-25 and 2026-07-28, client/elicitation: text, a number, yes or no, one choice or several
of a list. Nothing is nested, nothing is null: what the user leaves blank is absent.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .jsonschema._violation import show

FORMATS = ("email", "uri", "date", "date-time")

# One order for every form; what is not here is never sent.
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
# They forbid no answer that a user can give: nobody picks the same choice twice.
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


class FlatField(NamedTuple):
    """A field as a form asks for it.

    Attributes:
        schema: A PrimitiveSchemaDefinition of the spec.
        nullable: True if null was among the declared values.
        problems: What no form can ask; the schema means nothing if there are any.
    """

    schema: dict[str, Any]
    nullable: bool
    problems: list[str]


def flat_field(declared: Any, title: str | None, names: Mapping[Any, str]) -> FlatField:
    """Turn the schema of a property into what a form asks for.

    Args:
        declared: The schema of the property, valid.
        title: A title that it does not have itself.
        names: What to show for a choice, by value; the value itself for those left out.
    """
    schema, nullable = _without_null(declared if isinstance(declared, dict) else {})
    refusal = _refusal(schema)
    if refusal is not None:
        return FlatField({}, nullable, [refusal])
    kind = _kind(schema)
    problems = [*_strangers(schema, kind), *_problems(schema, kind)]
    if problems:
        return FlatField({}, nullable, problems)
    made = {key: value for key, value in schema.items() if key not in _CHOICES}
    if kind == "choice":
        made |= _choice(schema, names)
    elif kind == "list":
        made["items"] = _items(schema["items"], names)
    if title is not None:
        made["title"] = title
    return FlatField({key: made[key] for key in _ORDER if key in made}, nullable, [])


def _without_null(declared: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return a schema without null among its values, and whether it was there."""
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


def _refusal(schema: Mapping[str, Any]) -> str | None:
    """Return why a schema is none of the kinds that a form has."""
    kind = schema.get("type")
    if "$ref" in schema:
        return f"refers to {show(schema['$ref'])}, and a form is flat; write it out in this place"
    if isinstance(kind, list) or "anyOf" in schema or _is_union(schema.get("oneOf", [])):
        return _SEVERAL
    if kind is None and not _has_choices(schema):
        return _ANYTHING
    if kind == "array" and _is_free(schema.get("items")):
        return _FREE_LIST
    return {"object": _NESTED, "null": _NOTHING}.get(kind or "string")


def _is_free(items: Any) -> bool:
    """Tell if the items of a list are no choices."""
    if not isinstance(items, dict):
        return True
    return not {"enum", "anyOf"} & items.keys() or _is_union(items.get("anyOf", []))


def _is_union(branches: Any) -> bool:
    return not all(isinstance(branch, dict) and "const" in branch for branch in branches)


def _has_choices(schema: Mapping[str, Any]) -> bool:
    return "enum" in schema or "oneOf" in schema


def _kind(schema: Mapping[str, Any]) -> str:
    return "choice" if _has_choices(schema) else _KINDS[schema["type"]]


def _strangers(schema: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield a problem for each keyword that this kind of field does not have."""
    for keyword in schema:
        if keyword not in _TAKEN[kind] and keyword not in _HARMLESS and keyword[:2] != "x-":
            hint = _HINTS.get(keyword, "leave it out")
            where = "the items of a list" if kind == "item" else f"a {kind} field"
            yield f"{show(keyword)} cannot be said of {where} in a form; {hint}"


def _problems(schema: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield a problem for each keyword whose value no form can have."""
    if kind == "text":
        yield from _format_problems(schema.get("format", FORMATS[0]))
    elif kind == "choice":
        yield from _choice_problems(schema, "oneOf")
        yield from _name_problems(schema)
    elif kind == "list":
        yield from _strangers(schema["items"], "item")
        yield from _choice_problems(schema["items"], "anyOf")


def _format_problems(name: str) -> Iterator[str]:
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        yield f"format {show(name)} is none that a form knows ({known}); ask for text (str)"


def _choice_problems(schema: Mapping[str, Any], titled: str) -> Iterator[str]:
    """Yield what is wrong with choices, which stand in `enum` or, titled, in another keyword."""
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


def _name_problems(schema: Mapping[str, Any]) -> Iterator[str]:
    names = schema.get("enumNames", [""] * len(schema.get("enum", ())))
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not texts or len(names) != len(schema.get("enum", ())):
        yield "enumNames must hold one text for each value of enum, in the same order"


def _choice(schema: Mapping[str, Any], names: Mapping[Any, str]) -> dict[str, Any]:
    """Return a single choice: `oneOf` if there are titles, else `enum`."""
    if "oneOf" in schema or names:
        return {"type": "string", "oneOf": _titled(schema, "oneOf", names)}
    kept = {key: schema[key] for key in ("enum", "enumNames") if key in schema}
    return {"type": "string", **kept}


def _items(items: Mapping[str, Any], names: Mapping[Any, str]) -> dict[str, Any]:
    """Return the items of a list of choices: `anyOf` if there are titles, else `enum`."""
    if "anyOf" in items or names:
        return {"anyOf": _titled(items, "anyOf", names)}
    return {"type": "string", "enum": items["enum"]}


def _titled(
    schema: Mapping[str, Any], keyword: str, names: Mapping[Any, str]
) -> list[dict[str, str]]:
    if keyword in schema:
        return [{"const": each["const"], "title": each["title"]} for each in schema[keyword]]
    return [{"const": value, "title": names.get(value, value)} for value in schema["enum"]]
