"""Faults of an emitted schema, reported at the fields that it comes from.

The file is loaded with the first fault: a form without any needs none of it.
"""

from collections.abc import Iterable, Iterator, Mapping

from ..._pointer import Path
from .._check import rejected_values
from ..declare._nodes import Node, Object
from ..declare._state import ParseState
from ..jsonschema._document import Document
from ..jsonschema._violation import Fault, Violation, show
from ..report._messages import describe
from ._emit import FieldPlace

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
    schema: Mapping[str, object],
    places: Mapping[Path, FieldPlace],
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
    placed = [*_at_fields(found, places), *_own_value_faults(schema, places)]
    # The schema of a field that has a fault already has faults that follow from it.
    faults = [*state.faults, *(fault for fault in placed if fault.path not in known)]
    names = [field.name for field in node.fields] if isinstance(node, Object) else []
    order: dict[object, int] = {name: place for place, name in enumerate(names)}
    # The whole first; a field that could not be made comes last.
    return sorted(faults, key=lambda f: order.get(f.path[0], len(names)) if f.path else -1)


def _at_fields(found: Iterable[Fault], places: Mapping[Path, FieldPlace]) -> Iterator[Fault]:
    """Yield the faults of a schema as faults of fields; faults of values have their own text."""
    for fault in found:
        path = fault.path
        length = next((n for n in range(len(path), 0, -1) if path[:n] in places), 0)
        if length == 0:
            yield fault
        elif path[length : length + 1] not in (("default",), ("examples",)):
            place = places[path[:length]]
            yield Fault(place.names, fault.text, place.owner)


def _own_value_faults(
    schema: Mapping[str, object], places: Mapping[Path, FieldPlace]
) -> Iterator[Fault]:
    """Yield a fault for each default and example that its own field refuses."""
    for path, at, value, violations in rejected_values(Document(schema)):
        if path in places:
            name = "default" if at == ("default",) else "example"
            yield Fault(places[path].names, _text(name, value, violations), places[path].owner)


def _text(name: str, value: object, violations: list[Violation]) -> str:
    first = violations[0]
    if first.keyword in _WORDS and not first.path:
        reason = _WORDS[first.keyword].format(show(first.expected))
    elif value is None:
        return f"{name} null does not fit the type; annotate it with | None, or leave it out"
    else:
        reason = "does not fit: " + describe(violations)[0].removeprefix("(root): ")
    return f"{name} {show(value)} {reason}; change the {name} or the field"
