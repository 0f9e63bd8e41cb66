"""What is wrong with defaults and examples, in the words of the options that they break."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..._errors import SchemaError
from ..engines._compile import compile_schema
from ..jsonschema._fault import Fault
from ..jsonschema._violation import show
from ..report._messages import describe
from ._emit import Path, Place

# Keyword → how a field says it.
_WORDS = {
    "maximum": "is above max {}",
    "minimum": "is below min {}",
    "exclusiveMaximum": "is not below exclusive_max {}",
    "exclusiveMinimum": "is not above exclusive_min {}",
    "multipleOf": "is no multiple of {}",
    "maxLength": "is longer than max_length {}",
    "minLength": "is shorter than min_length {}",
    "maxItems": "has more items than max {}",
    "minItems": "has fewer items than min {}",
    "pattern": "does not match the pattern {}",
    "enum": "is none of {}",
}


def own_value_faults(schema: Mapping[str, Any], places: Mapping[Path, Place]) -> Iterator[Fault]:
    """Yield a fault for each default and example that its own field refuses.

    Args:
        schema: The whole schema, which may have other faults: a field that has is passed over.
        places: Where the schema of each field stands in it.
    """
    for path, (names, owner) in places.items():
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
