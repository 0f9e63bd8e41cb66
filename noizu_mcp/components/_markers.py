"""What `field(…)` and `argument(…)` say beyond the schema: completions and titles."""

import inspect
from collections.abc import Iterable
from typing import Any

import attrs

from ..schema import Marker


def markers_of(form: Any) -> dict[str, Marker]:
    """Find the markers of a class, those that stand for its defaults and those in `Annotated`.

    Args:
        form: A class with fields.

    Returns:
        The marker of each field that has one.
    """
    found: dict[str, Iterable[Any]] = {
        name: getattr(annotation, "__metadata__", ())
        for cls in reversed(form.__mro__)
        for name, annotation in inspect.get_annotations(cls).items()
    }
    for field in attrs.fields(form) if attrs.has(form) else ():
        found[field.name] = (*found.get(field.name, ()), *field.metadata.values())
    return {
        name: entry for name, entries in found.items() for entry in entries if type(entry) is Marker
    }
