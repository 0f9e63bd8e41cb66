"""The parameters of a tool that take handles, as its definition describes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..._value import JSONObject
from ...schema import HANDLE, ordered


def describe_handles(
    schema: JSONObject, handles: Mapping[str, type], sources: Mapping[type, Sequence[str]]
) -> JSONObject:
    """Describe the parameters that take handles.

    Args:
        schema: The input schema, with the descriptions of the author.
        handles: The class of each of these parameters.
        sources: The names of the tools that return a handle of a class.

    Returns:
        A new schema.
    """
    properties: JSONObject = dict(schema["properties"])
    for name, cls in handles.items():
        found: Mapping[str, Any] = properties[name]
        text = _description(found.get("description"), cls, sources.get(cls, ()))
        properties[name] = ordered({**found, "description": text})
    return {**schema, "properties": properties}


def _description(own: str | None, cls: Any, tools: Sequence[str]) -> str:
    about = getattr(cls, HANDLE).about or cls.__name__
    where = f"its id, as {' or '.join(tools)} returned it" if tools else "its id"
    text = f"{about.rstrip('.')}: {where}"
    return f"{own.rstrip('.')}. {text}" if own else text
