"""What is wrong with a default or an example, in the words of the options that it breaks."""

from collections.abc import Mapping
from typing import Any

from ._emit import Path
from ._engine import compile_schema
from ._report import describe
from ._violation import show

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


def own_value_text(schema: Mapping[str, Any], at: Path, what: Path) -> str:
    """Return why the default or an example of a field breaks the field's own schema.

    Args:
        schema: The whole schema.
        at: Where the schema of the field stands in it.
        what: Where the value stands in that: `("default",)` or `("examples", 0)`.
    """
    field: Any = schema
    for step in at:
        field = field[step]
    name = "default" if what == ("default",) else "example"
    value = field["default"] if what == ("default",) else field["examples"][what[1]]
    bare = {key: part for key, part in field.items() if key not in ("default", "examples")}
    compiled = compile_schema({**bare, "$defs": schema.get("$defs", {})})
    violations = compiled.violations(value)
    first = violations[0]
    if first.keyword in _WORDS and not first.path:
        reason = _WORDS[first.keyword].format(show(first.expected))
    elif value is None:
        reason = "does not fit the type; annotate it with | None, or leave the default out"
        return f"{name} null {reason}"
    else:
        reason = "does not fit: " + describe(violations)[0].removeprefix("(root): ")
    return f"{name} {show(value)} {reason}; change the {name} or the field"
