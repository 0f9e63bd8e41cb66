"""Arguments of a tool, read from the command line as its schema declares them."""

import json
from collections.abc import Sequence

from .._json_schema import JSON_TYPES
from .._util import part_of
from .._value import JSON, JSONObject
from ._errors import USAGE, CommandError


def read_arguments(pairs: Sequence[str], text: str | None, schema: JSONObject) -> JSONObject:
    """Read the arguments of a call.

    Args:
        pairs: `name=value` each. A value is taken as JSON where it is JSON of a type that the
            tool declares, else as text.
        text: One JSON object; single arguments win over it.
        schema: The input schema of the tool; empty if it is not known.

    Raises:
        CommandError: Something is not of that form.
    """
    arguments = {} if text is None else read_json(text, "--args")
    if not isinstance(arguments, dict):
        raise CommandError("--args must be a JSON object", USAGE)
    properties = part_of(schema, "properties", dict)
    for name, value in read_texts(pairs).items():
        arguments[name] = _read_value(value, _types(properties.get(name)))
    return arguments


def read_texts(pairs: Sequence[str]) -> dict[str, str]:
    """Read arguments as texts: prompts take no others.

    Args:
        pairs: `name=value` each; the last one of a name counts.

    Raises:
        CommandError: One is not of that form.
    """
    texts = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"write arguments as name=value, not {pair!r}", USAGE)
        texts[name] = value
    return texts


def read_json(text: str, option: str) -> JSON:
    """Read the JSON of an option.

    Raises:
        CommandError: It is not JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise CommandError(f"{option} is not JSON: {error}", USAGE) from error


def _read_value(text: str, types: set[str]) -> JSON:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    # A tool that takes text gets it as it was typed, quotes included.
    if not types or (types & _type_names(value)) - {"string"}:
        return value
    # A value of a wrong type is sent as it looks: the tool knows best which type it needs.
    return text if "string" in types else value


def _types(schema: JSON) -> set[str]:
    """Collect the types that a schema names; an empty result allows any type."""
    if not isinstance(schema, dict):
        return set()
    named = [schema.get("type"), *part_of(schema, "type", list)]
    types = {name for name in named if isinstance(name, str)}
    constant = [schema["const"]] if "const" in schema else []
    for value in part_of(schema, "enum", list) + constant:
        types |= _type_names(value)
    for keyword in ("anyOf", "oneOf"):
        for branch in part_of(schema, keyword, list):
            types |= _types(branch)
    return types


def _type_names(value: JSON) -> set[str]:
    # 2020-12 validation section 6.1.1: a number without a fractional part is an integer.
    name = JSON_TYPES[type(value)]
    is_whole = name == "integer" or (isinstance(value, float) and value.is_integer())
    return {"number", "integer"} if is_whole else {name}
