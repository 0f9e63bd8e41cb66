"""Faults of an emitted schema, told as faults of the fields that it comes from.

The file is loaded with the first fault: a form without any needs none of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..._errors import SchemaError
from ..declare._annotations import ParseState
from ..declare._nodes import Node, Object
from ..engines._compile import compile_schema
from ..jsonschema._fault import Fault
from ..jsonschema._violation import show
from ..report._messages import describe
from ._emit import Path, Place

# How a field says that a keyword is broken.
_WORDS = {
    "maximum": "is above max {}",
    "minimum": "is below min {}",
    "exclusiveMaximum": "is not below exclusive_max {}",
    "exclusiveMinimum": "is not above exclusive_min {}",
    "multipleOf": "is not a multiple of {}",
    "maxLength": "is longer than max_length {}",
    "minLength": "is shorter than min_length {}",
    "maxItems": "has more items than max {}",
    "minItems": "has fewer items than min {}",
    "pattern": "does not match the pattern {}",
    "enum": "is not one of {}",
}


def all_faults(
    state: ParseState,
    node: Node,
    schema: Mapping[str, Any],
    places: Mapping[Path, Place],
    found: list[Fault],
) -> list[Fault]:
    """Return the faults of a declaration and of its schema, in the order of the fields.

    Args:
        state: The state after the form was read, with its faults.
        node: The root of the form.
        schema: The emitted schema.
        places: The field that each part of the schema comes from.
        found: The faults of the schema.
    """
    known = {fault.path for fault in state.faults}
    placed = [_at_field(fault, places) for fault in found if not _is_own_value(fault.path, places)]
    placed += _own_value_faults(schema, places)
    # The schema of a field that has a fault already has faults that follow from it.
    faults = [*state.faults, *(fault for fault in placed if fault.path not in known)]
    names = [field.name for field in node.fields] if isinstance(node, Object) else []
    order: dict[Any, int] = {name: place for place, name in enumerate(names)}
    # The whole first; a field that could not be made comes last.
    return sorted(faults, key=lambda f: order.get(f.path[0], len(names)) if f.path else -1)


def _is_own_value(path: Path, places: Mapping[Path, Place]) -> bool:
    """Tell if a fault is about the default or an example of a field."""
    return (path[:-1] in places and path[-1] == "default") or (
        path[:-2] in places and path[-2] == "examples"
    )


def _at_field(fault: Fault, places: Mapping[Path, Place]) -> Fault:
    for length in range(len(fault.path), 0, -1):
        place = places.get(fault.path[:length])
        if place is not None:
            return Fault(place.names, fault.text, place.owner)
    return fault


def _own_value_faults(schema: Mapping[str, Any], places: Mapping[Path, Place]) -> Iterator[Fault]:
    """Yield a fault for each default and example that its own field refuses."""
    for path, (names, owner, _) in places.items():
        field: Any = schema
        for step in path:
            field = field[step]
        bare = {key: part for key, part in field.items() if key not in ("default", "examples")}
        values = [("default", field["default"])] if "default" in field else []
        values += [("example", example) for example in field.get("examples", ())]
        for name, value in values:
            text = _text({**bare, "$defs": schema.get("$defs", {})}, name, value)
            if text is not None:
                yield Fault(names, text, owner)


def _text(schema: Mapping[str, Any], name: str, value: Any) -> str | None:
    try:
        violations = compile_schema(schema).violations(value)
    except SchemaError:
        # A field with a broken schema has a fault of its own.
        return None
    if not violations:
        return None
    first = violations[0]
    if first.keyword in _WORDS and not first.path:
        reason = _WORDS[first.keyword].format(show(first.expected))
    elif value is None:
        return f"{name} null does not fit the type; annotate it with | None, or leave it out"
    else:
        reason = "does not fit: " + describe(violations)[0].removeprefix("(root): ")
    return f"{name} {show(value)} {reason}; change the {name} or the field"
