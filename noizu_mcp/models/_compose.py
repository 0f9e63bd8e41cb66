"""Input schemas of tools, prepared for any API: one dialect, and an object at the root.

A schema may come from any server, in any draft. It is brought to 2020-12 first. References and
`allOf` can then be put into one schema, which most APIs need at the root, and some everywhere.

Everything that an adapted schema lets through and the original one does not, or the other way
round, is a `SchemaLoss`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from hashlib import sha256
from typing import Any, Final, Literal

import attrs

from .._json_schema import modernize_bounds
from .._pointer import pointer
from .._util import final, json_text, shorten
from .._value import JSONObject, Value
from ..schema import Document, read_document, subschemas

#: Schema objects that one schema may become when its references are put in.
MAX_NODES: Final = 5_000
#: Times that a reference is followed on the way to itself.
_UNROLLED: Final = 2
#: Characters of a keyword's value in a description.
_MAX_SHOWN: Final = 200

_ANNOTATIONS: Final = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$comment", "$id", "$schema", "$anchor", "$defs", "definitions"),
    }
)

Effect = Literal["looser", "narrower", "not strict"]


@final
@attrs.frozen(eq=False, repr=False)
class SchemaLoss(Value):
    """A difference between the input schema of a tool and the schema that a model gets.

    Attributes:
        tool: The name of the tool at its server; empty if it concerns the whole list.
        path: The place in the input schema, a JSON pointer; empty for the root.
        keyword: The keyword.
        effect: `looser`: a model may send arguments that the tool refuses. `narrower`: a model
            cannot send some arguments that the tool takes. `not strict`: the tool is given to the
            model without strict mode, and without other losses by it.
        text: The reason, in one sentence.
    """

    tool: str
    path: str
    keyword: str
    effect: Effect
    text: str

    def __str__(self) -> str:
        where = " ".join(each for each in (self.tool, self.path, self.keyword) if each)
        return f"{where}: {self.effect}: {self.text}"


class SchemaSizeError(Exception):
    """A schema has too many parts once its references are put in."""


def modernize(node: object, rename: Callable[[str], str]) -> Any:
    """Copy a schema of any draft as one of 2020-12.

    Args:
        node: The schema; values of a wrong type are kept.
        rename: Gives the new name of a property.
    """
    if not isinstance(node, dict):
        return node
    new = {key: copy(value) for key, value in node.items() if key not in ("$schema", "$id", "id")}
    _modernize_keywords(new)
    for path, child in list(subschemas(new)):
        holder = new if len(path) == 1 else new[path[0]]
        holder[path[-1]] = modernize(child, rename)
    for keyword in ("properties", "dependentSchemas", "dependentRequired"):
        if isinstance(new.get(keyword), dict):
            new[keyword] = {rename(name): value for name, value in new[keyword].items()}
    if _is_names(new.get("required")):
        new["required"] = [rename(name) for name in new["required"]]
    for name, wanted in _items(new.get("dependentRequired")):
        if _is_names(wanted):
            new["dependentRequired"][name] = [rename(each) for each in wanted]
    return new


def _modernize_keywords(new: JSONObject) -> None:
    """Replace the keywords that 2020-12 writes in another way."""
    rest = new.pop("additionalItems", None)
    if isinstance(new.get("items"), list):
        new["prefixItems"] = new.pop("items")
        if rest is not None:
            new["items"] = rest
    modernize_bounds(new)
    for name, wanted in _items(new.pop("dependencies", None)):
        keyword = "dependentRequired" if isinstance(wanted, list) else "dependentSchemas"
        new[keyword] = {**new.get(keyword, {}), name: wanted}


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def find_fault(schema: JSONObject) -> str | None:
    """Tell why no part of a schema can be used; None if it can, at least after `mend`."""
    document, faults = read_document(schema)
    if document is None:
        return faults[0].text
    return "it leads to itself without end" if document.is_endless() else None


def mend(schema: JSONObject, tool: str) -> Iterator[SchemaLoss]:
    """Take the keywords out of a schema that are not valid.

    Args:
        schema: The schema, a copy; it is changed.
        tool: The name of the tool.

    Yields:
        A loss for each of these keywords.
    """
    for path, text, *_ in Document(schema).faults():
        parent: Any = schema
        # A fault may be in a part that is gone; an anchor that is there twice has no place.
        with suppress(LookupError):
            for step in path[:-1]:
                parent = parent[step]
            del parent[path[-1]]
        where = pointer(path[:-1])
        keyword = "".join(map(str, path[-1:]))
        yield SchemaLoss(tool, where, keyword, "looser", f"it is not valid: {text}")


class Composer:
    """Puts references and `allOf` into one schema.

    Args:
        root: The schema, without faults.
        tool: The name of the tool.

    Attributes:
        losses: The differences so far; each is there once.
    """

    def __init__(self, root: JSONObject, tool: str) -> None:
        self.tool = tool
        self.losses: dict[SchemaLoss, None] = {}
        self._document = Document(root)
        self._nodes = 0

    def lose(self, path: str, keyword: str, text: str, effect: Effect = "looser") -> None:
        """Note a loss."""
        self.losses[SchemaLoss(self.tool, path, keyword, effect, text)] = None

    def expand(
        self, schema: object, path: str, refs: tuple[str, ...] = ()
    ) -> tuple[JSONObject, tuple[str, ...]]:
        """Inline the references and the `allOf` of a schema, but not of its parts.

        Args:
            schema: The schema.
            path: Its place.
            refs: The references that led to it.

        Returns:
            The schema, a new dict without `$ref` and `allOf`, and the references in it and before.

        Raises:
            TooLarge: The schema has too many parts.
        """
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise SchemaSizeError
        if not isinstance(schema, dict):
            return {} if schema else {"not": {}}, refs
        found = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        parts = list(schema.get("allOf", ()))
        if (ref := schema.get("$ref")) is not None:
            target = self._follow(ref, schema, path, refs)
            refs = (*refs, ref)
            parts.insert(0, target)
        passed = refs
        for part in parts:
            inner, through = self.expand(part, path, refs)
            passed = (*passed, *through[len(refs) :])
            found = self.merge(found, inner, path)
        return found, passed

    def _follow(self, ref: str, schema: JSONObject, path: str, refs: tuple[str, ...]) -> object:
        if refs.count(ref) >= _UNROLLED:
            self.lose(path, "$ref", f"{ref} leads to itself, and is followed {_UNROLLED} times")
            return True
        try:
            return self._document.find(ref, schema)
        except LookupError:  # a metaschema of the standard
            self.lose(path, "$ref", f"{ref} is not followed")
            return True

    def merge(self, first: JSONObject, second: JSONObject, path: str) -> JSONObject:
        """Make one schema of two that hold together.

        Args:
            first: A schema; its annotations win.
            second: Another one.
            path: Their place.
        """
        found = {**second, **first}
        if _closes(first, second) or _closes(second, first):
            text = "properties of one schema that another one excludes are allowed"
            self.lose(path, "additionalProperties", text)
        for key in first.keys() & second.keys() - _ANNOTATIONS:
            if key in _MERGED:
                found[key] = _MERGED[key](first[key], second[key])
            elif not _same(first[key], second[key]):
                self.lose(path, key, "two schemas have it; one of them counts")
        return found

    def flatten(self, root: JSONObject) -> tuple[JSONObject, str]:
        """Make the root of a schema an object without alternatives and conditions.

        No API takes `anyOf`, `oneOf` or `allOf` there, and OpenAI no `enum` and `not` either. The
        properties of all alternatives become properties of the root, and those that not all of them
        require become optional.

        Args:
            root: The schema.

        Returns:
            The schema, and a text for the description of the tool about groups of arguments.

        Raises:
            TooLarge: The schema has too many parts.
        """
        found, refs = self.expand(root, "")
        note = ""
        for key in ("anyOf", "oneOf"):
            branches = [self.expand(each, f"/{key}", refs)[0] for each in found.pop(key, ())]
            if branches:
                self.lose("", key, "the properties of all alternatives are properties of the root")
                note += _groups(branches)
                objects = [
                    each
                    for each in branches
                    if "object" in types_in(each.get("type", "object")) and "not" not in each
                ]
                found = self._unite_at_root(found, objects)
        for key in ("enum", "const", "not", "if", "then", "else"):
            if found.pop(key, None) is not None:
                self.lose("", key, "the API does not take it at the root")
        return {**found, "type": "object"}, note

    def _unite_at_root(self, base: JSONObject, branches: list[JSONObject]) -> JSONObject:
        united: JSONObject = {}
        having: dict[str, list[JSONObject]] = {}
        for branch in branches:
            for name in branch.get("properties", ()):
                having.setdefault(name, []).append(branch)
        opened = sum(map(_is_open, branches))
        for name, those in having.items():
            # An alternative without this property takes any value for it, unless it is closed.
            if sum(map(_is_open, those)) < opened:
                if name in base.get("properties", ()):
                    continue
                text = f"{name} is what some of the alternatives say, in all of them"
                self.lose("", "properties", text, "narrower")
            schemas = [each["properties"][name] for each in those]
            alike = all(_same(schemas[0], each) for each in schemas)
            united[name] = schemas[0] if alike else {"anyOf": schemas}
        for name in dict.fromkeys(name for each in branches for name in each.get("required", ())):
            # Some alternative requires it, so it can be sent, and none says more about it.
            if name not in base.get("properties", ()):
                united.setdefault(name, {})
        found = self.merge(base, {"properties": united}, "") if united else dict(base)
        shared = [set(branch.get("required", ())) for branch in branches]
        required = {*base.get("required", ()), *(set.intersection(*shared) if shared else ())}
        if required:
            found["required"] = sorted(required)
        # The alternatives may allow less together with each other; that was said above.
        if branches and not opened:
            found["additionalProperties"] = False
        return found


def _closes(one: JSONObject, other: JSONObject) -> bool:
    """Tell whether a schema may exclude properties that another one declares."""
    if one.get("additionalProperties", True) in (True, {}):
        return False
    return bool(other.get("properties", {}).keys() - one.get("properties", {}).keys())


def _is_open(schema: JSONObject) -> bool:
    return schema.get("additionalProperties") is not False


def _groups(branches: Iterable[JSONObject]) -> str:
    """Say which arguments belong together, where alternatives require different ones."""
    groups = [", ".join(branch.get("required", ())) for branch in branches]
    if len(set(groups)) < 2 or not all(groups):
        return ""
    return f" Give one of these groups of arguments: {'; '.join(groups)}."


def types_in(declared: str | list[str]) -> list[str]:
    """List the types of a `type` keyword."""
    return [declared] if isinstance(declared, str) else list(declared)


def _common_types(ours: Any, theirs: Any) -> list[str]:
    first, second = types_in(ours), types_in(theirs)
    # Each integer is a number.
    wide = [each for each in first if each in second or (each == "integer" and "number" in second)]
    return wide + [
        each for each in second if each == "integer" and "number" in first and each not in wide
    ]


def _same(one: Any, other: Any) -> bool:
    # Not `==`: True is 1 in Python.
    return json_text(one) == json_text(other)


def keys_of(values: Iterable[object]) -> dict[Any, Any]:
    """Give JSON values by keys, which are equal for equal values; True is not 1."""
    return {
        json_text(each) if isinstance(each, dict | list) else (isinstance(each, bool), each): each
        for each in values
    }


def _shared(ours: Iterable[object], theirs: Iterable[object]) -> list[object]:
    wanted = keys_of(theirs)
    return [each for key, each in keys_of(ours).items() if key in wanted]


def _both(ours: object, theirs: object) -> object:
    return ours if _same(ours, theirs) else {"allOf": [ours, theirs]}


def _each_of_both(ours: JSONObject, theirs: JSONObject) -> JSONObject:
    shared = {name: _both(ours[name], theirs[name]) for name in ours if name in theirs}
    return {**ours, **theirs, **shared}


#: How values of a keyword hold together; of another keyword one value counts.
_MERGED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), min),
    "minProperties": max,
    "maxProperties": min,
    "type": _common_types,
    "required": lambda ours, theirs: list(dict.fromkeys([*ours, *theirs])),
    "enum": _shared,
    "properties": _each_of_both,
    "items": _both,
    "additionalProperties": lambda ours, theirs: (
        False if False in (ours, theirs) else _both(ours, theirs)
    ),
    "uniqueItems": lambda ours, theirs: ours or theirs,
}


def describe_lost(keywords: Mapping[str, object]) -> str:
    """Write keywords as a text for a description: ` (minLength: 2, default: "a")`."""
    if not keywords:
        return ""
    shown = [f"{key}: {shorten(json_text(value), _MAX_SHOWN)}" for key, value in keywords.items()]
    return f" ({', '.join(shown)})"


def legal_name(name: str, illegal: re.Pattern[str], length: int) -> str:
    """Give a name that an API takes; a legal one stays as it is.

    Args:
        name: The name.
        illegal: Finds the characters that are not allowed.
        length: Characters that a name may have.
    """
    if len(name) <= length and not illegal.search(name):
        return name
    return coded_name(name, illegal, length)


def coded_name(name: str, illegal: re.Pattern[str], length: int) -> str:
    """Give a legal name that is unlike that of any other name, by a digest at its end."""
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{illegal.sub('_', name)[: length - 9]}_{digest}"
