"""Kinds of components, one row each, and components as their classes declare them.

A class statement is read by the row of its kind, and leaves a `Declared` for each component in the
class. A registration binds it to an instance: the component that a server lists and serves.
"""

import copy
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from ..._value import Frozen
from ...types import camel_case
from ..handlers._bound import Bound
from ..handlers._signature import Handler, Row
from ._options import STATEMENT_ONLY, Table, is_hidden

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Kind(NamedTuple):
    """One kind of component.

    Attributes:
        feature: The list of a server that holds it: `tools`, `resources`, `prompts`.
        options: The options of its class statement, each with its reader.
        members: The other names that an author may write in the body, each with a test of its
            value; a slip in one of them is a typo.
        noun: Its name in messages: `resource template`.
        key: The option that identifies one.
        methods: Its methods, each with the values that it is offered. The first one answers
            requests; a component must have it.
        overrides: The options that a registration may change, each with its reader.
        bound: The class of registered ones.
    """

    feature: str
    options: Table
    members: Mapping[str, Callable[[Any], bool]] = _NOTHING
    noun: str = ""
    key: str = "name"
    methods: Mapping[str, Row] = _NOTHING
    overrides: Table = _NOTHING
    bound: type[Bound] = Bound


class Declared(Frozen):
    """A component as its class declares it: everything but the instance.

    Attributes:
        kind: The kind.
        options: The options, checked; the one that identifies it is always among them.
        handler: The method that answers.
        source: Where the class or the method stands, for logs.
        wire: The members of the definition that no option gives; None for absent.
        fields: Makes the fields of the bound component that no option gives, of the instance.
    """

    kind: Kind
    options: Mapping[str, Any]
    handler: Handler
    source: str
    wire: Mapping[str, Any] = _NOTHING
    fields: Callable[[object], Mapping[str, Any]]

    def key(self, overrides: Mapping[str, Any]) -> tuple[str, str]:
        """Give the option that no two registered ones may have in common, and its value."""
        name = self.kind.key
        return name, overrides.get(name, self.options[name])

    def definition(self, overrides: Mapping[str, Any] = _NOTHING) -> dict[str, Any]:
        """Describe it as its list does on 2026-07-28: `tools/list`, `prompts/list`.

        Args:
            overrides: Options of a registration, which replace those of the class.

        Returns:
            A JSON-ready dict without null members.
        """
        options = {**self.options, **overrides}
        key, annotations = self.kind.key, options.get("annotations")
        meta, category = options.get("meta"), options.get("category")
        if category is not None:
            meta = {**(meta or {}), "category": category}
        wire = {
            camel_case(key): options[key],
            "name": options.get("name", options[key]),
            "title": options.get("title"),
            "description": options.get("description"),
            **self.wire,
            "mimeType": options.get("mime_type"),
            "size": options.get("size"),
            "annotations": None if annotations is None else annotations.to_wire(),
            "icons": [icon.to_wire() for icon in options.get("icons", ())] or None,
            "_meta": None if meta is None else dict(meta),
        }
        return {name: value for name, value in wire.items() if value is not None}

    def bind(self, instance: object, overrides: Mapping[str, Any]) -> Any:
        """Make the component that a server lists and serves.

        Args:
            instance: The object that has the method.
            overrides: Options of the registration, which replace those of the class.

        Returns:
            A bound component of the class that the kind names.
        """
        definition = self.definition(overrides)
        options = {**self.options, **overrides}
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
        return self.kind.bound(**fields)


class Component:
    """The base of a class that is one component."""

    __mcp_kind__: ClassVar[Kind]
    __mcp__: ClassVar[tuple[Declared, ...]] = ()

    @classmethod
    def definition(cls) -> dict[str, Any]:
        """Describe it as its list does on 2026-07-28: `tools/list`, `prompts/list`.

        Returns:
            A new JSON-ready dict.

        Raises:
            TypeError: The class is abstract.
        """
        if not cls.__mcp__:
            noun = cls.__mcp_kind__.noun
            raise TypeError(f"{cls.__name__} is abstract: there is no {noun} to describe")
        return copy.deepcopy(cls.__mcp__[0].definition())
