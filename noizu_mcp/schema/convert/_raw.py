"""JSON Schema written as such: a mapping, or JSON text."""

from collections.abc import Mapping
from json import JSONDecodeError, loads
from typing import Any

from ..jsonschema._fault import Fault
from ..jsonschema._violation import show
from ._dump import dump_value


def decode_schema(text: str) -> tuple[dict[str, Any] | None, list[Fault]]:
    """Return the object that JSON text holds, or what is wrong with the text.

    Args:
        text: JSON text; NaN, and a name that stands twice in one object, are faults.
    """
    faults: list[Fault] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in found:
            if name in made:
                faults.append(_at(text, name, f"duplicate name {name!r} in one object; keep one"))
            made[name] = value
        return made

    def constant(name: str) -> None:
        faults.append(_at(text, name, f"{name} is not JSON"))

    try:
        schema = loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except JSONDecodeError as error:
        fault = Fault((), f"invalid JSON text: {error.msg}", None, error.lineno, error.colno)
        return None, [fault]
    except (RecursionError, ValueError) as error:
        return None, [Fault((), f"invalid JSON text: {error}")]
    if not isinstance(schema, dict) and not faults:
        faults.append(Fault((), f"JSON schema text must hold an object, got {show(schema)}"))
    return (None, faults) if faults else (schema, [])


def _at(text: str, word: str, message: str) -> Fault:
    """Return a fault at the last place of a word in the text."""
    before = text[: text.rfind(word)]
    return Fault((), message, None, before.count("\n") + 1, len(before) - before.rfind("\n"))


def copy_schema(schema: Mapping[Any, Any]) -> tuple[dict[str, Any] | None, list[Fault]]:
    """Return a mapping as plain JSON, apart from the one given, or what is wrong with it."""
    try:
        return dump_value(dict(schema)), []
    except (TypeError, ValueError, RecursionError) as error:
        return None, [Fault((), f"a JSON Schema holds nothing but JSON: {error}")]
