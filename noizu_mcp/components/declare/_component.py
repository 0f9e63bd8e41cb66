"""Components as their classes declare them: read as their kind says, described, and bound.

The statement of a class that is one component leaves a `Declared`. A registration binds it to an
instance: the component that a server lists and serves.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import attrs

from ..._util import snake_case
from ..._value import Frozen, JSONObject
from ...schema import docstring_parameters, docstring_summary
from ..handlers._handler import CallForm, Handler, Home
from ..handlers._signature import mentions, read_handler
from ._marks import is_marked
from ._options import DECLARED_NAME, STATEMENT_ONLY, add_prefix, is_hidden
from ._statement import NOTHING, ComponentKind, Declaration, is_abstract, unfinished

#: Names that other frameworks, and the other kinds of component, have for an input.
_OTHER_CLASSES: Final = ("Args", "Arguments", "Input", "InputSchema", "Parameters", "Params")
_OTHER_DATA: Final = ("args_schema", "arguments", "input", "parameters", "params")


class Declared(Frozen):
    """A component as its class declares it: everything but the instance.

    Attributes:
        kind: The kind.
        options: The options, checked; they include the identifying option.
        handler: The method that answers.
        source: Where the class or the method stands, for logs.
        members: The fields of the definition that no option gives.
        fields: Makes the fields of the bound component that no option gives, of the instance.
    """

    kind: ComponentKind
    options: Mapping[str, Any]
    handler: Handler
    source: str
    members: Mapping[str, object] = NOTHING
    fields: Callable[[object], Mapping[str, object]]

    def key(self, overrides: Mapping[str, Any]) -> tuple[str, str]:
        """Give the option that no two registered ones may have in common, and its value."""
        name = self.kind.key
        value = overrides.get(name, self.options[name])
        prefix = overrides.get("prefix")
        return name, value if prefix is None else add_prefix(prefix, name, value)

    def definition(self, overrides: Mapping[str, object] = NOTHING) -> JSONObject:
        """Describe it as its list does on 2026-07-28: `tools/list`, `prompts/list`.

        Args:
            overrides: Options of a registration, which replace options of the class.

        Returns:
            A JSON-ready dict without null members.
        """
        options = {**self.options, **overrides}
        meta, category = options.get("meta"), options.get("category")
        # The protocol has no member for a category; `_meta` is the place for data of our own.
        if category is not None:
            meta = {**(meta or {}), "category": category}
        # Options and the fields of definitions have the same names.
        known = {field.name for field in attrs.fields(self.kind.definition)}
        fields = {name: value for name, value in options.items() if name in known}
        key, value = self.key(overrides)
        fields |= {"name": options.get("name", value), "meta": meta, **self.members, key: value}
        wire: JSONObject = self.kind.definition(**fields).to_wire()
        return wire

    def bind(self, instance: object, overrides: Mapping[str, object]) -> Any:
        """Make the component that a server lists and serves.

        Args:
            instance: The object that has the method.
            overrides: Options of the registration, which replace options of the class.

        Returns:
            A bound component of the class that the kind names.
        """
        definition = self.definition(overrides)
        options = {**self.options, **overrides, **dict([self.key(overrides)])}
        # Options and bound fields have the same names, so that a new option needs no line here.
        fields = {name: options[name] for name in options.keys() - STATEMENT_ONLY}
        fields |= {
            "name": definition["name"],
            "meta": definition.get("_meta"),
            "hidden": is_hidden(self.options, overrides),
            "mode": self.handler.mode,
            "takes_context": self.handler.takes_context,
            "invoke": self.handler.bind(instance),
            "definition": definition,
            "source": self.source,
            **self.fields(instance),
        }
        if "prefix" in overrides and "uri_template" in fields:
            template = fields["uri_template"]
            text, traversal = options["uri_template"], template.traversal
            fields["uri_template"] = type(template)(text, traversal=traversal)
        return self.kind.bound(**fields)


class Component:
    """The base of a class that is one component."""

    __mcp_kind__: ClassVar[ComponentKind]
    __mcp__: ClassVar[tuple[Declared, ...]] = ()

    @classmethod
    def definition(cls) -> JSONObject:
        """Describe it as its list does on 2026-07-28: `tools/list`, `prompts/list`.

        Returns:
            A new JSON-ready dict.

        Raises:
            TypeError: The class is abstract.
        """
        if not cls.__mcp__:
            noun = cls.__mcp_kind__.noun
            raise TypeError(f"{cls.__name__} is abstract: there is no {noun} to describe")
        # A copy: all servers share the schemas of the class.
        return copy.deepcopy(cls.__mcp__[0].definition())

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        type.__setattr__(cls, "__mcp__", ComponentReader(declaration).read())


class ComponentReader:
    """Reads the statement of one component.

    Attributes:
        declaration: The statement; takes the problems.
        options: The options, inherited ones included.
        handlers: The methods of the kind that are there and right.
        in_class: True if it is a class, False if it is a function.
    """

    in_class: ClassVar = True
    handlers: dict[str, Handler | None]

    def __init__(self, declaration: Declaration) -> None:
        self.cls = declaration.cls
        self.declaration = declaration
        self.problem = declaration.problem
        self.kind = declaration.kind
        self.options: dict[str, Any] = dict(declaration.options)

    def read(self) -> tuple[Declared, ...]:
        """Read the statement; a base, and a class with problems, declares nothing."""
        declaration, kind = self.declaration, self.kind
        for name, value in vars(self.cls).items():
            if is_marked(value):
                self.problem(name, f"@mcp marks the tools of a Toolkit; {kind.instead_of_mark}")
        # The docstring of the class itself: an inherited docstring describes another component.
        summary = docstring_summary(vars(self.cls).get("__doc__"))
        if summary is not None and "description" not in declaration.own:
            self.options["description"] = summary
        self._identify(kind.key)
        self.handlers = {name: self._handler(name, row) for name, row in kind.methods.items()}
        handler = next(iter(self.handlers.values()))
        # Read also after problems: one error lists all problems of the class.
        parts = kind.parts(self, None if declaration.abstract else handler)
        if declaration.abstract or declaration.problems or handler is None:
            return ()
        source = f"{self.cls.__module__}.{self.cls.__qualname__}"
        fields = {"kind": kind, "options": self.options, "handler": handler, "source": source}
        return (Declared(**fields, **parts),)

    def _identify(self, key: str) -> None:
        """Check the option that identifies a component: each class has its own."""
        declaration, noun = self.declaration, self.kind.noun
        if declaration.abstract:
            for name in dict.fromkeys((key, "name", "title")):
                if name in declaration.given:
                    lacks = unfinished(self.cls)
                    text = f"an abstract base is not a {noun}; leave it to the subclasses"
                    if lacks is not None:
                        text = f"is for a {noun}, and {self.cls.__name__} {lacks}"
                    self.problem(name, text)
            return
        if key in declaration.given:
            return
        # It would take over the URI of its base, and two components cannot have one. Mostly the
        # base was meant to be abstract.
        base = next((base for base in self.cls.__mro__[1:] if not is_abstract(base)), None)
        if base is not None:
            self.problem(
                "",
                f"a subclass of the {noun} {base.__name__} needs its own {key}; write {key}=…, or"
                f" mark {base.__name__} with abstract=True",
            )
        elif key not in self.options and self.kind.example:
            example = f"write {key}={self.kind.example!r}, or abstract=True"
            self.problem("", f"a {noun} needs a {key}: {example}")
        elif key not in self.options:
            self.options["name"] = name = snake_case(self.cls.__name__)
            if not DECLARED_NAME.fullmatch(name):
                text = f"the class gives the {noun} an invalid name: {name!r}; write name=…"
                self.problem("", text)

    def _handler(self, name: str, row: CallForm) -> Handler | None:
        """Read a method of the kind, its own or an inherited one."""
        declaration, noun = self.declaration, self.kind.noun
        owner = declaration.owner_of(name)
        # That of a base is read with each subclass, which may declare the input.
        if owner is not None and not declaration.abstract:
            return read_handler(
                name,
                vars(owner)[name],
                row,
                declaration.scope,
                declaration.reporter(name, owner),
                inline=self.options.get("inline", False),
                declared=declaration.has_input(),
                home=Home(self.cls, declaration.types_of(owner)),
            )
        # The other methods of a kind may be missing: `complete`, `list`.
        if name == next(iter(self.kind.methods)) and not declaration.abstract:
            offers = ", ".join(("self", *row.offers))
            self.problem(
                "",
                f"a {noun} needs a method: async def {name}({offers}); a base for {noun}s needs"
                " abstract=True",
            )
        return None

    def descriptions(self, handler: Handler | None, /) -> dict[str, str]:
        """Read the descriptions of arguments in docstrings; the class wins over the handler."""
        described = docstring_parameters(handler.function.__doc__) if handler else {}
        return described | docstring_parameters(vars(self.cls).get("__doc__"))

    def refuse_other_inputs(self, wanted: str, handler: Handler | None) -> None:
        """Refuse the declaration of an input under another name, where no input was found.

        Args:
            wanted: The name of the class that would be read: `Input`.
            handler: Its signature may name the class.
        """
        own = "(begin a name of your own with _)"
        annotations = [each.annotation for each in handler.properties] if handler else []
        for name, value in vars(self.cls).items():
            if name in _OTHER_CLASSES and name != wanted and isinstance(value, type):
                if any(mentions(each, (value,)) for each in annotations):
                    continue
                self.problem(name, f"is not read; name the class {wanted} {own}")
            elif name in _OTHER_DATA and name != wanted.lower() and isinstance(value, Mapping):
                self.problem(name, f"is not read; write {wanted.lower()} = … {own}")
