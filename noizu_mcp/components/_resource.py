"""`Resource` and `ResourceTemplate`: classes that are one resource, or many of one form."""

from collections.abc import Iterator, Mapping
from inspect import isclass
from typing import Any, ClassVar, Final, TypeAlias, Unpack, cast

from ..schema import Shape, fields, read_shape
from ..types import ContentAnnotations
from ..uri import UriTemplate
from .declare._arguments import ArgumentReader, Arguments
from .declare._kind import Component, Kind
from .declare._options import options_of
from .declare._reader import Reader
from .declare._statement import ComponentMeta, Declaration
from .declare._typos import takes
from .handlers._bound import ResourceSpec, TemplateSpec
from .handlers._completion import completer
from .handlers._signature import Handler, Row
from .handlers._text_values import TextValues, impossible
from .registration._registration import Overrides, Registration, refuses_decorating, register

#: A class, an instance or a registration of a resource, and of a template.
ResourceTarget: TypeAlias = "type[Resource] | Resource | Registration"
TemplateTarget: TypeAlias = "type[ResourceTemplate] | ResourceTemplate | Registration"

RESOURCE: Final = Kind(
    feature="resources",
    noun="resource",
    key="uri",
    options=options_of("Resource"),
    overrides=options_of("resource"),
    methods={"read": Row(("uri", "ctx"))},
    bound=ResourceSpec,
)
TEMPLATE: Final = Kind(
    feature="resources",
    noun="resource template",
    key="uri_template",
    options=options_of("ResourceTemplate"),
    overrides=options_of("resource_template"),
    members={"Arguments": isclass, "complete": takes(3, 4)},
    methods={
        "read": Row(("uri", "args", "ctx"), least=2),
        "complete": Row(("variable", "prefix", "ctx"), least=2),
        "list": Row(("ctx",), may_yield=True),
    },
    bound=TemplateSpec,
)


class TemplateOverrides(Overrides, total=False):
    """The options that the registration of a template may change.

    Attributes:
        mime_type: Another media type.
        annotations: For whom its resources are, and how much they matter.
        subscribable: True if clients may ask to be told when one of them changes.
    """

    mime_type: str
    annotations: ContentAnnotations | Mapping[str, Any] | None
    subscribable: bool


class ResourceOverrides(TemplateOverrides, total=False):
    """The options that the registration of a resource may change.

    Attributes:
        uri: Another URI.
        size: Another number of bytes.
    """

    uri: str
    size: int


class Resource(Component, metaclass=ComponentMeta):
    """One resource: subclass it, give its URI, write `read`.

    Options are keywords of the class statement, or attributes of the same names: `uri`, `name`,
    `title`, `description`, `mime_type`, `size`, `annotations`, `icons`, `meta`, `hidden`,
    `visible`, `subscribable`, `timeout`, `requires`, `abstract`. The name defaults to
    the URI, the description to the first paragraph of the docstring.

    `read` takes `()`, `(uri)` or `(uri, ctx)` after `self`, sync or async; a sync one runs in a
    worker thread. It returns a text, bytes, `ResourceContents`, a list of these, or any other JSON
    value, which is sent as a text.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = RESOURCE

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _ResourceReader(declaration).read()


class _ResourceReader(Reader):
    missing = "a resource needs a uri: write uri='config://app', or abstract=True"


class ResourceTemplate(Component, metaclass=ComponentMeta):
    """Many resources whose URIs have one form: subclass it, give the template, write `read`.

    Options are keywords of the class statement, or attributes of the same names: `uri_template`
    (RFC 6570), `name`, `title`, `description`, `mime_type`, `annotations`, `icons`, `meta`,
    `hidden`, `visible`, `subscribable`, `timeout`, `requires`, `traversal`, `abstract`. Values
    that could lead a handler out of its directory match nothing, unless `traversal=True`.

    `read` takes `(uri, args)` or `(uri, args, ctx)` after `self`, sync or async, and returns the
    same as `read` of a `Resource`. `args` has an attribute for each variable: a text, a list of
    texts for `{var*}`, None for an optional one that is absent. A nested class `Arguments`, or
    `arguments = {…}`, gives them types; a URI with a value that does not fit is not found.

    `complete(variable, prefix, ctx)` completes variables. `list(ctx)` returns or yields instances
    for `resources/list`: `ResourceDefinition`s, mappings, URIs, or `Resource` classes.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = TEMPLATE

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _TemplateReader(declaration).read()


class _TemplateReader(ArgumentReader):
    missing = (
        "a resource template needs a uri_template: write uri_template='db://{table}', or"
        " abstract=True"
    )

    def parts(self, handler: Handler | None) -> Mapping[str, Any]:
        """Read the variables."""
        arguments = self.arguments(handler)
        if self.declaration.abstract or "uri_template" not in self.options:
            return {}
        text, traversal = self.options["uri_template"], self.options.get("traversal", False)
        template = UriTemplate(text, traversal=traversal)
        self.argument_faults(arguments, _misfits(template, arguments))
        texts = TextValues(arguments.shape or _plain_shape(template), template.lists)
        complete, listed = self.handlers["complete"], self.handlers["list"]
        return {
            "fields": lambda instance: {
                "uri_template": template,
                "texts": texts,
                "variables": template.variables,
                "complete": completer(complete, instance, arguments.sources),
                "list": None if listed is None else listed.bind(instance),
                "list_mode": "thread" if listed is None else listed.mode,
            }
        }


def _misfits(template: UriTemplate, arguments: Arguments) -> Iterator[tuple[str, str]]:
    """Yield the contradictions between the template and the declared variables."""
    if not arguments.fields and arguments.shape is None:
        return  # no variable is declared, or none that could be read
    for name in arguments.fields:
        if name not in template.variables:
            yield name, f"{template.text!r} has no variable of this name"
    for name in template.variables:
        if name not in arguments.fields:
            yield "", f"{template.text!r} has a variable {name!r}; declare it"
    for name in impossible(arguments.fields, template.lists):
        if name in template.lists:
            yield name, f"{{{name}*}} matches a list of texts; declare it as list[str]"
        else:
            text = "declare it as str, int, float, bool, an Enum or a Literal"
            yield name, f"a variable is a text; {text}"


def _plain_shape(template: UriTemplate) -> Shape:
    """Declare the variables of a template as they come: texts, and lists of texts."""
    declared = {
        name: fields.array(fields.string())
        if name in template.lists
        else fields.string(required=name not in template.optional)
        for name in template.variables
    }
    return cast("Shape", read_shape(declared)[0])


@refuses_decorating
def resource(target: ResourceTarget, /, **overrides: Unpack[ResourceOverrides]) -> Registration:
    """Register a resource with some of its options changed.

    Args:
        target: A `Resource` class, a ready instance of one, or another registration.
        **overrides: The changes; see `ResourceOverrides`.

    Returns:
        An item for `resources = […]` of a server.

    Raises:
        DefinitionError: The target is not a resource, or an option is unknown or wrong.
    """
    return register(RESOURCE, target, overrides)


@refuses_decorating
def resource_template(
    target: TemplateTarget, /, **overrides: Unpack[TemplateOverrides]
) -> Registration:
    """Register a resource template with some of its options changed.

    Args:
        target: A `ResourceTemplate` class, a ready instance of one, or another registration.
        **overrides: The changes; see `TemplateOverrides`.

    Returns:
        An item for `resources = […]` of a server.

    Raises:
        DefinitionError: The target is not a template, or an option is unknown or wrong.
    """
    return register(TEMPLATE, target, overrides)
