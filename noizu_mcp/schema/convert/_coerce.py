"""Text that stands for a value of another type: `"3"` for 3, `"true"`, JSON text for an object.

Models send such text by mistake. It is read where its meaning is beyond doubt: the schema allows no
text at that place, under any of its alternatives. A keyword that is not looked at here can only
forbid more, so that text is left alone rather than read; the schema judges the result in any case.

A value is walked once. At each place stand the alternatives of the schema that may still apply, so
the time grows with the size of the value alone. The file is loaded with the first value that its
schema refuses.
"""

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final
from weakref import WeakKeyDictionary

from ..._json_schema import TYPES
from ..._limits import Limits
from ...jsonrpc import parse_json
from ..jsonschema._document import Document
from ..jsonschema._keywords import DIALECTS
from ..jsonschema._values import is_deeper, type_of

#: Subschemas that hold together; none of them says anything about a value that has no subschema.
Together = tuple[Mapping[str, Any], ...]

# More alternatives than a declaration has; a schema with more of them is not looked into.
_MAX_ALTERNATIVES: Final = 64
# Sets of alternatives that are remembered; a client chooses which of them occur.
_MAX_REMEMBERED: Final = 1000
# RFC 8259, section 6; `int` takes time that grows with the square of the digits.
_NUMBER: Final = re.compile(
    r"-?(?:0|[1-9][0-9]{0,399})(?P<real>(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?)"
)
_SPACE: Final = " \t\n\r"
_ANYTHING: Final[list[Together]] = [()]
_ALL: Final = frozenset(TYPES)

_readers: "WeakKeyDictionary[Any, TextReader]" = WeakKeyDictionary()


def coerce_text(shape: Any, value: object, limits: Limits) -> object:
    """Read the text in a value that stands for other types.

    Args:
        shape: The `Shape` of the value, which does not fit it.
        value: The value; it is not changed.
        limits: JSON text has the depth and the number of values of a message.

    Returns:
        A value that shares all unchanged parts; the value itself if there is no such text, or if
        the result breaks a limit. Whether the result fits is left to the caller.
    """
    reader = _readers.get(shape)
    if reader is None:
        reader = _readers[shape] = TextReader(shape.schema)
    return reader.read(value, limits)


class PlaceOptions:
    """The alternatives that may apply at one place, and at the places inside it.

    Attributes:
        alternatives: The alternatives; with none, nothing is known to fit.
        kinds: The JSON types that one of them allows.
        marks: For each alternative, the values that tell it: names, with the choices of each.
        members: The options of members, by name; None where anything is allowed.
        first: The number of first items that have schemas of their own.
        items: The options of items, by index; the last entry is for all further items.
        chosen: The options that are left of these, by the alternatives that fit.
    """

    def __init__(self, alternatives: list[Together]) -> None:
        self.alternatives = alternatives
        self.kinds = frozenset[str]().union(*map(_kinds_together, alternatives))
        self.marks = [_marks(each) for each in alternatives] if len(alternatives) > 1 else []
        self.members: dict[str | None, PlaceOptions | None] = {}
        self.first = max((len(node.get("prefixItems", ())) for node in _nodes(self)), default=0)
        self.items: dict[int, PlaceOptions | None] = {}
        self.chosen: dict[tuple[int, ...], PlaceOptions] = {}


class TextReader:
    """Reads text for other types in the values of one schema.

    Args:
        schema: The schema, which was compiled before.
    """

    def __init__(self, schema: object) -> None:
        self._document = Document(schema)
        # Up to draft 7 all that stands beside a reference is ignored.
        self._is_old = DIALECTS.get(self._document.dialect) in ("4", "6", "7")
        self._expanded: dict[int, list[Together]] = {}
        # One for each set of alternatives, so that a recursive schema has finitely many.
        self._remembered: dict[tuple[tuple[int, ...], ...], PlaceOptions] = {}
        self._root = self._remember(self._expand(schema, ()))

    def read(self, value: object, limits: Limits) -> Any:
        """Return a value with such text read; see `coerce_text`."""
        if len(self._remembered) > _MAX_REMEMBERED:
            self._remembered.clear()
            self._root = self._remember(self._root.alternatives)
        walk = _Walk(self, limits)
        made = walk.value(self._root, value, 0)
        return value if made is value or is_deeper(made, limits.message_depth) else made

    def _expand(self, schema: object, outside: tuple[int, ...]) -> list[Together]:
        """Return the alternatives of a subschema.

        Args:
            schema: The subschema.
            outside: The subschemas that are being expanded, by identity.
        """
        if not isinstance(schema, dict):
            return [] if schema is False else _ANYTHING
        known = self._expanded.get(id(schema))
        if known is not None:
            return known
        if id(schema) in outside:
            return _ANYTHING
        inside = (*outside, id(schema))
        alone = "$ref" in schema and self._is_old
        made: list[Together] = _ANYTHING if alone else [(schema,)]
        if "$ref" in schema:
            target = self._document.find(schema["$ref"], schema)
            made = _product(made, self._expand(target, inside))
        for each in schema.get("allOf", ()):
            made = _product(made, self._expand(each, inside))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = [self._expand(each, inside) for each in schema[keyword]]
                made = _product(made, [each for branch in branches for each in branch])
        if not outside:
            self._expanded[id(schema)] = made
        return made

    def member(self, options: PlaceOptions, name: str) -> PlaceOptions | None:
        """Return the options of a member; None where anything is allowed."""
        if name in options.members:
            return options.members[name]
        declared = any(name in node.get("properties", ()) for node in _nodes(options))
        # Names that are not declared are chosen by a client: they share one entry.
        key = name if declared else None
        if key not in options.members:
            found = [
                [node.get("properties", {}).get(name, _rest(node)) for node in alternative]
                for alternative in options.alternatives
            ]
            options.members[key] = self._options(found)
        return options.members[key]

    def item(self, options: PlaceOptions, index: int) -> PlaceOptions | None:
        """Return the options of an item; None where anything is allowed."""
        key = min(index, options.first)
        if key not in options.items:
            found = [
                [_item_schema(node, key) for node in alternative]
                for alternative in options.alternatives
            ]
            options.items[key] = self._options(found)
        return options.items[key]

    def _options(self, found: Iterable[list[object]]) -> PlaceOptions | None:
        """Return the options of a place from the subschemas that each alternative has for it."""
        alternatives: list[Together] = []
        for together in found:
            made = _ANYTHING
            for schema in together:
                made = _product(made, self._expand(schema, ()))
            alternatives += made
        if () in alternatives or len(alternatives) > _MAX_ALTERNATIVES:
            return None
        return self._remember(alternatives)

    def _remember(self, alternatives: list[Together]) -> PlaceOptions:
        key = tuple(tuple(map(id, together)) for together in alternatives)
        made = self._remembered.get(key)
        if made is None:
            made = self._remembered[key] = PlaceOptions(alternatives)
        return made

    def choose(
        self, options: PlaceOptions, value: dict[str, object] | list[object]
    ) -> PlaceOptions:
        """Return the options that are left for a container: by its type, names and constants."""
        if not options.marks:
            return options
        if isinstance(value, dict):
            fitting = tuple(n for n, marks in enumerate(options.marks) if _is_marked(marks, value))
        else:
            found = enumerate(options.alternatives)
            fitting = tuple(n for n, each in found if "array" in _kinds_together(each))
        made = options.chosen.get(fitting)
        if made is None:
            left = [options.alternatives[n] for n in fitting]
            made = options.chosen[fitting] = self._remember(left)
        return made


class _Walk:
    """One walk through a value.

    Args:
        reader: The reader of its schema.
        limits: The limits of JSON text.
    """

    def __init__(self, reader: TextReader, limits: Limits) -> None:
        self._reader = reader
        self._depth = limits.message_depth
        self._left = limits.message_values

    def value(self, options: PlaceOptions | None, value: object, depth: int) -> Any:
        """Return a value with the text in it read; the value itself if it has no such text.

        Args:
            options: The options of its place; None where anything is allowed.
            value: The value.
            depth: The number of containers around it.
        """
        if options is None or depth > self._depth:
            return value
        if isinstance(value, str):
            return self._text(options, value, depth)
        if isinstance(value, dict):
            return self._object(options, value, depth + 1)
        return self._array(options, value, depth + 1) if isinstance(value, list) else value

    def _object(self, options: PlaceOptions, value: dict[str, object], depth: int) -> object:
        options = self._reader.choose(options, value)
        made: dict[str, object] | None = None
        for name, inner in value.items():
            if inner.__class__ not in (str, dict, list):
                continue
            read = self.value(self._reader.member(options, name), inner, depth)
            if read is not inner:
                made = dict(value) if made is None else made
                made[name] = read
        return value if made is None else made

    def _array(self, options: PlaceOptions, value: list[object], depth: int) -> object:
        options = self._reader.choose(options, value)
        made: list[object] | None = None
        for index, inner in enumerate(value):
            if inner.__class__ not in (str, dict, list):
                continue
            read = self.value(self._reader.item(options, index), inner, depth)
            if read is not inner:
                made = list(value) if made is None else made
                made[index] = read
        return value if made is None else made

    def _text(self, options: PlaceOptions, text: str, depth: int) -> object:
        kinds = options.kinds
        if "string" in kinds:
            return text
        if "boolean" in kinds and text in ("true", "false"):
            return text == "true"
        if "integer" in kinds and (found := _NUMBER.fullmatch(text)):
            number = float(text) if found["real"] else int(text)
            return number if isfinite(number) else text
        first = text.lstrip(_SPACE)[:1]
        if (first == "{" and "object" in kinds) or (first == "[" and "array" in kinds):
            parsed = self._parse(text)
            return text if parsed is None else self.value(options, parsed, depth)
        return text

    def _parse(self, text: str) -> object:
        """Decode JSON text; None if it is not JSON, or exceeds the limits of a message."""
        # Each value but the first has one of these before it; marks in strings are counted, too.
        values = text.count(",") + text.count("[") + text.count("{")
        if values > self._left:
            return None
        try:
            parsed: object = parse_json(text.encode(), self._depth, self._left)
        except (ValueError, RecursionError):
            return None
        self._left -= values
        return parsed


def _product(left: list[Together], right: list[Together]) -> list[Together]:
    """Return each of some alternatives together with each of others."""
    if len(left) * len(right) > _MAX_ALTERNATIVES:
        return _ANYTHING
    return [(*one, *other) for one in left for other in right]


def _nodes(options: PlaceOptions) -> Iterable[Mapping[str, Any]]:
    return (node for alternative in options.alternatives for node in alternative)


def _rest(node: Mapping[str, object]) -> object:
    """Return the schema of names that are not declared."""
    return True if "patternProperties" in node else node.get("additionalProperties", True)


def _item_schema(node: Mapping[str, Any], index: int) -> object:
    first, rest = node.get("prefixItems", ()), node.get("items", True)
    if isinstance(rest, list):  # the form before 2020-12
        return True
    return first[index] if index < len(first) else rest


def _kinds_together(together: Together) -> frozenset[str]:
    return _ALL.intersection(*map(_kinds, together))


def _kinds(node: Mapping[str, Any]) -> frozenset[str]:
    """Return the JSON types that a subschema allows; "number" includes "integer"."""
    found: Iterable[str] = node.get("type", _ALL)
    kinds = {found} if isinstance(found, str) else set(found)
    for values in (node.get("enum"), [node["const"]] if "const" in node else None):
        if values is not None:
            kinds &= {kind for value in values for kind in _with_numbers(type_of(value))}
    return frozenset(kinds | {"integer"} if "number" in kinds else kinds)


def _with_numbers(kind: str) -> tuple[str, ...]:
    return ("integer", "number") if kind in ("integer", "number") else (kind,)


#: The names that an object must have; and names with the choices for their values.
_Marks = tuple[frozenset[str], list[tuple[str, frozenset[object]]]]


def _marks(together: Together) -> _Marks | None:
    """Return the values by which an object shows that it means an alternative; None for none."""
    if "object" not in _kinds_together(together):
        return None
    required = frozenset(name for node in together for name in node.get("required", ()))
    chosen: list[tuple[str, frozenset[object]]] = []
    for node in together:
        for name, inner in node.get("properties", {}).items():
            if isinstance(inner, dict) and ("enum" in inner or "const" in inner):
                values = [*inner.get("enum", ()), *([inner["const"]] if "const" in inner else ())]
                # Another value might be written as text, and would tell nothing then.
                if all(isinstance(value, str) for value in values):
                    chosen.append((name, frozenset(values)))
    return required, chosen


def _is_marked(marks: _Marks | None, value: Mapping[str, object]) -> bool:
    """Tell if an object may mean an alternative."""
    if marks is None or not marks[0] <= value.keys():
        return False
    sent = ((value[name], choices) for name, choices in marks[1] if name in value)
    return all(isinstance(each, str) and each in choices for each, choices in sent)
