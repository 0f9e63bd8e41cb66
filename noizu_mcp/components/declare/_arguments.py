"""The arguments that a prompt declares, and the variables that a template declares."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ...schema import Fault, Shape, read_fields, read_shape
from ..handlers._completion import Source, read_sources
from ..handlers._signature import Handler
from ._reader import Reader
from ._statement import is_method


class Arguments(NamedTuple):
    """Declared arguments or variables.

    Attributes:
        name: The declaration: the class `Arguments`, or `arguments`.
        owner: The class, if it is a class.
        shape: The fields; None if none are declared, and after problems.
        fields: The schema of each, also after problems.
        sources: The sources of completions.
        declared: True if there is a declaration, right or wrong.
    """

    name: str
    owner: type | None = None
    shape: Shape | None = None
    fields: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    sources: Mapping[str, Source] = MappingProxyType({})
    declared: bool = True


class ArgumentReader(Reader):
    """Reads a component that has `Arguments`."""

    def arguments(self, handler: Handler | None) -> Arguments:
        """Read the class `Arguments` or `arguments = {…}`, of this class or of the nearest base.

        Args:
            handler: The method that answers; its docstring may describe arguments too.

        Returns:
            The declaration; after problems, as much of it as can be read.
        """
        name, declared = self._declared()
        if declared is None:
            return Arguments(name, declared=False)
        if name == "Arguments" and not isinstance(declared, type):
            self.problem(name, f"must be a class; write arguments = … for {declared!r}")
            return Arguments(name)
        shape, faults = read_shape(declared, descriptions=self.descriptions(handler))
        self.declaration.faults(name, faults, name)
        owner = declared if isinstance(declared, type) else None
        if shape is None:
            fields, completions = read_fields(declared)
        else:
            fields, completions = shape.schema.get("properties", {}), shape.completions
        sources, faults = read_sources(owner, completions)
        self.declaration.faults(name, faults, name)
        return Arguments(name, owner, shape, fields, sources)

    def _declared(self) -> tuple[str, Any]:
        for cls in self.cls.__mro__:
            given = {**vars(cls), **vars(cls).get("__mcp_options__", {})}
            names = [
                name
                for name in ("arguments", "Arguments")
                if name in given and not is_method(given[name])
            ]
            if len(names) > 1:
                self.problem("arguments", "the class Arguments declares them too; keep one of them")
            if names:
                return names[-1], given[names[-1]]
        return "Arguments", None

    def argument_faults(self, arguments: Arguments, faults: Iterable[tuple[str, str]]) -> None:
        """Note problems of the declared arguments.

        Args:
            arguments: The arguments.
            faults: The name of an argument, or "" for the whole, with the text of the problem.
        """
        noted = [Fault((name,) if name else (), text, arguments.owner) for name, text in faults]
        self.declaration.faults(arguments.name, noted, arguments.name)
