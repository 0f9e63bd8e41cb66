"""Types of pydantic → nodes: described by its JSON Schema, validated by its validators.

Pydantic is never imported here: a type that it can read belongs to a program that has imported it.
Its schemas are published as ours are: without titles, and with nested types written out. The file
is loaded with the first such type.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, get_args

from ..._json_schema import ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS
from ..._pointer import Path, unescape
from ..._util import json_text, reachable
from ..._value import JSONObject
from ..jsonschema._keywords import or_null, ordered
from ..jsonschema._violation import Fault
from ._docstring import docstring_parameters, docstring_summary
from ._field import Marker, is_field_info
from ._foreign_types import no_form
from ._nodes import MAX_PLACES, FormTooLarge, Pydantic
from ._resolve import declarers

# Words for people, and a copy of the mapping that `const` in each branch says already.
_LEFT_OUT = frozenset({"title", "discriminator", "$defs", "$ref"})
_DEFINITIONS = "#/$defs/"
# The types whose strict mode tells JSON from Python: a date is a text in one, an object in the
# other.
_OF_TWO_FORMS = frozenset(
    (
        *("date", "time", "datetime", "timedelta", "bytes", "url", "multi-host-url", "uuid"),
        *("decimal", "enum", "tuple", "set", "frozenset", "dataclass", "complex"),
    )
)


def read_pydantic(
    annotation: object, *, output: bool, strict: bool, descriptions: Mapping[str, str]
) -> Pydantic | list[Fault]:
    """Read a class, or another annotation, that pydantic describes and validates.

    Args:
        annotation: The annotation; no part of it is text.
        output: True if it describes a result.
        strict: True to forbid names that are not declared.
        descriptions: Descriptions for fields that pydantic describes without one.

    Returns:
        The node; or the faults, such as fields that have no JSON Schema.
    """
    try:
        adapter = sys.modules["pydantic"].TypeAdapter(annotation)
        written = adapter.json_schema(mode="serialization" if output else "validation")
        made = _Inliner(written, strict=strict)
        schema = made.schema(written)
    except FormTooLarge:
        return [Fault((), FormTooLarge.text)]
    except Exception as error:
        faults: list[Fault] = []
        if not _find_culprits(faults, annotation):
            # The rest of the text is a link.
            reason = str(error).partition("\n")[0].rstrip(".")
            faults.append(Fault((), f"pydantic cannot describe it: {reason}"))
        return faults
    _describe(schema, descriptions)
    cls = annotation if isinstance(annotation, type) else None
    name = getattr(annotation, "__name__", "union")
    return Pydantic(name, schema, made.kept, _validator(adapter), cls, _titles(cls))


def _describe(schema: JSONObject, descriptions: Mapping[str, str]) -> None:
    """Add descriptions to the properties of a schema that lack one."""
    for name, own in schema.get("properties", {}).items():
        if name in descriptions and isinstance(own, dict):
            schema["properties"][name] = ordered({"description": descriptions[name], **own})


def _fields_of(cls: object) -> Mapping[str, Any]:
    """Return the fields of a model or a dataclass of pydantic; none for another type."""
    # Before 2.10 the attribute is `model_fields`.
    fields = getattr(cls, "__pydantic_fields__", None) or getattr(cls, "model_fields", None)
    return fields if isinstance(fields, dict) else {}


def _titles(cls: type | None) -> dict[str, str]:
    """Return the titles that an author gave to fields, by name on the wire."""
    titled = [(name, info) for name, info in _fields_of(cls).items() if info.title is not None]
    names = [(info.validation_alias or info.alias or name, info) for name, info in titled]
    return {name: info.title for name, info in names if isinstance(name, str)}


def _validator(adapter: Any) -> Callable[[Any], object]:
    """Return the function that validates a value which was decoded from JSON."""
    if not _tells_json(adapter.core_schema):
        validate: Callable[[object], object] = adapter.validator.validate_python
        return validate
    # Only here, since it writes the value once more.
    validate_json = adapter.validator.validate_json
    return lambda value: validate_json(json_text(value))


def _tells_json(core_schema: object) -> bool:
    """Tell if a validator accepts other values as JSON than as Python objects.

    Strict models do, and those with a JSON form of bytes.
    """
    waiting: list[object] = [core_schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            config = node.get("config")
            settings = config if isinstance(config, dict) else {}
            if settings.get("strict") or settings.get("val_json_bytes", "utf8") != "utf8":
                return True
            if node.get("strict") is True and node.get("type") in _OF_TWO_FORMS:
                return True
            waiting += [part for key, part in node.items() if key != "strict_schema"]
        elif isinstance(node, (list, tuple)):
            waiting += node
    return False


class _Inliner:
    """Writes a schema of pydantic without references, except to types that contain themselves.

    Args:
        written: The schema, with the types that it refers to in `$defs`.
        strict: True to forbid names that are not declared.

    Attributes:
        kept: The types that contain themselves, by name.
    """

    def __init__(self, written: JSONObject, *, strict: bool) -> None:
        self._strict = strict
        self._definitions: JSONObject = written.get("$defs", {})
        below = {name: set(_named(body)) for name, body in self._definitions.items()}
        self._recursive = {name for name in below if name in reachable(name, below)}
        self._parts = 0
        self.kept: JSONObject = {}

    def schema(self, node: object) -> Any:
        """Return a schema, or a part of it; raises `FormTooLarge`."""
        if not isinstance(node, dict):
            return node
        self._parts += 1
        if self._parts > MAX_PLACES:
            raise FormTooLarge
        made: JSONObject = {}
        for keyword, value in node.items():
            if keyword == "const":
                made["enum"] = [value]  # as the emitter writes a Literal
            elif keyword not in _LEFT_OUT:
                made[keyword] = self._inside(keyword, value)
        if "properties" in made:
            self._describe(made)
        if "$ref" in node:
            return ordered({**self._target(node["$ref"]), **made})
        return ordered(_nullable(_joined(made)))

    def _describe(self, made: JSONObject) -> None:
        """Read the docstring of a class, which pydantic publishes as it is."""
        docstring = made.get("description")
        if isinstance(docstring, str):
            _describe(made, docstring_parameters(docstring))
            made["description"] = docstring_summary(docstring) or docstring
        if self._strict:
            made.setdefault("additionalProperties", False)

    def _inside(self, keyword: str, value: Any) -> object:
        """Return the value of a keyword with the schemas in it written out."""
        if keyword in ONE_SCHEMA:
            return self.schema(value)
        if keyword in SCHEMA_LISTS:
            return [self.schema(each) for each in value]
        if keyword in SCHEMA_MAPS:
            return {name: self.schema(each) for name, each in value.items()}
        return value

    def _target(self, reference: str) -> JSONObject:
        name = unescape(reference.removeprefix(_DEFINITIONS))
        if name not in self._recursive:
            made: JSONObject = self.schema(self._definitions[name])
            return made
        if name not in self.kept:
            self.kept[name] = {}
            self.kept[name] = self.schema(self._definitions[name])
        return {"$ref": reference}


def _named(schema: object) -> Iterator[str]:
    """Yield the names of the definitions to which a schema refers."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str):
                yield unescape(reference.removeprefix(_DEFINITIONS))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _joined(schema: JSONObject) -> JSONObject:
    """Write a reference with something beside it, as pydantic did before 2.9, in one schema."""
    parts = schema.get("allOf", ())
    rest = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
    joins = len(parts) == 1 and not parts[0].keys() & rest.keys() - {"description"}
    return {**parts[0], **rest} if joins else schema


def _nullable(schema: JSONObject) -> JSONObject:
    """Write "this or null" as our schemas do, `"type": ["string", "null"]`, where that is equal."""
    branches = schema.get("anyOf", [])
    if len(branches) != 2 or branches[1] != {"type": "null"}:
        return schema
    rest = {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
    made = or_null(branches[0])
    return schema if rest.keys() & made.keys() else {**made, **rest}


# Types without a JSON Schema.


def _find_culprits(
    faults: list[Fault], annotation: Any, path: Path = (), seen: dict[int, bool] | None = None
) -> bool:
    """Find the fields inside of an annotation that have no JSON Schema.

    Args:
        faults: Takes a fault for each of them.
        annotation: The annotation.
        path: The names of the fields around it.
        seen: The annotations that were looked at, by identity, with what was returned for them.

    Returns:
        True if there is such a field, also if another place has it and the fault is there.
    """
    seen = {} if seen is None else seen
    if id(annotation) in seen:
        return seen[id(annotation)]
    seen[id(annotation)] = False
    found = [_find_culprits(faults, part, path, seen) for part in get_args(annotation)]
    # A name that is not defined yet is a problem of the whole class.
    if getattr(annotation, "__pydantic_complete__", True):
        owners = declarers(annotation) if isinstance(annotation, type) else {}
        for name, info in _fields_of(annotation).items():
            at = (*path, name)
            found.append(_find_culprits(faults, info.annotation, at, seen))
            if not found[-1] and not _is_described(info):
                owner = owners.get(name, annotation)
                faults.append(Fault(at, no_form(info.annotation), owner))
                found[-1] = True
    seen[id(annotation)] = any(found)
    return any(found)


def _is_described(info: Any) -> bool:
    """Tell if the type of a field has a JSON Schema by itself."""
    whole = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    try:
        sys.modules["pydantic"].TypeAdapter(whole).json_schema()
    except Exception:
        return False
    return True


# `pydantic.Field(...)` and other metadata beside types that pydantic does not read.

# Their values that say nothing of JSON, or that are read as options.
_READ = ("description", "examples", "title")


def split_entries(entries: Iterable[object]) -> tuple[list[object], list[object]]:
    """Tell the entries of `Annotated` that only pydantic can read from the others.

    Args:
        entries: The entries.

    Returns:
        The entries of pydantic, with the constraints among them, and the rest.
    """
    entries = list(entries)
    if not any(map(_is_theirs, entries)):
        return [], entries
    ours = [isinstance(entry, (Marker, str)) for entry in entries]
    theirs = [entry for entry, own in zip(entries, ours, strict=True) if not own]
    return theirs, [entry for entry, own in zip(entries, ours, strict=True) if own]


def _is_theirs(entry: Any) -> bool:
    if is_field_info(entry):
        special = entry.discriminator is not None or entry.json_schema_extra is not None
        settings = [_general(each) or {} for each in entry.metadata]
        return special or any(each.keys() - {"pattern"} for each in settings)
    module = type(entry).__module__.partition(".")[0]
    return module in ("pydantic", "pydantic_core") or hasattr(entry, "__get_pydantic_core_schema__")


def _general(entry: object) -> dict[str, object] | None:
    """Return the settings of pydantic in an entry; None for a constraint that others know too."""
    of_pydantic = type(entry).__module__.partition(".")[0] == "pydantic"
    return dict(vars(entry)) if of_pydantic else None


def read_field_info(info: Any) -> tuple[dict[str, object], list[object], str | None]:
    """Read `pydantic.Field(...)`, which `split_entries` has left to us, as options of a field.

    Args:
        info: The value.

    Returns:
        The options, without a default; the constraints, as entries of `Annotated`; and a problem,
        or None.
    """
    options = {name: getattr(info, name) for name in _READ if getattr(info, name) is not None}
    constraints = [entry for entry in info.metadata if _general(entry) is None]
    for entry in info.metadata:
        options.update(_general(entry) or {})
    aliased = info.alias is not None or info.validation_alias is not None
    text = "an alias is not read here; name it as it is sent, or make it a field of a model"
    return options, constraints, text if aliased else None
