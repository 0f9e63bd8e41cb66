"""Which of its many forms a class uses to declare its input and its output.

`input_schema` wins over `input` and the nested class `Input`; what a class declares wins over what
its bases do; the annotations of the handler count when nothing else is there.
"""

import enum
import functools
import inspect
import typing
from collections import abc
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from ..schema import Fault, Shape, output_annotation, read_parameters, read_raw, read_shape
from ..types import Content, ToolResult
from ._declare import Declaration
from ._handler import Handler, shown_parameter
from ._signature import UNRESOLVED, example_of, mentions

Side = Literal["input", "output"]

#: Annotations that say nothing about the arguments: the handler gets the plain dict.
_PLAIN: Final = (inspect.Parameter.empty, Any, object, dict, abc.Mapping)
#: Annotations of a parameter that can be one argument, but not all of them.
_VALUES: Final = (str, int, float, bytes, list, tuple, set, frozenset, enum.Enum)
_FORMS: Final = ("input", "output", "input_schema", "output_schema", "Input", "Output")


def is_one_value(name: str, annotation: Any) -> bool:
    """Tell whether a parameter that takes all arguments was meant to be one of them.

    Args:
        name: Its name; `args`, or one that begins with an underscore, is beyond doubt.
        annotation: Its annotation; `Parameter.empty` if there is none.
    """
    if name == "args" or name.startswith("_"):
        return False
    made = typing.get_origin(annotation) or annotation
    empty = annotation is inspect.Parameter.empty
    return empty or (isinstance(made, type) and issubclass(made, _VALUES))


@functools.cache
def open_object() -> Shape:
    """Give the input of a tool that declares none: any object, delivered as it came."""
    return typing.cast("Shape", read_raw({"type": "object"})[0])


def forms_of(cls: type) -> dict[str, Any]:
    """Find the forms that a class body holds; its bases are not looked at.

    Args:
        cls: A tool, one of its bases, or a mixin.

    Returns:
        What declares the input and the output, by the name of the form.
    """
    given = {**vars(cls), **vars(cls).get("__mcp_options__", {})}
    return {name: given[name] for name in _FORMS if name in given}


class Forms:
    """The schemas of one tool; what is wrong in them goes to the declaration.

    Args:
        declaration: The class statement.
        method: The method that answers: `call`, or the one of a kit.
        in_kit: Whether the options stand on the method, not on the class.
        strict: Whether unknown arguments are refused.
        descriptions: What docstrings say about the arguments.
    """

    def __init__(
        self,
        declaration: Declaration,
        method: str,
        *,
        in_kit: bool,
        strict: bool,
        descriptions: Mapping[str, str],
    ) -> None:
        self._declaration = declaration
        self._method = method
        self._in_kit = in_kit
        self._strict = strict
        self._descriptions = descriptions

    def read(
        self, places: Iterable[Mapping[str, Any]], handler: Handler | None
    ) -> tuple[Shape | None, Shape | None]:
        """Read the input and the output.

        Args:
            places: The forms of a class and of its bases, nearest first; or the options of one
                method.
            handler: The method, whose annotations count where no form is; None if they are not to
                be read.

        Returns:
            The two shapes. With a handler there is an input: that of any object if nothing is
            declared. After problems they are of no use.
        """
        given = list(places)
        has_input, shape = self._declared("input", given)
        has_output, output = self._declared("output", given)
        if handler is None:
            return shape, output
        shape = shape if has_input else self._arguments(handler)
        return shape or open_object(), output if has_output else self._returned(handler)

    def _declared(
        self, side: Side, places: Iterable[Mapping[str, Any]]
    ) -> tuple[bool, Shape | None]:
        for forms in places:
            found, shape = self._winner(side, forms)
            if found:
                return True, shape
        return False, None

    def _winner(self, side: Side, forms: Mapping[str, Any]) -> tuple[bool, Shape | None]:
        """Tell whether one place declares a side; its shape, or None after problems."""
        raw, nested = f"{side}_schema", side.capitalize()
        if raw in forms:
            return True, self._shape(side, raw, forms[raw])
        if side in forms and nested in forms:
            self._fault(nested, f"{side} and the class {nested} both declare it; keep one of them")
        elif nested in forms and not isinstance(forms[nested], type):
            self._fault(nested, f"must be a class; write {side} = … for {forms[nested]!r}")
        else:
            for name in (side, nested):
                if name in forms:
                    return True, self._shape(side, name, forms[name])
            return False, None
        return True, None

    def _arguments(self, handler: Handler) -> Shape | None:
        """Read the input that a signature declares: any object if it says nothing."""
        if handler.keywords:
            found = read_parameters(
                handler.function,
                list(handler.keywords),
                strict=self._strict,
                descriptions=self._descriptions,
            )
            return self._keep(self._method, found)
        annotation = handler.args
        if annotation is UNRESOLVED:
            self._unresolved("arguments", "input")
            return None
        if handler.first and self._is_one_value(handler, annotation):
            return None
        if annotation in _PLAIN or typing.get_origin(annotation) in _PLAIN:
            return open_object()
        found = read_shape(annotation, strict=self._strict, descriptions=self._descriptions)
        return self._keep(f"{self._method}.args", found)

    def _is_one_value(self, handler: Handler, annotation: Any) -> bool:
        """Refuse a parameter that is meant to be one argument, and would be passed all of them."""
        name = handler.first
        wrong = is_one_value(name, annotation)
        if wrong:
            parameters = inspect.signature(handler.function).parameters
            behind = f"*, {shown_parameter(parameters[name])}"
            row = f"ctx, {behind}" if handler.takes_context else behind
            whole = "(self, args, ctx)" if handler.takes_context else "(self, args)"
            cure = (
                f"write {example_of(handler.function, row)}, or {whole} to take them all"
                if self._in_kit
                else f"declare {name} in a class Input, and write def {self._method}{whole}"
            )
            text = f"{name!r} would be passed all arguments in one object; {cure}"
            self._declaration.problem(self._method, text, self._method)
        return wrong

    def _returned(self, handler: Handler) -> Shape | None:
        """Read the output that a return annotation declares, if it declares any."""
        annotation = handler.returns
        if annotation is UNRESOLVED:
            self._unresolved("result", "output")
            return None
        plain = annotation is inspect.Parameter.empty or mentions(annotation, (Content, ToolResult))
        if plain or not output_annotation(annotation):
            return None
        return self._keep(f"{self._method}.return", read_shape(annotation, input=False))

    def _shape(self, side: Side, name: str, value: Any) -> Shape | None:
        path = f"{self._method}.{name}" if self._in_kit else name
        is_input = side == "input"
        strict = self._strict and is_input
        if name.endswith("_schema"):
            found = read_raw(value, input=is_input, strict=strict)
        else:
            found = read_shape(
                value, strict=strict, descriptions=self._descriptions, input=is_input
            )
        return self._keep(path, found, None if self._in_kit else name)

    def _keep(
        self, path: str, found: tuple[Shape | None, list[Fault]], member: str | None = None
    ) -> Shape | None:
        shape, faults = found
        self._declaration.faults(path, faults, member or self._method)
        return None if faults else shape

    def _fault(self, name: str, text: str) -> None:
        self._declaration.problem(name, text, name)

    def _unresolved(self, what: str, side: Side) -> None:
        other = f"give @mcp({side}=…)" if self._in_kit else f"declare a class {side.capitalize()}"
        self._declaration.problem(
            self._method,
            f"the annotation of its {what} names something that is not there when the class is"
            f" made; import it, not for type checkers alone, or {other}",
            self._method,
        )
