"""Input schemas in the subset of JSON Schema that an API takes.

A `Dialect` says what an API takes; `Adapter` writes a schema in it. Every keyword that is left out
becomes a part of the description, so that a model may still obey it, and a loss.

Where every property must be required, an optional one becomes one that may be null, and `restore`
leaves the null out again. The law of this file: `restore` of a value that the adapted schema allows
is a value that the original schema allows, unless a loss says otherwise.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, NamedTuple

from .._json_schema import BOUNDS, CLOSING, JSON_TYPES
from .._pointer import escape
from .._value import JSONObject
from ..schema import or_null
from ._compose import Composer, describe_lost, keys_of, legal_name, types_in
from ._limits import StrictModeError
from ._restore import (
    Adapted,
    Restore,
    judge,
    restore_by,
    restore_items,
    restore_members,
    restore_one,
)

_NUMBER: Final = (*BOUNDS, "multipleOf")
#: The keywords that validate values of a type, except the ones that `_object` and `_array` read.
_JUDGES: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": _NUMBER,
    "number": _NUMBER,
    "boolean": (),
    "array": (
        *("minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
        "unevaluatedItems",
    ),
    "object": (
        *("minProperties", "maxProperties", "propertyNames", "dependentRequired"),
        "dependentSchemas",
    ),
}
#: The keywords that tell the type of a value.
_KEYWORDS: Final = {
    **{kind: frozenset(keys) for kind, keys in _JUDGES.items()},
    "integer": frozenset[str](),
    "array": frozenset({*_JUDGES["array"], "items", "prefixItems"}),
    "object": frozenset({*_JUDGES["object"], "properties", "required", "patternProperties"})
    | CLOSING,
}
#: The inclusive bound of an integer that has an exclusive one.
_INTEGER_BOUNDS: Final[Mapping[str, tuple[str, int, Callable[[int, int], int]]]] = {
    "exclusiveMinimum": ("minimum", 1, max),
    "exclusiveMaximum": ("maximum", -1, min),
}
#: Alternatives that are compared with each other; the time grows with the square.
_MAX_COMPARED: Final = 64
_TEXTS: Final = frozenset({"title", "description", "default", "examples"})
_ILLEGAL: Final = re.compile("[^A-Za-z0-9_-]")
_ANYWHERE: Final = ("not", "if", "then", "else", "$dynamicRef", "$recursiveRef")
_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object")
#: Regular expressions that engines for constrained output do not know: groups with `?`, references
#: to groups, and word boundaries.
_HARD_PATTERN: Final = re.compile(r"\(\?(?!:)|\\[1-9bBkpP]")


class Dialect(NamedTuple):
    """The subset of JSON Schema that an API takes.

    Attributes:
        keywords: The supported keywords among those that validate one type.
        values: The values that a keyword may have, where not all of them are taken.
        scalars: The types whose values `enum` may list.
        strict: Every object is closed, and a schema that cannot be expressed is refused.
        all_required: Every property is required.
        references: A schema may refer to itself, by `$defs`.
    """

    keywords: frozenset[str]
    values: Mapping[str, Container[object]]
    scalars: frozenset[str]
    strict: bool
    all_required: bool = False
    references: bool = False


class Adapter(Composer):
    """Writes one schema in a dialect.

    Args:
        root: The schema, without faults, and an object at its root.
        tool: The name of the tool.
        dialect: The dialect.
    """

    def __init__(self, root: JSONObject, tool: str, dialect: Dialect) -> None:
        super().__init__(root, tool)
        self.dialect = dialect
        self._definitions: dict[str, Adapted] = {}

    def adapt_root(self, root: JSONObject) -> Adapted:
        """Write the root, and the definitions that it needs.

        Raises:
            Refused: The dialect is strict and cannot express the schema.
            TooLarge: The schema has too many parts.
        """
        if not root.get("properties") and self.dialect.strict:
            # A tool without arguments; without `properties` it would be an object of any.
            root = {"additionalProperties": False, **root}
        schema, restore = self._adapt_one(root, "object", "", ())
        if self._definitions:
            schema["$defs"] = {name: each.schema for name, each in self._definitions.items()}
        return Adapted(schema, restore)

    def _adapt(self, schema: Any, path: str, refs: tuple[str, ...]) -> Adapted:
        ref = schema.get("$ref") if isinstance(schema, dict) else None
        if ref in refs and self.dialect.strict:
            return self._refer(ref, schema, path)
        found, refs = self.expand(schema, path, refs)
        for key in ("anyOf", "oneOf"):
            if key in found:
                return self._union(found, key, path, refs)
        if "const" in found:
            only = keys_of([found["const"]])
            among = keys_of(found["enum"]) if "enum" in found else only
            found["enum"] = [each for key, each in only.items() if key in among]
        if found.get("not", False) in ({}, True):
            return _NEVER
        types = _types_of(found)
        if "type" not in found and "enum" not in found:
            if not types:
                return self._anything(found, path)
            text = f"without a type it is taken for {' or '.join(types)}"
            self.lose(path, "type", text, "narrower")
        parts = [self._adapt_one(found, each, path, refs) for each in types if each != "null"]
        whole = self._unite([part for part in parts if part is not _NEVER])
        if "null" not in types or None not in found.get("enum", [None]):
            return whole
        # Alone it has no keywords; beside others these do not judge it.
        return Adapted(or_null(whole.schema), whole.restore) if whole is not _NEVER else _NULL

    def _adapt_one(self, found: JSONObject, kind: str, path: str, refs: tuple[str, ...]) -> Adapted:
        """Write a schema for values of one type."""
        made: JSONObject = {"type": kind}
        lost: JSONObject = {}
        if "enum" in found:
            values = [each for each in found["enum"] if _is_of(each, kind)]
            if not values:
                return _NEVER
            if kind in self.dialect.scalars:
                made["enum"] = values
            elif "const" in found:
                lost["const"] = found["const"]
            else:
                lost["enum"] = values
        for key in (*_JUDGES[kind], *_ANYWHERE):
            if key in found and not self._keep(key, found[key], made):
                lost[key] = found[key]
        restore = None
        if kind == "array":
            restore = self._array(found, made, lost, path, refs)
        elif kind == "object":
            restore = self._object(found, made, lost, path, refs)
        for key in lost:
            self.lose(path, key, "the API does not take it; the description tells it")
        return Adapted(_described(made, found, lost), restore)

    def _keep(self, key: str, value: object, made: JSONObject) -> bool:
        """Write a keyword, if the API takes it."""
        if self._takes(key, value):
            made[key] = value
            return True
        # An exclusive bound of an integer is the inclusive one of its neighbour.
        bound, step, tighter = _INTEGER_BOUNDS.get(key, ("", 0, max))
        if made["type"] != "integer" or bound not in self.dialect.keywords:
            return False
        if type(value) is not int:
            return False
        made[bound] = tighter(value + step, made.get(bound, value + step))
        return True

    def _takes(self, key: str, value: Any) -> bool:
        if key not in self.dialect.keywords:
            return False
        if key == "pattern" and _HARD_PATTERN.search(value):
            return False
        return key not in self.dialect.values or value in self.dialect.values[key]

    def _array(
        self,
        found: JSONObject,
        made: JSONObject,
        lost: JSONObject,
        path: str,
        refs: tuple[str, ...],
    ) -> Restore | None:
        items = found.get("items", True)
        if prefix := found.get("prefixItems"):
            if self.dialect.strict:
                raise StrictModeError(
                    path, "prefixItems", "strict mode takes no list with a schema for each place"
                )
            lost["prefixItems"] = prefix
            items = {"anyOf": [*prefix, *([] if items is False else [items])]}
        part = self._adapt(items, f"{path}/items", refs)
        if part is _NEVER:
            lost["items"] = False
            part = Adapted({"type": "string"})
        made["items"] = part.schema
        return None if part.restore is None else partial(restore_items, part.restore)

    def _object(
        self,
        found: JSONObject,
        made: JSONObject,
        lost: JSONObject,
        path: str,
        refs: tuple[str, ...],
    ) -> Restore | None:
        needed = found.get("required", [])
        self._check_openness(found, lost, path)
        parts: JSONObject = {}
        ways: dict[str, tuple[bool, Restore | None]] = {}
        for name, schema in found.get("properties", {}).items():
            part = self._adapt(schema, f"{path}/properties/{escape(name)}", refs)
            if part is _NEVER:
                self.lose(path, "properties", f"{name} is left out; it must not be sent")
                continue
            optional = self.dialect.all_required and name not in needed
            made_null = optional and not _allows_null(part.schema)
            default = optional and isinstance(schema, dict) and schema.get("default") is not None
            parts[name] = or_null(part.schema) if made_null else part.schema
            if made_null or default or part.restore is not None:
                ways[name] = made_null or default, part.restore
        if missing := [name for name in needed if name not in parts]:
            if self.dialect.strict:
                raise StrictModeError(
                    path, "required", f"{missing[0]} is required and has no schema"
                )
            lost["required"] = missing
        if parts or self.dialect.strict:
            made["properties"] = parts
        required = [name for name in parts if self.dialect.all_required or name in needed]
        if required or self.dialect.strict:
            made["required"] = required
        if self.dialect.strict:
            made["additionalProperties"] = False
        return partial(restore_members, ways) if ways else None

    def _check_openness(self, found: JSONObject, lost: JSONObject, path: str) -> None:
        """Refuse an object with properties of any name, or note what is not said about them."""
        rest = found.get("additionalProperties", found.get("unevaluatedProperties"))
        named = found.get("patternProperties")
        if self.dialect.strict:
            nothing = rest is None and not found.get("properties")
            if named or rest not in (None, False) or nothing:
                raise StrictModeError(
                    path,
                    "additionalProperties",
                    "strict mode takes no object with names of any kind",
                )
            return
        for key in ("additionalProperties", "unevaluatedProperties", "patternProperties"):
            if found.get(key, True) not in (True, {}):
                lost[key] = found[key]

    def _union(self, found: JSONObject, key: str, path: str, refs: tuple[str, ...]) -> Adapted:
        """Write alternatives; the keywords beside them hold for each."""
        branches = found.pop(key)
        beside = {name: each for name, each in found.items() if name not in _TEXTS}
        before = len(self.losses)
        parts = [
            self._adapt({"allOf": [each, beside]} if beside else each, f"{path}/{key}/{at}", refs)
            for at, each in enumerate(branches)
        ]
        parts = [part for part in parts if part is not _NEVER]
        # An alternative that allows more or less than it should may match in addition to another
        # one.
        alone = len(self.losses) == before and _are_disjoint([part.schema for part in parts])
        if key == "oneOf" and not alone:
            self.lose(path, key, "more than one of the alternatives may hold")
        whole = self._unite(parts)
        if whole is _NEVER:
            return whole
        return Adapted(_described(whole.schema, found, {}), whole.restore)

    def _unite(self, parts: Sequence[Adapted]) -> Adapted:
        """Write that a value is of one of several schemas."""
        if len(parts) < 2:
            return parts[0] if parts else _NEVER
        schema = {"anyOf": [part.schema for part in parts]}
        if all(part.restore is None for part in parts):
            return Adapted(schema)

        @cache
        def judges() -> list[Callable[[object], bool]]:
            defs = {name: each.schema for name, each in self._definitions.items()}
            return [judge({"$defs": defs, **part.schema}) for part in parts]

        return Adapted(schema, partial(restore_one, parts, judges))

    def _refer(self, ref: str, schema: JSONObject, path: str) -> Adapted:
        """Write a schema that leads back to itself as a reference to a definition."""
        if not self.dialect.references or schema.keys() - {"$ref", *_TEXTS}:
            raise StrictModeError(path, "$ref", "strict mode takes no schema that leads to itself")
        plain = ref.removeprefix("#/$defs/").removeprefix("#/definitions/")
        name = legal_name(plain, _ILLEGAL, 64)
        if name not in self._definitions:
            # In its place already, so that it can refer to itself.
            self._definitions[name] = _NEVER
            self._definitions[name] = self._adapt(self._document.find(ref, {}), path, (ref,))
        return Adapted({"$ref": f"#/$defs/{name}"}, partial(restore_by, self._definitions, name))

    def _anything(self, found: JSONObject, path: str) -> Adapted:
        """Write a schema that allows values of each type."""
        if self.dialect.strict:
            raise StrictModeError(path, "type", "strict mode takes no value of any type")
        # Items need a schema again, so that the lists of this one are lists of texts.
        self.lose(path, "type", "a value of any type; its lists have texts in them", "narrower")
        parts: list[JSONObject] = [{"type": each} for each in _TYPES if each != "integer"]
        for each in parts:
            if each["type"] == "array":
                each["items"] = {"type": "string"}
        lost: JSONObject = {key: found[key] for key in _ANYWHERE if key in found}
        for key in lost:
            self.lose(path, key, "the API does not take it; the description tells it")
        return Adapted(_described({"anyOf": [*parts, {"type": "null"}]}, found, lost))


#: Allows nothing; it stands in no schema that is sent.
_NEVER: Final = Adapted({"not": {}})
_NULL: Final = Adapted({"type": "null"})


def _types_of(found: JSONObject) -> list[str]:
    """List the types of a schema, even if it does not declare them."""
    if "type" in found:
        declared = types_in(found["type"])
    elif "enum" in found:
        declared = list(dict.fromkeys(map(_kind_of, found["enum"])))
    else:
        declared = [kind for kind in _TYPES if not _KEYWORDS[kind].isdisjoint(found)]
    # Each integer is a number.
    return [each for each in declared if each != "integer" or "number" not in declared]


def _kind_of(value: object) -> str:
    """Name the type of a JSON value."""
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return JSON_TYPES[type(value)]


def _is_of(value: object, kind: str) -> bool:
    found = _kind_of(value)
    return found == kind or (found == "integer" and kind == "number")


def _described(made: JSONObject, found: JSONObject, lost: JSONObject) -> JSONObject:
    """Put the description of a schema into what is made of it, with the keywords that are lost."""
    told = {key: value for key, value in lost.items() if key not in ("required", "items")}
    if found.get("default") is not None:
        told["default"] = found["default"]
    texts = [str(each["description"]) for each in (found, made) if each.get("description")]
    text = (" ".join(texts) + describe_lost(told)).strip()
    return {**made, "description": text} if text else made


def _allows_null(schema: JSONObject) -> bool:
    return "null" in types_in(schema.get("type", "")) or any(
        _allows_null(each) for each in schema.get("anyOf", ())
    )


def _are_disjoint(schemas: Sequence[JSONObject]) -> bool:
    """Tell whether a value can be of one of several schemas only; False if that is not plain."""
    if len(schemas) > _MAX_COMPARED:
        return False
    pairs = ((one, other) for at, one in enumerate(schemas) for other in schemas[:at])
    return all(_differ(one, other) for one, other in pairs)


def _differ(one: JSONObject, other: JSONObject) -> bool:
    if "type" not in one or "type" not in other:
        return False
    first, second = set(types_in(one["type"])), set(types_in(other["type"]))
    if first.isdisjoint(second) and not (first | second) >= {"integer", "number"}:
        return True
    if "enum" in one and "enum" in other:
        return keys_of(one["enum"]).keys().isdisjoint(keys_of(other["enum"]))
    shared = set(one.get("required", ())) & set(other.get("required", ()))
    return any(_differ(one["properties"][name], other["properties"][name]) for name in shared)
