"""What the statements of tools, resources, templates and prompts have in common."""

from collections.abc import Mapping
from typing import Any, ClassVar

from .._util import snake_case
from ..schema import Fault, Shape, docstring_parameters, docstring_summary, read_shape
from ._completion import Source, read_sources
from ._declare import Declaration, is_abstract
from ._handler import Handler
from ._mcp import is_marked
from ._method import Method, read_method
from ._options import DECLARED_NAME


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

    def arguments(self, method: Method | None) -> tuple[Any, Shape | None]:
        """Read the class `Arguments`, of this class or of the nearest base.

        Args:
            method: The method that answers; its docstring may describe arguments too.

        Returns:
            The class, or None if there is none; then its shape, or None after problems.
        """
        form = getattr(self.cls, "Arguments", None)
        if form is None:
            return None, None
        if not isinstance(form, type):
            self.problem("Arguments", f"must be a class: class Arguments(Schema), got {form!r}")
            return form, None
        shape, faults = read_shape(form, descriptions=self.descriptions(method))
        self.argument_faults(faults)
        return form, shape

    def argument_faults(self, faults: list[Fault]) -> None:
        """Note what is wrong in the class `Arguments`."""
        self.declaration.faults("Arguments", faults, "Arguments")

    def sources(self, form: type, shape: Shape | None) -> Mapping[str, Source]:
        """Read what the fields of `Arguments` are completed from; nothing if there is no shape."""
        if shape is None:
            return {}
        sources, faults = read_sources(form, shape)
        self.argument_faults(faults)
        return sources
