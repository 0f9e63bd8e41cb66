"""Nodes → JSON Schema 2020-12, as a model reads it.

No `title` noise, nested classes written out where they are used unless they contain themselves, and
one order of keywords in every schema.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..._pointer import Path, escape
from ..._util import called
from ..._value import JSONObject
from ..convert._dump import dump_value
from ..declare import _nodes as nodes
from ..declare._state import ParseState
from ..jsonschema._keywords import or_null, ordered
from ..jsonschema._values import type_of
from ..jsonschema._violation import Fault


class FieldPlace(NamedTuple):
    """The declaration of a part of a schema.

    Attributes:
        names: The names of the fields that lead there.
        owner: The class of the last of them.
        field: The last of them.
    """

    names: Path
    owner: type | None
    field: nodes.ObjectField | None = None


# Factories that are called for the published default: no other can be known to have no effects.
_PURE = (list, dict, set, frozenset, tuple, str, int, float, bool)


class Emitter:
    """Writes the schemas of one form.

    Args:
        state: The state after the form was read; takes the faults of defaults that are not JSON.

    Attributes:
        recursive: The names in `$defs` of the objects that contain themselves, by identity.
        definitions: The `$defs` so far.
        places: The field that each part of the schema comes from, by the path of the part.
    """

    def __init__(self, state: ParseState) -> None:
        self._state = state
        self.recursive: dict[int, str] = {}
        self.definitions: JSONObject = {}
        self.places: dict[Path, FieldPlace] = {}
        # The definitions of pydantic: the name and the schema that it gave, and the name here.
        self._given: list[tuple[str, JSONObject, str]] = []
        for _, _, node in state.classes:
            if node.recursive:
                self.recursive[id(node)] = self._free_name(node.name)

    def root(self, node: nodes.Node) -> JSONObject:
        """Return the whole schema of a form.

        Raises:
            FormTooLarge: If it has more than `MAX_PLACES` fields.
        """
        here = FieldPlace(self._state.path, self._state.owner)
        if isinstance(node, nodes.Object):
            # Written out, though it may be a definition too: the root must show its type.
            schema = self._object(node, (), here)
        else:
            schema = self.schema(node, (), here)
            if isinstance(node, nodes.Pydantic):
                if "$ref" in schema:
                    name = schema.pop("$ref").removeprefix("#/$defs/")
                    schema = {**self.definitions[name], **schema}
                # The component has a description of its own.
                schema.pop("description", None)
        return self.with_definitions(schema)

    def with_definitions(self, schema: JSONObject) -> JSONObject:
        """Return a schema made here together with the definitions that it may refer to."""
        return ordered({**schema, "$defs": self.definitions}) if self.definitions else schema

    def _free_name(self, name: str) -> str:
        taken = {*self.recursive.values(), *(given for _, _, given in self._given)}
        number = 1
        while (free := name if number == 1 else f"{name}{number}") in taken:
            number += 1
        return free

    def schema(self, node: nodes.Node, at: Path, place: FieldPlace) -> JSONObject:
        """Return the schema of a node.

        Args:
            node: The node.
            at: The path of the schema in the whole.
            place: The place of the declaration.
        """
        if isinstance(node, nodes.Object):
            return self._reference(node, at, place)
        if isinstance(node, nodes.Pydantic):
            made = self._pydantic(node, at, place)
        else:
            made = self._plain(node, at, place)
        return ordered({**made, **node.keywords}) if node.keywords else made

    def _plain(self, node: nodes.Node, at: Path, place: FieldPlace) -> JSONObject:
        if isinstance(node, nodes.Scalar):
            format_ = node.cast.keywords if isinstance(node.cast, nodes.Format) else {}
            return {"type": node.kind, **format_}
        if isinstance(node, nodes.ScalarChoice):
            return _choice(node)
        if isinstance(node, nodes.Array):
            inner = self.schema(node.item, (*at, "items"), place)
            return {"type": "array", **({"items": inner} if inner else {})}
        if isinstance(node, nodes.Tuple):
            return self._tuple(node, at, place)
        if isinstance(node, nodes.Map):
            return self._map(node, at, place)
        return self._union(node, at, place) if isinstance(node, nodes.Union) else {}

    def _tuple(self, node: nodes.Tuple, at: Path, place: FieldPlace) -> JSONObject:
        items = [
            self.schema(item, (*at, "prefixItems", index), place)
            for index, item in enumerate(node.items)
        ]
        return {
            "type": "array",
            **({"prefixItems": items} if items else {}),
            "minItems": len(items),
            "maxItems": len(items),
        }

    def _map(self, node: nodes.Map, at: Path, place: FieldPlace) -> JSONObject:
        key = self.schema(node.key, (*at, "propertyNames"), place)
        value = self.schema(node.value, (*at, "additionalProperties"), place)
        names = {name: part for name, part in key.items() if name != "type"}
        return {
            "type": "object",
            **({"propertyNames": names} if names else {}),
            **({"additionalProperties": value} if value else {}),
        }

    def _union(self, node: nodes.Union, at: Path, place: FieldPlace) -> JSONObject:
        options = node.options
        nullable = len(options) < len(node.branches)
        if len(options) == 1:
            return or_null(self.schema(options[0], at, place))
        schemas = [
            self.schema(option, (*at, "anyOf", index), place)
            for index, option in enumerate(options)
        ]
        return {"anyOf": [*schemas, {"type": "null"}] if nullable else schemas}

    def _pydantic(self, node: nodes.Pydantic, at: Path, place: FieldPlace) -> JSONObject:
        """Return the schema of a type of pydantic, and add the definitions that it refers to."""
        names = {name: self._definition_name(name, body) for name, body in node.definitions.items()}
        changed = {name: free for name, free in names.items() if name != free}
        for name, body in node.definitions.items():
            self.definitions.setdefault(names[name], _renamed(body, changed))
        made: JSONObject = dict(_renamed(node.schema, changed))
        for path in _property_paths(made):
            self.places[(*at, *path)] = FieldPlace((*place.names, *path[1::2]), node.cls)
        return made

    def _definition_name(self, name: str, body: JSONObject) -> str:
        """Return the name for a definition of pydantic; an equal definition keeps its name."""
        for known, known_body, given in self._given:
            if known == name and known_body == body:
                return given
        given = self._free_name(name)
        self._given.append((name, body, given))
        return given

    def _reference(self, node: nodes.Object, at: Path, place: FieldPlace) -> JSONObject:
        name = self.recursive.get(id(node))
        if name is None:
            return self._described(node, at, place)
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self._described(node, ("$defs", name), place)
        return {"$ref": f"#/$defs/{escape(name)}"}

    def _described(self, node: nodes.Object, at: Path, place: FieldPlace) -> JSONObject:
        made = self._object(node, at, place)
        return ordered({**made, "description": node.description}) if node.description else made

    def _object(self, node: nodes.Object, at: Path, place: FieldPlace) -> JSONObject:
        properties: JSONObject = {}
        made: JSONObject = {"type": "object", "properties": properties}
        for field in node.fields:
            properties[field.name] = self._field(field, (*at, "properties", field.name), place)
        required = [field.name for field in node.fields if field.required]
        if required:
            made["required"] = list(dict.fromkeys(required))
        if self._state.strict:
            made["additionalProperties"] = False
        return made

    def _field(self, field: nodes.ObjectField, at: Path, outer: FieldPlace) -> JSONObject:
        place = self.places[at] = FieldPlace((*outer.names, field.name), field.owner, field)
        if len(self.places) > nodes.MAX_PLACES:
            raise nodes.FormTooLarge
        made = self.schema(field.node, at, place)
        own = len(made)
        if field.description is not None:
            made["description"] = field.description
        if field.default is not nodes.MISSING:
            made["default"] = self._json(field.default, "default", place)
        elif field.factory in _PURE:
            made["default"] = dump_value(field.factory())
        if field.examples:
            made["examples"] = [self._json(each, "example", place) for each in field.examples]
        if field.header is not None:
            made["x-mcp-header"] = field.header
        return made if len(made) == own else ordered(made)

    def _json(self, value: object, what: str, place: FieldPlace) -> object:
        try:
            return dump_value(value)
        except (TypeError, ValueError, RecursionError) as error:
            text = f"{what} {called(value)} is not JSON: {error}"
            self._state.faults.append(Fault(place.names, text, place.owner))
            return None


def _choice(node: nodes.ScalarChoice) -> JSONObject:
    kinds = list(dict.fromkeys(type_of(value) for value in node.values))
    named = [kind for kind in kinds if kind != "null"]
    if set(named) == {"integer", "number"}:
        named = ["number"]
    if len(named) > 1:
        return {"enum": list(node.values)}
    types = [*named, "null"] if "null" in kinds and named else named or ["null"]
    return {"type": types[0] if len(types) == 1 else types, "enum": list(node.values)}


def _renamed(schema: object, names: Mapping[str, str]) -> Any:
    """Return a schema whose references name other definitions; the schema itself if none change."""
    if not names or not isinstance(schema, (dict, list)):
        return schema
    if isinstance(schema, list):
        return [_renamed(each, names) for each in schema]
    made = {keyword: _renamed(value, names) for keyword, value in schema.items()}
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    return {**made, "$ref": f"#/$defs/{names[name]}"} if name in names else made


def _property_paths(schema: JSONObject, at: Path = ()) -> Iterator[Path]:
    """Yield the path of each property of a schema, and of objects inside of them."""
    for name, inner in schema.get("properties", {}).items():
        path = (*at, "properties", name)
        yield path
        if isinstance(inner, dict):
            yield from _property_paths(inner, path)
