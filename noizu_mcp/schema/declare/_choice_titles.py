"""Names for people: of a field, and of the choices of an enum. Only forms show them.

A tool schema is read by a model, for which a title is noise; a form is read by the client's user.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from ..jsonschema._nearest import nearest
from ._nodes import Array, Choice, Node, Object, Union

# Of one field: its title, and the titles of its choices by their JSON values.
Titles = tuple[str | None, Mapping[Any, str]]

_NO_CHOICES = (
    "titles names the choices of an enum, and there are none here;"
    " write Literal[...], an Enum or a list of them, or leave titles out"
)


def title_choices(node: Node, titles: Mapping[Any, str]) -> list[str]:
    """Put titles on the choices of a node: an enum, a list of one, a union with one.

    Args:
        node: The node.
        titles: By value or by enum member; a choice that is left out shows its value.

    Returns:
        What is wrong: a title for what is no choice, or no choices at all.
    """
    found = list(_choices(node))
    problems = [] if found else [_NO_CHOICES]
    for choice in found:
        named = {_value(key): text for key, text in titles.items()}
        problems.extend(_stranger(choice, key) for key in named if not _is_value(choice, key))
        choice.titles = named
    return problems


def form_titles(node: Node) -> dict[str, Titles]:
    """Return the titles of each field of the root that has any."""
    fields = node.fields if isinstance(node, Object) else ()
    found = {field.name: (field.title, _titles_of(field.node)) for field in fields}
    return {name: titles for name, titles in found.items() if any(titles)}


def _titles_of(node: Node) -> Mapping[Any, str]:
    return next((choice.titles for choice in _choices(node) if choice.titles), {})


def _choices(node: Node) -> Iterator[Choice]:
    if isinstance(node, Choice):
        yield node
    elif isinstance(node, (Union, Array)):
        for child in node.children():
            yield from _choices(child)


def _value(key: Any) -> Any:
    return key.value if isinstance(key, Enum) else key


def _is_value(choice: Choice, key: Any) -> bool:
    """Tell if a key is one of the values that a form can show; null is the absence of a choice."""
    return any(type(value) is type(key) and value == key for value in _shown(choice))


def _shown(choice: Choice) -> list[Any]:
    return [value for value in choice.values if value is not None]


def _stranger(choice: Choice, key: Any) -> str:
    known = _shown(choice)
    meant = nearest(key, [v for v in known if isinstance(v, str)]) if isinstance(key, str) else None
    hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(map(repr, known))}"
    return f"titles names {key!r}, which is no choice; {hint}"
