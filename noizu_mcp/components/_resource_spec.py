"""Resources and templates, ready to be listed and read: everything settled, nothing to look up.

A class statement leaves a plan; a registration binds it to an instance: a spec.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from .._util import Unset, final
from ..types import RequireScopes
from ..uri import UriTemplate
from ._completion import Source, completer
from ._frozen import Frozen
from ._method import Method
from ._plan import Plan
from ._signature import Mode
from ._texts import Texts


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
        requires: Scopes that a caller must hold; None for none.
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
    requires: RequireScopes | None
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
        requires: Scopes that a caller must hold; None for none.
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
    requires: RequireScopes | None
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


class ResourcePlan(Plan):
    """What a class statement settles about a resource."""

    key: ClassVar = "uri"

    def bind(self, instance: object, overrides: Mapping[str, Any]) -> ResourceSpec:
        """Make the spec that a server reads.

        Args:
            instance: The resource.
            overrides: Options of the registration; they replace the plan's own.
        """
        uri = {**self.options, **overrides}["uri"]
        return ResourceSpec(uri=uri, **_readable(self, instance, overrides))


class TemplatePlan(Plan):
    """What a class statement settles about a resource template.

    Attributes:
        template: The template, read.
        texts: The form of its variables.
        sources: What they are completed from, if declared.
        complete: The method that completes variables, if there is one.
        list: The method that gives instances, if there is one.
    """

    key: ClassVar = "uri_template"

    template: UriTemplate
    texts: Texts
    sources: Mapping[str, Source]
    complete: Method | None
    list: Method | None

    def bind(self, instance: object, overrides: Mapping[str, Any]) -> TemplateSpec:
        """Make the spec that a server reads.

        Args:
            instance: The template.
            overrides: Options of the registration; they replace the plan's own.
        """
        return TemplateSpec(
            **_readable(self, instance, overrides),
            uri_template=self.template,
            variables=self.template.variables,
            match=self._match,
            complete=completer(self.complete, instance, self.sources),
            list=None if self.list is None else self.list.bind(instance),
            list_mode="thread" if self.list is None else self.list.mode,
        )

    def _match(self, uri: str) -> Any:
        values = self.template.match(uri)
        return None if values is None else self.texts.read(values)[0]


def _readable(plan: Plan, instance: object, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields that the specs of resources and of templates have."""
    options = {**plan.options, **overrides}
    return {
        "name": options.get("name", options[plan.key]),
        "mime_type": options.get("mime_type"),
        "subscribable": options.get("subscribable", False),
        **plan.shared(instance, overrides),
    }
