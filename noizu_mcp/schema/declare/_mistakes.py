"""Mistakes in a declaration, each answered with the right form.

They are typical for users of pydantic, FastMCP, attrs, dataclasses or plain JSON Schema.
The file is loaded with the first mistake.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from inspect import get_annotations
from types import ModuleType, NoneType
from typing import Any, get_origin

from ..._nearest import nearest
from ._field import Marker


def _by_word(table: Mapping[str, str]) -> dict[str, str]:
    """Return the text for each word, from a table of texts for several words."""
    return {word: text for words, text in table.items() for word in words.split()}


# Options of other libraries and of JSON Schema, in small letters with underscores → ours.
_WORDS = _by_word(
    {
        "ge minimum min_items min_properties min_value": "min",
        "le maximum max_items max_properties max_value": "max",
        "gt exclusive_minimum": "exclusive_min",
        "lt exclusive_maximum": "exclusive_max",
        "multiple step": "multiple_of",
        "min_len": "min_length",
        "max_len": "max_length",
        "regex regexp matches": "pattern",
        "unique_items": "unique",
        "default_factory missing": "factory",
        "example": "examples=[...]",
        "desc help doc about": "description",
        "label verbose_name": "title",
        "completions suggestions completer": "complete",
    }
)
# Options without a counterpart → the way to go instead.
_ADVICE = _by_word(
    {
        "const enum choices values options one_of": (
            "write the choices as the type: Literal[...] or an Enum"
        ),
        "nullable allow_none none": "write | None after the type",
        "optional": "write required=False",
        "type annotation python_type": "write the type as the annotation",
        "alias name serialization_alias validation_alias": (
            "a field is sent by its own name; rename it, or write the input as a mapping of names"
            " to fields"
        ),
        "json_schema_extra schema_extra extra metadata": (
            "write the whole schema as input_schema to use other keywords"
        ),
        "validator validate validators converter convert": (
            "check the value in the handler, or write an attrs class with validators as the type"
        ),
        "init repr eq order hash kw_only exclude frozen strict deprecated validate_default": (
            "leave it out, it has no meaning in a schema"
        ),
    }
)
# The data form has its own advice.
_DATA_ADVICE = _by_word(
    {
        "const enum choices values": 'write f.enum("plain", "loud")',
        "items item type": "write f.array(f.string())",
        "properties fields": "write f.object({...})",
        "factory default_factory": "write default=, which is copied for each call",
        "alias": "the name in the mapping is the name that is sent; any text will do",
    }
)
# The name of an option in another family of types.
_LENGTHS = {"min_length": "min", "max_length": "max"}
_IN_FAMILY: Mapping[str, Mapping[str, str]] = {
    "string": {"min": "min_length", "max": "max_length"},
    "integer": _LENGTHS,
    "number": _LENGTHS,
    "array": _LENGTHS,
    "object": _LENGTHS,
}
_NO_CHOICES = (
    "titles names the choices of an enum, and there are none here;"
    " write Literal[...], an Enum or a list of them, or leave titles out"
)


def unknown_option(marker: Marker, option: str, known: Iterable[str]) -> str:
    """Return the problem of an option that a maker does not take.

    Args:
        marker: The field.
        option: The option as it was written.
        known: The options that the maker takes.
    """
    # `minItems` and `min_items` are one word.
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", option).lower()
    advice = (_DATA_ADVICE.get(word) if marker.kind is not None else None) or _ADVICE.get(word)
    ours = _WORDS.get(word, word)
    if advice is None and ours.partition("=")[0] in known:
        advice = f"write {ours}"
    if advice is not None:
        return f"{marker.maker} has no option {option!r}; {advice}"
    names = sorted(known)
    found = nearest(option, names)
    hint = f"did you mean {found!r}?" if found else f"known: {', '.join(names)}"
    return f"unknown option {option!r} of {marker.maker}; {hint}"


def misfit(families: list[str], option: str, own: list[str]) -> str:
    """Return the problem of an option that belongs to other types.

    Args:
        families: The types of the field.
        option: The option.
        own: The options that these types take.
    """
    text = f"{option} does not belong to {' or '.join(families) or 'null'}"
    for kind in families:
        if option in _IN_FAMILY.get(kind, ()):
            return f"{text}; write {_IN_FAMILY[kind][option]}"
    return f"{text}, which takes {', '.join(own)}" if own else f"{text}; leave it out"


def titles_problems(strangers: list[tuple[object, list[object]]]) -> list[str]:
    """Return the problems of titles for values that are not choices.

    Args:
        strangers: Each such value, with the choices; empty if there are no choices at all.
    """
    problems: list[str] = []
    for key, known in strangers:
        texts = [value for value in known if isinstance(value, str)]
        meant = nearest(key, texts) if isinstance(key, str) else None
        hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(map(repr, known))}"
        problems.append(f"titles names {key!r}, which is not a choice; {hint}")
    return problems or [_NO_CHOICES]


_SCALARS = (str, int, float, bool)
_MUTABLE = (list, dict, set)
# The types whose `repr` is what the author wrote.
_WRITTEN = (*_SCALARS, tuple, NoneType)
# The types that the makers of the data form stand for.
_KINDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
# The class of the value that another library's field function returns → its name in messages.
_FOREIGN = {
    ("pydantic.fields", "FieldInfo"): "pydantic's Field(...)",
    ("attr._make", "_CountingAttr"): "attrs.field(...)",
    ("dataclasses", "Field"): "dataclasses.field(...)",
}


def foreign_field(value: object) -> str | None:
    """Return the problem of a value that another library's field function made, or None."""
    cls = type(value)
    maker = _FOREIGN.get((cls.__module__, cls.__qualname__))
    return f"{maker} is not read here; write field(...)" if maker is not None else None


def unannotated(cls: type) -> Iterator[tuple[str, str]]:
    """Yield a name and a problem for each value in a class body that was meant as a field.

    Functions and other callables, descriptors, classes and modules are left alone, as in any class;
    upper case (PEP 8) and a leading underscore mark a constant.

    Args:
        cls: A class whose fields are its annotations.
    """
    annotated = get_annotations(cls)
    for name, value in vars(cls).items():
        if name in annotated or name.startswith("_"):
            continue
        if isinstance(value, Marker):
            written = f"{name}: {_KINDS.get(value.kind or '', '<type>')} ="
            if value.kind is None:
                maker = value.maker
                yield name, f"{maker}(...) without an annotation; write {written} {maker}(...)"
            else:
                text = f"{value.maker}(...) is for mappings; in a class write {written} field(...)"
                yield name, text
        elif (problem := foreign_field(value)) is not None:
            yield name, problem.replace("write ", f"write {name}: <type> = ")
        elif not name.isupper() and (field := _as_field(cls, name, value)) is not None:
            text = (
                f"has no annotation, so that it is not a field; write {field},"
                " or annotate it with ClassVar if it is a constant"
            )
            yield name, text


def _as_field(cls: type, name: str, value: Any) -> str | None:
    """Return the field that a value without annotation was meant to be; None if it is no data."""
    kind = type(value)
    if value in (*_SCALARS, *_MUTABLE) if kind is type else get_origin(value) is not None:
        shown = value.__name__ if kind is type else str(value).replace("typing.", "")
        return None if name[0].isupper() else f"{name}: {shown}"
    if kind in _MUTABLE:
        return f"{name}: {kind.__name__}[<type>] = field(factory={kind.__name__})"
    # Any other object was meant as a default, `scope = Scope.ALL`: without its annotation it would
    # be no field, and the model would never hear of it.
    is_member = callable(value) or hasattr(kind, "__get__") or kind is ModuleType
    if kind not in _WRITTEN and (is_member or name[0].isupper()):
        return None
    inherited = (get_annotations(base).get(name) for base in cls.__mro__[1:])
    annotation = next(filter(None, inherited), kind)
    if annotation is NoneType:
        return f"{name}: <type> | None = None"
    shown = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "<type>")
    if isinstance(value, Enum):
        return f"{name}: {shown} = {kind.__name__}.{value.name}"
    return f"{name}: {shown} = {repr(value) if kind in _WRITTEN else '…'}"
