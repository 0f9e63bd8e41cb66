"""Reads the body of a class that is one component, as its kind says."""

import inspect
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Final

from ..._util import snake_case
from ...schema import docstring_parameters, docstring_summary
from ..handlers._signature import Handler, Row, read_handler
from ._kind import Declared
from ._marks import is_marked
from ._options import DECLARED_NAME
from ._statement import Declaration, is_abstract

#: Names that other frameworks, and the other kinds of component, have for an input.
_OTHER_CLASSES: Final = ("Args", "Arguments", "Input", "InputSchema", "Parameters", "Params")
_OTHER_DATA: Final = ("args_schema", "arguments", "input", "parameters", "params")
#: Annotations of a parameter that can be one argument, but not all of them.
_VALUES: Final = (str, int, float, bytes, list, tuple, set, frozenset, Enum)


class Reader:
    """Reads the statement of one component; a subclass for each kind reads the rest of the body.

    Attributes:
        declaration: The statement; takes the problems.
        options: The options, those of bases too.
        handlers: The methods of the kind that are there and right.
        unmarked: The advice on an `@mcp` in the body.
        missing: The advice where the option that identifies it is missing; empty if the name of
            the class gives it.
    """

    unmarked: ClassVar = "take it off"
    missing: ClassVar = ""

    def __init__(self, declaration: Declaration) -> None:
        self.cls = declaration.cls
        self.declaration = declaration
        self.problem = declaration.problem
        self.noun = declaration.kind.noun
        self.options: dict[str, Any] = dict(declaration.options)

    def parts(self, _handler: Handler | None) -> Mapping[str, Any]:
        """Read the parts of the body that only this kind has.

        Args:
            _handler: The method that answers; None for an abstract base, and after problems.

        Returns:
            The fields of `Declared` beside those that all kinds have; of no use after problems.
        """
        return {"fields": lambda _: {}}

    def read(self) -> tuple[Declared, ...]:
        """Read the statement; a base, and a class with problems, declares nothing."""
        declaration, kind = self.declaration, self.declaration.kind
        for name, value in vars(self.cls).items():
            if is_marked(value):
                self.problem(name, f"@mcp marks the tools of a Toolkit; {self.unmarked}")
        summary = docstring_summary(vars(self.cls).get("__doc__"))
        if summary is not None and "description" not in declaration.own:
            self.options["description"] = summary
        self._identify(kind.key)
        self.handlers = {name: self._handler(name, row) for name, row in kind.methods.items()}
        handler = next(iter(self.handlers.values()))
        parts = self.parts(None if declaration.abstract else handler)
        if declaration.abstract or declaration.problems or handler is None:
            return ()
        source = f"{self.cls.__module__}.{self.cls.__qualname__}"
        fields = {"kind": kind, "options": self.options, "handler": handler, "source": source}
        return (Declared(**fields, **parts),)

    def _identify(self, key: str) -> None:
        """Check the option that identifies a component: each class has its own."""
        declaration = self.declaration
        if declaration.abstract:
            for name in dict.fromkeys((key, "name", "title")):
                if name in declaration.given:
                    text = f"an abstract base is not a {self.noun}; leave it to the subclasses"
                    self.problem(name, text)
            return
        if key in declaration.given:
            return
        for base in self.cls.__mro__[1:]:
            if not is_abstract(base):
                self.problem(
                    "",
                    f"a subclass of the {self.noun} {base.__name__} needs its own {key}; write"
                    f" {key}=…, or mark {base.__name__} with abstract=True",
                )
                return
        if key in self.options:
            return
        if self.missing:
            self.problem("", self.missing)
            return
        self.options["name"] = name = snake_case(self.cls.__name__)
        if not DECLARED_NAME.fullmatch(name):
            text = f"the class gives the {self.noun} an invalid name: {name!r}; write name=…"
            self.problem("", text)

    def _handler(self, name: str, row: Row) -> Handler | None:
        """Read a method of the kind, its own or an inherited one."""
        declaration = self.declaration
        owner = declaration.owner_of(name)
        if owner is not None:
            inline = self.options.get("inline", False)
            report = declaration.reporter(name, owner)
            found = vars(owner)[name]
            return read_handler(name, found, row, declaration.scope, report, inline=inline)
        if name == next(iter(declaration.kind.methods)) and not declaration.abstract:
            offers = ", ".join(("self", *row.offers))
            self.problem(
                "",
                f"a {self.noun} needs a method: async def {name}({offers}); a base for"
                f" {self.noun}s needs abstract=True",
            )
        return None

    def descriptions(self, handler: Handler | None) -> dict[str, str]:
        """Read the descriptions of arguments in docstrings; that of the class goes first."""
        described = docstring_parameters(handler.function.__doc__) if handler else {}
        return described | docstring_parameters(vars(self.cls).get("__doc__"))

    def refuse_other_inputs(self, wanted: str) -> None:
        """Refuse the declaration of an input under another name, where no input was found.

        Args:
            wanted: The name of the class that would be read: `Input`.
        """
        own = "(begin a name of your own with _)"
        for name, value in vars(self.cls).items():
            if name in _OTHER_CLASSES and name != wanted and isinstance(value, type):
                self.problem(name, f"is not read; name the class {wanted} {own}")
            elif name in _OTHER_DATA and name != wanted.lower() and isinstance(value, Mapping):
                self.problem(name, f"is not read; write {wanted.lower()} = … {own}")


def is_one_value(p: inspect.Parameter) -> bool:
    """Tell whether a parameter that takes all arguments was meant to be one of them.

    Args:
        p: The parameter; named `args`, or with an underscore in front, it is beyond doubt.
    """
    if p.name == "args" or p.name.startswith("_"):
        return False
    made = typing.get_origin(p.annotation) or p.annotation
    return p.annotation is p.empty or (isinstance(made, type) and issubclass(made, _VALUES))
