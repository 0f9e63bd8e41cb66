"""What is shared while a declaration is read: where the reader stands, what is wrong so far."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..jsonschema._fault import Fault
from ._constraints import annotated_options
from ._field import MISSING, Marker
from ._field_options import OF_TYPE, constrain, marker_problems
from ._frozen_class import foreign_field
from ._nodes import Field, Node, Object, is_nullable
from ._resolve import Scope, Unresolved


class Reading:
    """The state of reading one declaration.

    Attributes:
        infer: Reads an annotation; given from outside because classes and annotations nest.
        output: True if the form describes a result: attributes without a constructor parameter
            are part of it.
        faults: What is wrong so far.
        path: The names of the fields around the place being read.
        owner: The class that declares the last of them.
        classes: What each class was read into, so that a recursive one ends.
        aliases: Named types (PEP 695) being read.
        unresolved: True once a name was met that does not exist yet.
    """

    def __init__(
        self, infer: "Callable[[Reading, Any, Scope], Node]", *, output: bool = False
    ) -> None:
        self.infer = infer
        self.output = output
        self.faults: list[Fault] = []
        self.path: tuple[str | int, ...] = ()
        self.owner: type | None = None
        self.classes: list[tuple[type, tuple[Any, ...], Object]] = []
        self.aliases: list[Any] = []
        self.unresolved = False

    def fault(self, text: str) -> None:
        """Note something wrong at the present place."""
        self.faults.append(Fault(self.path, text, self.owner))

    def unknown(self, error: Unresolved) -> None:
        """Note a name that does not exist, at least not yet."""
        self.unresolved = True
        self.fault(str(error))

    @contextmanager
    def at(self, name: str | int | None, owner: type | None) -> Iterator[None]:
        """Stand at a field, or (None) at a class as a whole, for the length of the block."""
        outside = self.path, self.owner
        self.path = self.path if name is None else (*self.path, name)
        self.owner = owner
        try:
            yield
        finally:
            self.path, self.owner = outside

    def node(self, annotation: Any, scope: Scope) -> Node:
        """Read an annotation; one that cannot be read is a fault, and stands for any value."""
        try:
            return self.infer(self, annotation, scope)
        except Unresolved as error:
            self.unknown(error)
            return Node()

    def metadata(self, node: Node, entries: Iterable[Any]) -> dict[str, Any]:
        """Put the entries of an `Annotated[...]` on a node.

        Returns:
            What they say about the field and not about its type: description, header, ….
        """
        options: dict[str, Any] = {}
        for entry in entries:
            if isinstance(entry, Marker):
                options.update(self._marker_entry(entry))
            elif isinstance(entry, str):
                options.setdefault("description", entry)
            else:
                self._constraint(node, entry, options)
        for problem in constrain(node, options):
            self.fault(problem)
        return {name: value for name, value in options.items() if name not in OF_TYPE}

    def _constraint(self, node: Node, entry: Any, options: dict[str, Any]) -> None:
        maker = foreign_field(entry)
        found = annotated_options(node, entry)
        if maker is not None:
            self.fault(f"{maker} is not read here; write field(...)")
        elif found is None:
            self.fault(f"{entry!r} cannot be written in JSON Schema; check it in the handler")
        else:
            options.update(found)

    def _marker_entry(self, marker: Marker) -> dict[str, Any]:
        if marker.kind is not None:
            self.fault(f"{marker.maker}(...) inside Annotated; write field(...)")
            return {}
        self.check_marker(marker)
        if {"default", "factory"} & marker.options.keys():
            self.fault("a default inside Annotated; write it after the =, as Python does")
        return {k: v for k, v in marker.options.items() if k not in ("default", "factory")}

    def check_marker(self, marker: Marker) -> None:
        """Note what is wrong with a marker in itself."""
        for problem in marker_problems(marker):
            self.fault(problem)


def make_field(
    reading: Reading, name: str, node: Node, options: Mapping[str, Any], **about: Any
) -> Field:
    """Return a field, after its constraints are put on its type.

    Args:
        reading: Where faults go.
        name: The name on the wire.
        node: The type.
        options: Of `field(...)` or `f.*(...)`, checked already.
        **about: Attributes of `Field`; `required` is what holds if the options do not say.
    """
    for problem in constrain(node, options):
        reading.fault(problem)
    about.setdefault("default", options.get("default", MISSING))
    field = Field(name, node, about)
    required = options.get("required")
    if required is None:
        fixed = about.get("required")
        required = not field.has_default and not is_nullable(node) if fixed is None else fixed
    field.required = bool(required)
    description, examples = options.get("description"), options.get("examples")
    field.description = description if isinstance(description, str) else None
    field.examples = tuple(examples) if isinstance(examples, (list, tuple)) else ()
    header = options.get("header")
    field.header = header if isinstance(header, str) else None
    title = options.get("title")
    field.title = title if isinstance(title, str) else None
    field.complete = options.get("complete")
    return field
