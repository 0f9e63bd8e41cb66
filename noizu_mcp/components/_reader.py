"""What the statements of tools, resources, templates and prompts have in common."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

from .._util import snake_case
from ..schema import (
    Fault,
    Shape,
    docstring_parameters,
    docstring_summary,
    read_fields,
    read_shape,
)
from ._completion import Source, read_sources
from ._declare import Declaration, is_abstract, is_method
from ._handler import Handler
from ._mcp import is_marked
from ._method import Method, read_method
from ._options import DECLARED_NAME

#: Names that other frameworks, and the other kinds of component, have for an input.
_OTHER_CLASSES: Final = ("Args", "Arguments", "Input", "InputSchema", "Parameters", "Params")
_OWN: Final = "(begin a name of your own with _)"
_OTHER_DATA: Final = ("args_schema", "arguments", "input", "parameters", "params")


class Reader:
    """Reads the statement of one component.

    Attributes:
        cls: The new class.
        declaration: Its statement; takes the problems.
        noun: What messages call it: `resource`.
        options: The options, those of bases too.
        source: Where it stands, for logs.
        unmarked: What to do with an `@mcp` in it.
    """

    unmarked: ClassVar = "take it off"

    def __init__(self, declaration: Declaration, noun: str) -> None:
        self.cls = declaration.cls
        self.declaration = declaration
        self.noun = noun
        self.options: dict[str, Any] = dict(declaration.options)
        self.source = f"{self.cls.__module__}.{self.cls.__qualname__}"
        for name, value in vars(self.cls).items():
            if is_marked(value):
                self.problem(name, f"@mcp marks the tools of a Toolkit; {self.unmarked}")
        summary = docstring_summary(vars(self.cls).get("__doc__"))
        if summary is not None and "description" not in declaration.own:
            self.options["description"] = summary

    def problem(self, member: str, text: str) -> None:
        """Note what is wrong with an attribute of the class; "" for the class itself."""
        self.declaration.problem(member, text, member or None)

    def needs_own(self, option: str) -> bool:
        """Check an option that tells one component from another.

        Args:
            option: Its name: `uri`, `name`.

        Returns:
            False if this class has to find one, and has not been told any.
        """
        declaration = self.declaration
        if declaration.abstract:
            for name in dict.fromkeys((option, "name", "title")):
                if name in declaration.given:
                    self.problem(
                        name, f"an abstract base is no {self.noun}; leave it to the subclasses"
                    )
            return True
        if option in declaration.given:
            return True
        for base in self.cls.__mro__[1:]:
            if not is_abstract(base):
                self.problem(
                    "",
                    f"a subclass of the {self.noun} {base.__name__} needs its own {option}; write"
                    f" {option}=…, or mark {base.__name__} with abstract=True",
                )
                return True
        return option in self.options

    def derive_name(self) -> None:
        """Take the name from that of the class."""
        name = snake_case(self.cls.__name__)
        self.options["name"] = name
        if not DECLARED_NAME.fullmatch(name):
            text = f"the class gives the {self.noun} no valid name: {name!r}; write name=…"
            self.problem("", text)

    def required_method(
        self, name: str, offers: tuple[str, ...], *, least: int = 0
    ) -> Method | None:
        """Read the method that answers; a component that is no base must have one."""
        self.needs_method(name, offers)
        return read_method(self.declaration, name, offers, least=least)

    def needs_method(self, name: str, offers: tuple[str, ...]) -> None:
        """Check that the method that answers is there; a base may leave it out."""
        if not self.declaration.abstract and not hasattr(self.cls, name):
            row = ", ".join(("self", *offers))
            self.problem(
                "",
                f"a {self.noun} needs a method: async def {name}({row}); a base for"
                f" {self.noun}s needs abstract=True",
            )

    def descriptions(self, method: Handler | Method | None) -> dict[str, str]:
        """Read what docstrings say about the arguments.

        Args:
            method: The method that answers; the docstring of the class goes before its own.
        """
        described = docstring_parameters(method.function.__doc__) if method else {}
        return described | docstring_parameters(vars(self.cls).get("__doc__"))

    def unread_input(self, wanted: str) -> None:
        """Note what declares an input under another name, where no input was found.

        Args:
            wanted: The name of the class that would be read: `Input`.
        """
        for name, value in vars(self.cls).items():
            if name in _OTHER_CLASSES and name != wanted and isinstance(value, type):
                self.problem(name, f"is not read; name the class {wanted} {_OWN}")
            elif name in _OTHER_DATA and name != wanted.lower() and isinstance(value, Mapping):
                self.problem(name, f"is not read; write {wanted.lower()} = … {_OWN}")

    def arguments(self, method: Method | None) -> "Arguments":
        """Read the class `Arguments` or `arguments = {…}`, of this class or of the nearest base.

        Args:
            method: The method that answers; its docstring may describe arguments too.

        Returns:
            What is declared; as much of it as can be read when something is wrong in it.
        """
        name, form = self._form()
        if form is None:
            return Arguments(name, declared=False)
        if name == "Arguments" and not isinstance(form, type):
            self.problem(name, f"must be a class; write arguments = … for {form!r}")
            return Arguments(name)
        shape, faults = read_shape(form, descriptions=self.descriptions(method))
        self.declaration.faults(name, faults, name)
        owner = form if isinstance(form, type) else None
        if shape is None:
            fields, completions = read_fields(form)
        else:
            fields, completions = shape.schema.get("properties", {}), shape.completions
        sources, faults = read_sources(owner, completions)
        self.declaration.faults(name, faults, name)
        return Arguments(name, owner, shape, fields, sources)

    def _form(self) -> tuple[str, Any]:
        for cls in self.cls.__mro__:
            given = {**vars(cls), **vars(cls).get("__mcp_options__", {})}
            forms = [
                name
                for name in ("arguments", "Arguments")
                if name in given and not is_method(given[name])
            ]
            if len(forms) > 1:
                self.problem("arguments", "the class Arguments declares them too; keep one of them")
            if forms:
                return forms[-1], given[forms[-1]]
        return "Arguments", None

    def argument_faults(self, arguments: "Arguments", faults: Iterable[tuple[str, str]]) -> None:
        """Note what is wrong in the declared arguments.

        Args:
            arguments: The arguments.
            faults: The name of an argument, or "" for the whole, with the text of the problem.
        """
        noted = [Fault((name,) if name else (), text, arguments.owner) for name, text in faults]
        self.declaration.faults(arguments.name, noted, arguments.name)


class Arguments(NamedTuple):
    """The declared arguments of a prompt, or variables of a template.

    Attributes:
        name: What declares them: the class `Arguments`, or `arguments`.
        owner: The class, if it is one.
        shape: The form; None if there is none, or something is wrong in it.
        fields: The schema of each, also where something is wrong in the form.
        sources: What they are completed from.
        declared: Whether there is a declaration, right or wrong.
    """

    name: str
    owner: type | None = None
    shape: Shape | None = None
    fields: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    sources: Mapping[str, Source] = MappingProxyType({})
    declared: bool = True
