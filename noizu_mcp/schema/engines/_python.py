"""The pure-Python engine: code where fastjsonschema is proven right, else a walk.

A schema of the common keywords is rewritten into the draft-07 words that fastjsonschema gets right,
which makes Python code of it. Any other schema, and every schema of a peer, is validated by the
walk that also finds the words for violations: several times slower, and no text of a peer becomes
code. What neither can judge exactly is refused by name, never guessed.

A recursive schema is walked, too: code would judge a part of a value twice as often at each level,
where alternatives refer back, and the walk judges it once.

The code generator is not a public interface: setup.cfg pins the minor release, and the official
suite shows whether a new one may be let in. It is loaded when the first schema is compiled.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from fastjsonschema import JsonSchemaValueException
from fastjsonschema.draft07 import CodeGeneratorDraft07
from fastjsonschema.ref_resolver import RefResolver

from ..._errors import SchemaUnsupported
from ..._json_schema import BOUNDS, COMBINING, SIZES
from ..._value import JSONObject
from ..jsonschema._document import REFERENCES, Document, is_local, schema_error
from ..jsonschema._keywords import DIALECTS, LATEST, RULES
from ..jsonschema._values import CompilePart, Verdict, equal_pairs, is_encodable, is_multiple
from ..jsonschema._violation import show
from ..report._explain import Explainer
from ._patterns import PatternRefusedError, match_pattern, translate

__all__ = ["MAX_WORK", "compile_document", "match_pattern"]

#: See `Engine`.
MAX_WORK = 300_000

# Loops and trials that one function nests at most, at up to three per level of the schema: Python
# nests at most 20 blocks.
_INLINE_DEPTH = 4

_COPIED = frozenset({"type", "enum", "multipleOf", "uniqueItems", *BOUNDS})
_NESTED = frozenset(
    {"items", "prefixItems", "properties", "additionalProperties", "propertyNames", *COMBINING}
)
_SERVED = _COPIED | SIZES | _NESTED | {"pattern", "$ref", "const", "required"}
# Keywords that reject nothing.
_SILENT = frozenset(
    {
        *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "title", "description"),
        *("default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
        *("contentEncoding", "contentMediaType", "contentSchema"),
    }
)
# What the walk alone serves.
_WALKED = RULES.keys() - _SERVED - _SILENT
# The dialects that are served with the keywords that have kept their meaning.
_OLDER = frozenset(uri for uri, name in DIALECTS.items() if name in ("6", "7", "201909"))
_LASTING = (_SERVED | _SILENT | {"not", "patternProperties"}) - {"prefixItems"}


def compile_document(document: Document, *, trusted: bool) -> tuple[Verdict, CompilePart]:
    """Compile a schema into Python code, or a walk; see `Engine`."""
    _check_served(document)
    for pattern in document.patterns():
        try:
            translate(pattern)
        except PatternRefusedError as error:
            raise _unsupported("pattern", f"a pattern: {error}") from None
    common = all(_WALKED.isdisjoint(node) for node in document.reachable())
    if trusted and common and document.dialect == LATEST and not document.survey.recursive:
        # The generator fails in many ways where it cannot express a schema.
        with suppress(Exception):
            return _generated(document), _refuse_part
    return Explainer(document, match_pattern).judge, _refuse_part


def _refuse_part(_part: object) -> Verdict:
    """Refuse to compile a part of a schema: the walk goes through the parts by itself."""
    raise ValueError("the Python engine compiles whole schemas")


def _generated(document: Document) -> Verdict:
    """Return a verdict in Python code."""
    function = _generate(_Writer(document).document())

    def is_valid(value: object) -> bool:
        try:
            function(value)
        except Mismatch:
            return False
        # Deeper than the stack, or not JSON, such as a key that is not a string.
        except (RecursionError, TypeError, ValueError):
            return False
        return True

    return is_valid


def _unsupported(keyword: str, text: str) -> SchemaUnsupported:
    """Return the refusal of a keyword, with the way out."""
    way_out = "install the native engine, which can: pip install jsonschema-rs"
    return SchemaUnsupported(f"the Python engine cannot serve {text}; {way_out}", keyword)


def _check_served(document: Document) -> None:
    """Raise SchemaUnsupported, or SchemaError, for a schema that cannot be judged exactly."""
    nodes, dialect = document.reachable(), document.dialect
    lasting = dialect in _OLDER and all(_LASTING.issuperset(node.keys()) for node in nodes)
    if dialect != LATEST and not lasting:
        raise _unsupported("$schema", f'"$schema": {show(dialect)} with these keywords')
    faults = document.faults()
    if faults:
        raise schema_error(faults)
    for node in nodes:
        for keyword in (*REFERENCES[1:], "$vocabulary"):
            if keyword in node:
                raise _unsupported(keyword, f'"{keyword}"')
        if "$id" in node and node is not document.root:
            raise _unsupported("$id", f'an "$id" inside of the schema ({show(node["$id"])})')
        if "$ref" in node and not is_local(node["$ref"]):
            raise _unsupported("$ref", f'"$ref": {show(node["$ref"])}, which is not local')
    if document.is_endless():
        raise _unsupported("$ref", 'a "$ref" that leads back to itself without going deeper')


class _Writer:
    """Writes a schema in draft-07 words.

    References become `#/definitions/rN`, since names are lost in the names of functions. Keywords
    that the generator ignores or mixes up beside others go into `allOf`.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: dict[int, str] = {}
        self._waiting: list[tuple[str, JSONObject]] = []

    def document(self) -> JSONObject:
        """Return a new schema with the same meaning for the generator."""
        whole: JSONObject = {"allOf": [self._inline(self._document.root, 0)], "definitions": {}}
        while self._waiting:
            name, target = self._waiting.pop()
            whole["definitions"][name] = self._inline(target, 0)
        return whole

    def _function(self, node: Any) -> object:
        """Return a reference to a subschema, which gets a function of its own."""
        if isinstance(node, bool):
            return node
        if id(node) not in self._names:
            self._names[id(node)] = f"r{len(self._names)}"
            self._waiting.append((self._names[id(node)], node))
        return {"$ref": f"#/definitions/{self._names[id(node)]}"}

    def _inline(self, node: Any, depth: int) -> object:
        if isinstance(node, bool) or depth > _INLINE_DEPTH:
            return self._function(node)
        out: JSONObject = {}
        aside: list[object] = []
        for keyword, value in node.items():
            if keyword in _COPIED:
                out[keyword] = value
            elif keyword in SIZES:
                out[keyword] = int(value)
            elif keyword == "pattern":
                out[keyword] = translate(value)
            elif keyword in _NESTED:
                self._nest(keyword, value, node, out, depth + 1)
            else:
                aside += self._aside(keyword, value, node)
        if aside:
            out["allOf"] = [*aside, *out.get("allOf", ())]
        return out

    def _nest(
        self, keyword: str, value: Any, node: JSONObject, out: JSONObject, depth: int
    ) -> None:
        """Write a keyword with subschemas that keeps its meaning."""
        own: object
        if isinstance(value, list):
            own = [self._inline(item, depth) for item in value]
        elif keyword == "properties":
            own = {name: self._inline(item, depth) for name, item in value.items()}
        else:
            own = self._inline(value, depth)
        if keyword == "prefixItems":
            keyword = "items"
        elif keyword == "items" and "prefixItems" in node:
            keyword = "additionalItems"
        # For a schema that allows everything the generator would write a loop without a body.
        if own not in (True, {}):
            out[keyword] = own

    def _aside(self, keyword: str, value: Any, node: JSONObject) -> Iterator[object]:
        """Yield the schema for a keyword that the generator mixes up beside others."""
        if keyword == "$ref":
            yield self._function(self._document.find(value, node))
        elif keyword == "const":
            yield {"enum": [value]}
        elif keyword == "required":
            # Beside `additionalProperties` the generator takes a required property that is not
            # allowed for a mistake; it is only false.
            yield {keyword: value}


class Mismatch(JsonSchemaValueException):
    """The value does not fit; raised without words, which the explainer has."""

    def __init__(self) -> None:
        super().__init__("")


_TYPES = {
    "null": "{0} is None",
    "boolean": "isinstance({0}, bool)",
    "object": "isinstance({0}, dict)",
    "array": "isinstance({0}, (list, tuple))",
    # A lone surrogate cannot be sent, so it is not a JSON string; ASCII texts have none.
    "string": "isinstance({0}, str) and ({0}.isascii() or is_encodable({0}))",
    # The difference is 0 for everything but NaN and the infinities.
    "number": "isinstance({0}, (int, float)) and not isinstance({0}, bool) and {0} - {0} == 0",
    "integer": "isinstance({0}, int) and not isinstance({0}, bool)"
    " or isinstance({0}, float) and {0}.is_integer()",
}


class Generator(CodeGeneratorDraft07):
    """Writes one function per definition, with the places corrected that differ from 2020-12.

    Each function takes a value; it raises `Mismatch`, or returns.
    """

    # The library sets these around the writing of each part.
    _definition: Any
    _variable: object

    def exc(self, *_args: object, **_kwargs: object) -> None:
        """Write the rejection: no message, whatever the original has to say."""
        self.l("raise Mismatch")

    def generate_ref(self) -> None:
        """Write the call of a definition; the original passes a name for its path, too."""
        with self._resolver.in_scope(self._definition["$ref"]):
            name, uri = self._resolver.get_scope_name(), self._resolver.get_uri()
        if uri not in self._validation_functions_done:
            self._needed_validation_functions[uri] = name
        self.l("{}({variable})", name)

    def generate_type(self) -> None:
        """Write the check of the type; the original takes NaN for a number."""
        wanted = self._definition["type"]
        types = wanted if isinstance(wanted, list) else [wanted]
        tests = " or ".join(f"({_TYPES[name].format(self._variable)})" for name in types)
        with self.l("if not ({}):", tests):
            self.exc()

    def generate_multiple_of(self) -> None:
        """Write an exact check; the original divides floats, and fails on infinity."""
        with (
            self.l("if isinstance({variable}, (int, float)) and not isinstance({variable}, bool):"),
            self.l("if not is_multiple({variable}, {multipleOf}):"),
        ):
            self.exc()

    def generate_unique_items(self) -> None:
        """Write a check in linear time; the original hashes numbers, which a peer can choose."""
        if self._definition["uniqueItems"]:
            with self.l(
                "if isinstance({variable}, (list, tuple)) and any(equal_pairs({variable})):"
            ):
                self.exc()


def _generate(schema: JSONObject) -> Callable[[object], object]:
    """Return a function that raises `Mismatch` for values that do not fit.

    Args:
        schema: The output of `_Writer`; the library may change it.
    """
    resolver = RefResolver.from_schema(schema, store={})
    make: Any = Generator
    generator = make(schema, resolver, use_default=False, detailed_exceptions=False)
    helpers = (Mismatch, equal_pairs, is_encodable, is_multiple)
    scope = {**generator.global_state, **{helper.__name__: helper for helper in helpers}}
    exec(generator.func_code, scope)
    function: Callable[[object], object] = scope[resolver.get_scope_name()]
    return function
