"""The input and the output of a tool, from the many forms in which a class can declare them.

`input_schema` wins over `input` and the nested class `Input`; a declaration in a class wins over
declarations in its bases; the annotations of the handler count where nothing else declares it.
"""

import functools
import inspect
import typing
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from ..._util import called
from ...schema import (
    Fault,
    Shape,
    has_fields,
    header_paths,
    output_annotation,
    read_handle,
    read_parameters,
    read_raw,
    read_shape,
    take_handle,
)
from ...types import Content, ToolResult
from ..handlers._handler import Handler
from ..handlers._signature import UNRESOLVED, declares_input, mentions
from ._handles import describe_handles
from ._statement import Declaration

#: The JSON type of a result by its annotation; only of types whose results have no other one.
_RETURNED: Final[Mapping[object, str]] = {
    **dict.fromkeys((list, tuple, set, frozenset), "an array"),
    **dict.fromkeys((dict, Mapping), "an object"),
    **dict.fromkeys((str, bytes), "a string"),
    **dict.fromkeys((int, float), "a number"),
    bool: "a boolean",
    None: "null",
}
#: The same of a declared output, by its `type`.
_DECLARED: Final[Mapping[object, str]] = {
    "array": "an array",
    "object": "an object",
    "string": "a string",
    "integer": "a number",
    "number": "a number",
    "boolean": "a boolean",
    "null": "null",
}
SchemaSide = Literal["input", "output"]


# One object: it is compiled once, and recognised by its identity.
@functools.cache
def open_object() -> Shape:
    """Return the input of a tool that declares none: any object, delivered as it came."""
    return typing.cast("Shape", read_raw({"type": "object"})[0])


class ClassSchemas:
    """The schemas of one tool; their problems go to the declaration.

    Args:
        declaration: The class statement.
        method: The method that answers: `call`, or the method of a kit.
        handler: This method, read; None if its annotations do not count.
        options: The options of the tool.
        descriptions: The descriptions of arguments in docstrings.
        on_function: True if the options stand on the method of a kit or on a function; False if on
            the class and its bases.

    Attributes:
        input: The declared arguments, any object if there is a handler and no declaration.
        output: The declared structured content, or None. Both are of no use after problems.
        handles: The class of each parameter that takes a handle.
    """

    def __init__(
        self,
        declaration: Declaration,
        method: str,
        handler: Handler | None,
        options: Mapping[str, object],
        descriptions: Mapping[str, str],
        *,
        on_function: bool = False,
    ) -> None:
        self._declaration = declaration
        self._method = method
        strict = options.get("strict", False)
        self._reading: dict[str, Any] = {"strict": strict, "descriptions": descriptions}
        self._on_function = on_function
        self._given: dict[SchemaSide, object] = {}
        self.handles: dict[str, type] = {}
        # Nearest first: a class, its bases and mixins.
        places: list[Mapping[str, object]] = [options] if on_function else [*declaration.bodies()]
        has_input, self.input = self._declared("input", places)
        has_output, self.output = self._declared("output", places)
        if handler is not None:
            self.input = (self.input if has_input else self._arguments(handler)) or open_object()
            self._check_annotations(handler)
            self.output = self.output if has_output else self._returned(handler)
            self._check_handles(handler, options)

    def parts(self) -> dict[str, Any]:
        """Return the fields of `Declared` that the schemas make."""
        shape, output = self.input or open_object(), self.output
        # Found here, once: basic/transports of 2026-07-28 has each call compared with its headers.
        mirrored = header_paths(shape.schema)
        schema, handles = shape.schema, self.handles
        if handles:
            schema = describe_handles(schema, handles, {})
        fields = {"input": shape, "output": output, "mirrored": mirrored, "handles": handles}
        return {
            "members": {"input_schema": schema, "output_schema": output and output.schema},
            "fields": lambda _: fields,
        }

    def _declared(
        self, side: SchemaSide, places: Iterable[Mapping[str, object]]
    ) -> tuple[bool, Shape | None]:
        """Tell whether a side is declared; its shape, or None after problems."""
        raw, nested = f"{side}_schema", side.capitalize()
        for place in places:
            name = next((name for name in (raw, side, nested) if name in place), None)
            if name is None:
                continue
            # A raw schema wins over the others; of the two that are left neither wins.
            if name == side and nested in place:
                text = f"{side} and the class {nested} both declare it; keep one of them"
            elif name == nested and not isinstance(place[nested], type):
                text = f"must be a class; write {side} = … for {called(place[nested])}"
            else:
                return True, self._shape(side, name, place[name])
            self._declaration.problem(nested, text)
            return True, None
        return False, None

    def _shape(self, side: SchemaSide, name: str, value: object) -> Shape | None:
        path = f"{self._method}.{name}" if self._on_function else name
        self._given[side] = value
        reading = {**self._reading, "input": side == "input"}
        # `strict` is about unknown arguments; a result may have more members than it declares.
        reading["strict"] &= reading["input"]
        # A raw schema is published as it is, docstrings add nothing to it.
        if name.endswith("_schema"):
            del reading["descriptions"]
            found = read_raw(value, **reading)
        else:
            # A class in the body of a generic class may name the variables of that.
            home = None if self._on_function else self._declaration.owner_of(name)
            found = read_shape(value, types=self._declaration.types_of(home), **reading)
        return self._keep(path, found, None if self._on_function else name)

    def _keep(
        self, path: str, found: tuple[Shape | None, list[Fault]], member: str | None = None
    ) -> Shape | None:
        shape, faults = found
        if faults:
            self._declaration.faults(path, faults, member or self._method)
            return None
        return shape

    def _arguments(self, handler: Handler) -> Shape | None:
        """Read the input that a signature declares: any object if it declares none."""
        if handler.properties:
            properties = list(map(self._take_handle, handler.properties))
            found = read_parameters(handler.function, properties, **self._reading)
            return self._keep(self._method, found)
        p = handler.taking("args")
        if p is None:
            return open_object()
        if isinstance(p.annotation, str):
            self._unresolved("arguments", "input")
            return None
        if not declares_input(p):
            return open_object()
        found = read_shape(p.annotation, **self._reading)
        return self._keep(f"{self._method}.args", found)

    def _take_handle(self, p: inspect.Parameter) -> inspect.Parameter:
        """Return a property of the input. The property of a handle is a text, its id."""
        annotation, cls = take_handle(p.annotation)
        if cls is None:
            return p
        self.handles[p.name] = cls
        self._read_handle(cls)
        return p.replace(annotation=annotation)

    def _read_handle(self, cls: type) -> None:
        # Its statement could not report names that were defined later.
        _, faults, _ = read_handle(cls)
        self._declaration.faults(cls.__name__, faults, self._method)

    def _check_handles(self, handler: Handler, options: Mapping[str, object]) -> None:
        """Refuse options that do not fit the handles of a tool."""
        returned = self.output.handles if self.output else ()
        if handler.mode == "inline" and (self.handles or returned):
            text = "an inline handler must not wait, and a handle is loaded and stored; leave out"
            self._declaration.problem(f"{self._method}.inline", f"{text} inline", self._method)
        hints = options.get("annotations")
        taken = tuple(self.handles.values())
        if getattr(hints, "read_only_hint", None) and not set(returned) <= set(taken):
            text = "a tool with read_only_hint stores nothing, so a handle that it returns has no"
            text += " id; leave the hint out"
            self._declaration.problem(f"{self._method}.annotations", text, self._method)

    def _check_annotations(self, handler: Handler) -> None:
        """Refuse annotations that contradict what is declared: one of the two would be ignored."""
        declaration, method = self._declaration, self._method

        def is_own() -> bool:
            """Tell whether the method is new; the annotations of a base are about its own."""
            return self._on_function or declaration.owner_of(method) is declaration.cls

        p = handler.taking("args")
        declared = p is not None and "input" in self._given and has_fields(p.annotation)
        if p is not None and declared and is_own():
            given = self._given["input"]
            made = typing.get_origin(given) or given
            if not (isinstance(made, type) and issubclass(made, p.annotation)):
                text = f"is annotated as {p.annotation.__name__}, and the declared input gives"
                text += f" {made.__name__ if isinstance(made, type) else 'another object'}"
                declaration.problem(f"{method}.{p.name}", f"{text}; leave out one of them", method)
        output = self.output and _DECLARED.get(str(self.output.schema.get("type")))
        result = typing.get_origin(handler.returns) or handler.returns
        returned = _RETURNED.get(result) if isinstance(result, Hashable) else None
        if output and returned not in (None, output) and is_own():
            name = getattr(result, "__name__", None)
            text = f"returns {name}, and the declared output is {output}; leave out one of them"
            declaration.problem(f"{method}.return", text, method)

    def _returned(self, handler: Handler) -> Shape | None:
        """Read the output that a return annotation declares, if it declares any."""
        annotation = handler.returns
        # Not ignored: the tool would silently lack its output schema.
        if annotation is UNRESOLVED:
            self._unresolved("result", "output")
            return None
        # Content blocks are an answer without structured content, so they declare none.
        plain = annotation is inspect.Parameter.empty or mentions(annotation, (Content, ToolResult))
        if plain or not output_annotation(annotation):
            return None
        return self._keep(f"{self._method}.return", read_shape(annotation, input=False))

    def _unresolved(self, part: str, side: SchemaSide) -> None:
        other = (
            f"give @mcp({side}=…)" if self._on_function else f"declare a class {side.capitalize()}"
        )
        self._declaration.problem(
            self._method,
            f"the annotation of its {part} names something that is not there when the class is"
            f" made; import it, not for type checkers alone, or {other}",
        )


def call_problems(
    handler: Handler, options: Mapping[str, object], own: Container[str]
) -> Iterator[tuple[str, str]]:
    """Find the options of a tool that do not fit its handler.

    Args:
        handler: The method that answers its calls.
        options: Its options, including options of its kit.
        own: The names of its own options.

    Yields:
        The option, and the text of the problem.
    """
    if handler.mode == "async" and "inline" in own:
        yield "inline", "is for a sync method; an async one runs where it is called anyway"
    starts = options.get("starts_task", False)
    # A task outlives the request that began it; an inline handler keeps the loop busy until it is
    # done, so that nothing else would be served in the meantime.
    if options.get("task") is None:
        if options.get("restartable", False):
            yield "task", "restartable is for a tool that runs as a task; write task='optional'"
        if starts:
            yield "task", "starts_task is for a tool that runs as a task; write task='optional'"
    elif handler.mode == "inline":
        yield "task", "an inline handler must not wait, and a task takes its time; leave out one"
    elif starts and (handler.mode != "async" or not handler.takes_context):
        yield (
            "task",
            "starts_task needs an async handler that takes ctx and awaits ctx.start_task()",
        )
