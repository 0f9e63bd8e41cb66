"""fastjsonschema's code generator, with the places corrected where it differs from 2020-12.

The generator is not a public interface: setup.cfg pins the minor release, and the official suite
shows whether a new one may be let in. Loaded when the first schema is compiled.
"""

from collections.abc import Callable
from typing import Any

from fastjsonschema import JsonSchemaValueException
from fastjsonschema.draft07 import CodeGeneratorDraft07
from fastjsonschema.ref_resolver import RefResolver

from ..jsonschema._not_json import is_encodable
from ..jsonschema._values import is_multiple


class Mismatch(JsonSchemaValueException):
    """The value does not fit; raised without words, which `Explainer` has."""

    def __init__(self) -> None:
        super().__init__("")


_TYPES = {
    "null": "{0} is None",
    "boolean": "isinstance({0}, bool)",
    "object": "isinstance({0}, dict)",
    "array": "isinstance({0}, (list, tuple))",
    # A lone surrogate cannot be sent, so it is no JSON string; few texts need a second look.
    "string": "isinstance({0}, str) and ({0}.isascii() or is_encodable({0}))",
    # The difference is 0 for everything but NaN and the infinities.
    "number": "isinstance({0}, (int, float)) and not isinstance({0}, bool) and {0} - {0} == 0",
    "integer": "isinstance({0}, int) and not isinstance({0}, bool)"
    " or isinstance({0}, float) and {0}.is_integer()",
}


class Generator(CodeGeneratorDraft07):
    """Writes one function per definition; each raises `Mismatch`, or returns."""

    # The library sets these two around the writing of each part.
    _definition: Any
    _variable: Any

    def exc(self, *_args: Any, **_kwargs: Any) -> None:
        """Write the rejection: no message, whatever the original has to say."""
        self.l("raise Mismatch")

    def generate_ref(self) -> None:
        """Write the call of the function of a definition."""
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

    def generate_contains(self) -> None:
        """Write the count of the items that fit; the original knows no bounds."""
        library: Any = self  # its own methods have no types
        library.create_variable_is_list()
        with self.l("if {variable}_is_list:"):
            self.l("{variable}_fitting = 0")
            with self.l("for {variable}_key in {variable}:"):
                self._count_if_fitting()
            with self.l("if {variable}_fitting < {minContains}:"):
                self.exc()
            if "maxContains" in self._definition:
                with self.l("if {variable}_fitting > {maxContains}:"):
                    self.exc()

    def _count_if_fitting(self) -> None:
        library: Any = self
        item = f"{self._variable}_key"
        with self.l("try:"):
            library.generate_func_code_block(
                self._definition["contains"], item, self._variable_name, clear_variables=True
            )
            self.l("{variable}_fitting += 1")
        with self.l("except Mismatch:"):
            self.l("pass")


def generate(schema: dict[str, Any]) -> Callable[[Any], Any]:
    """Return a function that raises `Mismatch` for values that do not fit.

    Args:
        schema: The output of `rewrite`; the library may change it.
    """
    resolver = RefResolver.from_schema(schema, store={})
    make: Any = Generator
    generator = make(schema, resolver, use_default=False, detailed_exceptions=False)
    helpers = {"Mismatch": Mismatch, "is_multiple": is_multiple, "is_encodable": is_encodable}
    scope = {**generator.global_state, **helpers}
    exec(generator.func_code, scope)
    function: Callable[[Any], Any] = scope[resolver.get_scope_name()]
    return function
