"""The state of reading a declaration, and the fields that it reads.

A declaration is read once, from the top down. An annotation becomes a node, a class becomes an
object node with its fields. A problem is recorded with the path of the field;
then reading continues with a node for any value, so that all problems are reported together.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, get_args, get_origin

from ..jsonschema._violation import Fault
from ._field import Marker, is_field_info
from ._field_options import constrain, marker_problems
from ._nodes import MISSING, Node, Object, ObjectField, is_nullable
from ._resolve import NO_TYPES, TEXT, NameScope, Types, Unresolved

# Special forms that are about a field, not about its type. By name: some are newer than the oldest
# Python served, and typing_extensions has its own.
_WRAPPERS = frozenset({"Final", "Required", "NotRequired", "ReadOnly"})
_LATE_DEFAULT = "a default inside Annotated; write it after the =, as Python does"


class ParseState:
    """The state of reading one declaration.

    Args:
        infer: Reads an annotation that is not text; raises `Unresolved`. It is passed, because it
            reads classes, which in turn read their annotations by this state.
        output: True if the declaration describes a result. Attributes that no parameter of the
            constructor sets are part of it.
        strict: True to forbid names that are not declared.
        descriptions: Descriptions for fields of the root that are declared without one.
        types: The types of the type variables of a class around the declaration.

    Attributes:
        faults: The problems so far.
        path: The names of the fields around the place that is being read.
        owner: The class that declares the last of them.
        classes: Each class that was read, with its type arguments and its node; a class that
            contains itself is found here.
        open: The nodes of the classes that are being read, by identity.
        aliases: The named types (PEP 695) that are being read.
        unresolved: True after a name that does not exist yet.
        risky: True after a type that may refuse a value which its schema accepts.
        headers: True after a field with a header.
        titled: True after a title, of a field or of a choice.
        sided: True after a type whose input and output have different schemas.
        undecided: True for the statement of a class that may become an input or a part of a result.
    """

    def __init__(
        self,
        infer: "Callable[[ParseState, Any, NameScope], Node]",
        *,
        output: bool = False,
        strict: bool = False,
        descriptions: Mapping[str, str] | None = None,
        types: Types = NO_TYPES,
        undecided: bool = False,
    ) -> None:
        self.types = types
        self._infer = infer
        self.output = output
        self.undecided = undecided
        self.strict = strict
        self.descriptions = descriptions or {}
        self.faults: list[Fault] = []
        self.path: tuple[str | int, ...] = ()
        self.owner: type | None = None
        self.classes: list[tuple[type, tuple[object, ...], Object]] = []
        self.open: set[int] = set()
        self.aliases: list[object] = []
        self.unresolved = False
        self.risky = False
        self.headers = False
        self.titled = False
        self.sided = False

    def fault(self, text: str) -> None:
        """Record a problem at the present place."""
        self.faults.append(Fault(self.path, text, self.owner))

    @contextmanager
    def at(self, name: str | int | None, owner: type | None) -> Iterator[None]:
        """Report faults of the block at a field; or, with None, at the class as a whole."""
        outside = self.path, self.owner
        self.path = self.path if name is None else (*self.path, name)
        self.owner = owner
        try:
            yield
        finally:
            self.path, self.owner = outside

    def node(self, annotation: object, scope: NameScope) -> Node:
        """Read an annotation.

        Args:
            annotation: Any annotation, text included. A type without a schema is a fault.
            scope: The names that it may use.

        Returns:
            A node that belongs to this place alone, so that constraints can be put on it; except
            that a class has one node.
        """
        try:
            if isinstance(annotation, TEXT):
                annotation = scope.resolve(annotation)
            return self._infer(self, annotation, scope)
        except Unresolved as error:
            return self._unknown(error)

    def pydantic_node(self, annotation: object) -> Node:
        """Read a type that pydantic describes and validates."""
        # Loaded with the first one.
        from ._pydantic import read_pydantic

        self.sided = True
        # The docstring of a method describes the fields of a whole input only.
        descriptions = {} if self.path else self.descriptions
        found = read_pydantic(
            annotation, output=self.output, strict=self.strict, descriptions=descriptions
        )
        if isinstance(found, list):
            for path, text, owner, *_ in found:
                self.faults.append(Fault((*self.path, *path), text, owner or self.owner))
            return Node()
        self.titled = self.titled or bool(found.titles)
        # The JSON of an output is checked against its schema; it is not read back.
        self.risky = self.risky or not self.output
        return found

    def annotated_node(
        self, annotation: object, entries: Iterable[object], scope: NameScope
    ) -> tuple[Node, list[object]]:
        """Read an annotation with the entries of `Annotated` that are about its type.

        Args:
            annotation: The annotation, without the entries.
            entries: The entries; pydantic reads the annotation with the entries that no option of
                a field expresses.
            scope: The names that the annotation may use.

        Returns:
            The node, and the entries that are left.
        """
        left = list(entries)
        if left and "pydantic" in sys.modules:
            # Loaded where a program uses pydantic.
            from ._pydantic import split_entries

            theirs, left = split_entries(left)
            if theirs:
                return self.pydantic_node(Annotated[(scope.resolve(annotation), *theirs)]), left
        return self.node(annotation, scope), left

    def _unknown(self, error: Unresolved) -> Node:
        """Record a name that does not exist, at least not yet."""
        self.unresolved = True
        self.fault(str(error))
        return Node()

    def check_marker(self, marker: Marker) -> None:
        """Record the problems of a marker that do not depend on its type."""
        for problem in marker_problems(marker):
            self.fault(problem)

    def constrain(self, node: Node, options: Mapping[str, object]) -> None:
        """Apply the options that are about a type to its node."""
        self.titled = self.titled or not options.keys().isdisjoint(("title", "titles"))
        for problem in constrain(node, options):
            self.fault(problem)

    def annotated_field(
        self,
        name: str,
        annotation: object,
        scope: NameScope,
        marker: Any = None,
        **about: object,
    ) -> ObjectField:
        """Read a field with an annotation, and perhaps a marker; faults are reported at the field.

        Args:
            name: The name on the wire.
            annotation: The whole annotation.
            scope: The names that it may use.
            marker: `field(...)`, `argument(...)` or `pydantic.Field(...)`, if one was written.
            **about: Attributes of `ObjectField`.
        """
        entries: Iterable[object] = ()
        try:
            inner, entries, required = _unwrap(annotation, scope)
            if any(is_field_info(entry) and not entry.is_required() for entry in entries):
                self.fault(_LATE_DEFAULT)
            if marker is not None and is_field_info(marker):
                entries, about = [*entries, marker], {**about, **_default_of(marker)}
                marker = None
            node, entries = self.annotated_node(inner, entries, scope)
        except Unresolved as error:
            node, required = self._unknown(error), None
        options = self.entry_options(node, entries)
        if required is not None:
            about["required"] = required
        if marker is not None:
            if marker.kind is not None:
                self.fault(
                    f"{marker.maker}(...) is for mappings; beside an annotation write field(...)"
                )
            self.check_marker(marker)
            options.update(marker.options)
            if "factory" in options:
                about["factory"] = options["factory"] if callable(options["factory"]) else None
        if isinstance(about.get("default"), Marker):
            text = "write Annotated[<type>, field(...)], and its default, if any, after the ="
            self.fault(f"field(...) is not read here; {text}")
            del about["default"]
        return self.field(name, node, options, **about)

    def field(
        self, name: str, node: Node, options: Mapping[str, Any], **about: object
    ) -> ObjectField:
        """Return a field, after its constraints are put on its type.

        Args:
            name: The name on the wire.
            node: The type.
            options: The options of the marker, checked already.
            **about: Attributes of `ObjectField`; `required` holds if the options do not decide it.
        """
        if options:
            self.constrain(node, options)
        field = ObjectField(name, node, **{"default": options.get("default", MISSING), **about})
        absent_fits = field.has_default or is_nullable(node)
        known = (options.get("required"), about.get("required"), not absent_fits)
        field.required = bool(next(each for each in known if each is not None))
        # Wrong values of options were noted before.
        for option in ("description", "header", "title"):
            if isinstance(options.get(option), str):
                setattr(field, option, options[option])
        self.headers = self.headers or field.header is not None
        if isinstance(options.get("examples"), (list, tuple)):
            field.examples = tuple(options["examples"])
        field.complete = options.get("complete")
        return field

    def entry_options(self, node: Node, entries: Iterable[object]) -> dict[str, object]:
        """Return the options that the entries of `Annotated[...]` express."""
        options: dict[str, object] = {}
        for entry in entries:
            if isinstance(entry, Marker):
                if entry.kind is not None:
                    self.fault(f"{entry.maker}(...) inside Annotated; write field(...)")
                    continue
                self.check_marker(entry)
                if {"default", "factory"} & entry.options.keys():
                    self.fault(_LATE_DEFAULT)
                own = entry.options.items()
                options.update((k, v) for k, v in own if k not in ("default", "factory"))
            elif isinstance(entry, str):
                options.setdefault("description", entry)
            elif is_field_info(entry):
                from ._pydantic import read_field_info

                said, constraints, problem = read_field_info(entry)
                if problem is not None:
                    self.fault(problem)
                options.update(said)
                options.update(self.entry_options(node, constraints))
            else:
                # Loaded with the first constraint of another library.
                from ._constraints import annotated_options

                found = annotated_options(node, entry)
                if isinstance(found, str):
                    self.fault(found)
                else:
                    options.update(found)
        return options


def _unwrap(annotation: Any, scope: NameScope) -> tuple[object, list[Any], bool | None]:
    """Remove the parts of an annotation that are about the field, not about its type.

    Returns:
        The annotation of the type; the entries of `Annotated`; and True for `Required[...]`, False
        for `NotRequired[...]`, else None.

    Raises:
        Unresolved: If text in it names something unknown.
    """
    entries: list[object] = []
    required = None
    while True:
        if isinstance(annotation, TEXT):
            annotation = scope.resolve(annotation)
        origin = get_origin(annotation)
        if origin is Annotated:
            entries = [*annotation.__metadata__, *entries]
            annotation = annotation.__origin__
        elif (form := getattr(origin, "_name", None)) in _WRAPPERS:
            required = {"Required": True, "NotRequired": False}.get(form, required)
            (annotation,) = get_args(annotation)
        else:
            return annotation, entries, required


def _default_of(info: Any) -> dict[str, object]:
    """Return the default of `pydantic.Field(...)`, as attributes of `ObjectField`."""
    if info.is_required():
        return {}
    factory = info.default_factory
    return {"default": info.default} if factory is None else {"factory": factory}
