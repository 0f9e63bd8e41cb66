"""Resources and templates, ready to be listed and read: everything settled, nothing to look up.

A class statement leaves a plan; a registration binds it to an instance: a spec.
"""

from collections.abc import Callable, Mapping
from typing import Any

from .._util import UNSET, Unset, final
from ._completion import Source, completer
from ._frozen import Frozen
from ._handler import Mode
from ._method import Method
from ._options import hidden_by
from ._texts import Texts
from ._uri_template import UriTemplate


@final
class ResourceSpec(Frozen):
    """A registered resource.

    Attributes:
        uri: What `resources/read` calls it.
        name: The name for programs; the URI if it has none.
        mime_type: What a reader gets, if declared.
        hidden: Left out of `resources/list`, still readable.
        subscribable: Whether clients may ask to be told when it changes.
        timeout: Seconds a read may take; None for no limit, UNSET for the one of the server.
        mode: `async` or `thread` (sync, may block).
        takes_context: Whether `read` wants the context.
        invoke: Calls `read` with what it takes of `(uri, ctx)`.
        definition: The resource as `resources/list` of 2026-07-28 describes it. Not to be changed.
        source: Where the class stands, for logs: `app.AppConfig`.
    """

    uri: str
    name: str
    mime_type: str | None
    hidden: bool
    subscribable: bool
    timeout: float | Unset | None
    mode: Mode
    takes_context: bool
    invoke: Callable[[str, Any], Any]
    definition: dict[str, Any]
    source: str

    def __repr__(self) -> str:
        return f"ResourceSpec({self.uri!r}, {self.source})"


@final
class TemplateSpec(Frozen):
    """A registered resource template.

    Attributes:
        uri_template: The URIs of its resources.
        name: The name for programs; the template if it has none.
        mime_type: What a reader gets, if declared.
        hidden: Left out of the lists with all its instances, still readable.
        subscribable: Whether clients may ask to be told when one of its resources changes.
        timeout: Seconds a read may take; None for no limit, UNSET for the one of the server.
        mode: How `read` is called: `async` or `thread` (sync, may block).
        takes_context: Whether `read` wants the context.
        variables: The names of its variables.
        match: Gives the arguments of a URI for `read`; None if it is none of this template.
        invoke: Calls `read` with what it takes of `(uri, args, ctx)`.
        complete: Says what a variable is completed from; None if nothing completes it.
        list: Gives the instances for `resources/list`, as `to_listed` takes them; takes the
            context. None if they are not listed.
        list_mode: How `list` is called: `async` or `thread`.
        definition: The template as `resources/templates/list` of 2026-07-28 describes it. Not to
            be changed.
        source: Where the class stands, for logs: `app.TableSchema`.
    """

    uri_template: UriTemplate
    name: str
    mime_type: str | None
    hidden: bool
    subscribable: bool
    timeout: float | Unset | None
    mode: Mode
    takes_context: bool
    variables: tuple[str, ...]
    match: Callable[[str], Any]
    invoke: Callable[[str, Any, Any], Any]
    complete: Callable[[str], Source | None]
    list: Callable[[Any], Any] | None
    list_mode: Mode
    definition: dict[str, Any]
    source: str

    def __repr__(self) -> str:
        return f"TemplateSpec({self.uri_template.text!r}, {self.source})"


class ResourcePlan(Frozen):
    """What a class statement settles about a resource.

    Attributes:
        options: The options, checked; `uri` is among them.
        read: The method that answers.
        source: Where the class stands.
    """

    options: Mapping[str, Any]
    read: Method
    source: str

    @property
    def key(self) -> str:
        """What tells it from others: its URI."""
        uri: str = self.options["uri"]
        return uri

    def definition(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Describe the resource as `resources/list` of 2026-07-28 does (server/resources).

        Args:
            overrides: Options of a registration; they replace the plan's own.

        Returns:
            A JSON-ready dict without null keys.
        """
        return _describe("uri", {**self.options, **(overrides or {})})

    def bind(self, instance: object, overrides: Mapping[str, Any]) -> ResourceSpec:
        """Make the spec that a server reads.

        Args:
            instance: The resource.
            overrides: Options of the registration; they replace the plan's own.
        """
        options = {**self.options, **overrides}
        return ResourceSpec(
            uri=options["uri"],
            **_shared("uri", self.options, overrides),
            mode=self.read.mode,
            takes_context=self.read.takes_context,
            invoke=self.read.bind(instance),
            definition=self.definition(overrides),
            source=self.source,
        )


class TemplatePlan(Frozen):
    """What a class statement settles about a resource template.

    Attributes:
        options: The options, checked; `uri_template` is among them.
        template: The template, read.
        texts: The form of its variables.
        sources: What they are completed from, if declared.
        read: The method that answers.
        complete: The method that completes variables, if there is one.
        list: The method that gives instances, if there is one.
        source: Where the class stands.
    """

    options: Mapping[str, Any]
    template: UriTemplate
    texts: Texts
    sources: Mapping[str, Source]
    read: Method
    complete: Method | None
    list: Method | None
    source: str

    @property
    def key(self) -> str:
        """What tells it from others: its template."""
        return self.template.text

    def definition(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Describe the template as `resources/templates/list` of 2026-07-28 does.

        Args:
            overrides: Options of a registration; they replace the plan's own.

        Returns:
            A JSON-ready dict without null keys.
        """
        return _describe("uri_template", {**self.options, **(overrides or {})})

    def bind(self, instance: object, overrides: Mapping[str, Any]) -> TemplateSpec:
        """Make the spec that a server reads.

        Args:
            instance: The template.
            overrides: Options of the registration; they replace the plan's own.
        """
        return TemplateSpec(
            uri_template=self.template,
            **_shared("uri_template", self.options, overrides),
            mode=self.read.mode,
            takes_context=self.read.takes_context,
            variables=self.template.variables,
            match=self._match,
            invoke=self.read.bind(instance),
            complete=completer(self.complete, instance, self.sources),
            list=None if self.list is None else self.list.bind(instance),
            list_mode="thread" if self.list is None else self.list.mode,
            definition=self.definition(overrides),
            source=self.source,
        )

    def _match(self, uri: str) -> Any:
        values = self.template.match(uri)
        return None if values is None else self.texts.read(values)[0]


def _shared(key: str, own: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    options = {**own, **overrides}
    hidden = hidden_by(overrides)
    return {
        "name": options.get("name", options[key]),
        "mime_type": options.get("mime_type"),
        "hidden": bool(hidden_by(own) if hidden is None else hidden),
        "subscribable": options.get("subscribable", False),
        "timeout": options.get("timeout", UNSET),
    }


def _describe(key: str, options: Mapping[str, Any]) -> dict[str, Any]:
    annotations = options.get("annotations")
    wire = {
        "uriTemplate" if key == "uri_template" else key: options[key],
        "name": options.get("name", options[key]),
        "title": options.get("title"),
        "description": options.get("description"),
        "mimeType": options.get("mime_type"),
        "size": options.get("size"),
        "annotations": None if annotations is None else annotations.to_wire(),
        "icons": [icon.to_wire() for icon in options.get("icons", ())] or None,
        "_meta": options.get("meta"),
    }
    return {name: value for name, value in wire.items() if value is not None}
