"""What a class statement settles about a component: all but the instance.

A registration binds a plan to an instance: a spec, which a server lists and serves.
"""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

from .._util import UNSET
from ..types import camel_case
from ._frozen import Frozen
from ._handler import Handler
from ._method import Method
from ._options import hidden_by


class Plan(Frozen):
    """What a class statement settles about a component.

    Attributes:
        key: The option that tells it from others of its kind.
        options: The options, checked; that of the key is always among them.
        answer: The method that answers.
        source: Where the class, or the method, stands.
    """

    key: ClassVar = "name"

    options: Mapping[str, Any]
    answer: Handler | Method
    source: str

    def own(self) -> dict[str, Any]:
        """Give what the definition says that no option does; None for absent."""
        return {}

    def definition(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Describe it as its list does on 2026-07-28: `tools/list`, `prompts/list`.

        Args:
            overrides: Options of a registration; they replace the plan's own.

        Returns:
            A JSON-ready dict without null keys.
        """
        options = {**self.options, **(overrides or {})}
        annotations = options.get("annotations")
        wire = {
            camel_case(self.key): options[self.key],
            "name": options.get("name", options[self.key]),
            "title": options.get("title"),
            "description": options.get("description"),
            **self.own(),
            "mimeType": options.get("mime_type"),
            "size": options.get("size"),
            "annotations": None if annotations is None else annotations.to_wire(),
            "icons": [icon.to_wire() for icon in options.get("icons", ())] or None,
            "_meta": _meta(options),
        }
        return {key: value for key, value in wire.items() if value is not None}

    def shared(self, instance: object, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Give the fields that every spec has.

        Args:
            instance: What has the method.
            overrides: Options of the registration; they replace the plan's own.
        """
        options = {**self.options, **overrides}
        return {
            "hidden": hidden_by(self.options, overrides),
            "timeout": options.get("timeout", UNSET),
            "requires": options.get("requires"),
            "mode": self.answer.mode,
            "takes_context": self.answer.takes_context,
            "invoke": self.answer.bind(instance),
            "definition": self.definition(overrides),
            "source": self.source,
        }


def _meta(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merge the category into a copy of `meta`; the class's own mapping stays as it is."""
    meta, category = options.get("meta"), options.get("category")
    if category is None:
        return None if meta is None else dict(meta)
    return {**(meta or {}), "category": category}


class Described:
    """The base of what is one component, and can say which."""

    __mcp_kind__: ClassVar[str]
    __mcp__: ClassVar[tuple[Plan, ...]] = ()

    @classmethod
    def definition(cls) -> dict[str, Any]:
        """Describe it as its list does on 2026-07-28: `tools/list`, `prompts/list`.

        Returns:
            A new JSON-ready dict.

        Raises:
            TypeError: The class is abstract.
        """
        if not cls.__mcp__:
            noun = cls.__mcp_kind__.removesuffix("s")
            raise TypeError(f"{cls.__name__} is abstract: it is no {noun} to describe")
        return copy.deepcopy(cls.__mcp__[0].definition())
