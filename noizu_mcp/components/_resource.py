"""`Resource` and `ResourceTemplate`: classes that are one resource, or many of one form."""

from collections.abc import Callable, Iterator, Mapping
from inspect import isclass
from typing import ClassVar, Final, TypeAlias, Unpack, cast, overload

from ..schema import Shape, fields, read_shape
from ..types import ContentAnnotations, ResourceDefinition, ResourceTemplateDefinition
from ..uri import UriTemplate
from .declare._arguments import DeclaredArguments, note_misfits, read_arguments
from .declare._component import Component, ComponentReader
from .declare._functions import is_function
from .declare._options import options_of
from .declare._statement import ComponentKind, ComponentMeta, takes
from .handlers._bound import ResourceSpec, TemplateSpec
from .handlers._completion import completer
from .handlers._handler import CallForm, Handler
from .handlers._text_values import TextValues, impossible
from .registration._registration import Overrides, Registration, refuses_decorating, register

#: A class, an instance or a registration of a resource, and of a template.
ResourceTarget: TypeAlias = "type[Resource] | Resource | Registration"
TemplateTarget: TypeAlias = "type[ResourceTemplate] | ResourceTemplate | Registration"


def _read_variables(reader: ComponentReader, handler: Handler | None) -> Mapping[str, object]:
    """Read the variables of a template."""
    arguments = read_arguments(reader, handler)
    # Without a template, or with a wrong one, which the options reported, there is nothing to
    # compare the variables with.
    if reader.declaration.abstract or "uri_template" not in reader.options:
        return {}
    text, traversal = reader.options["uri_template"], reader.options.get("traversal", False)
    template = UriTemplate(text, traversal=traversal)
    if handler is not None and not handler.properties and handler.taken <= {"ctx"}:
        names = ", ".join(f"{name}: str" for name in template.variables)
        text = f"takes no variable of {text!r}, so that all of its resources would be one"
        reader.problem("read", f"{text}; take {names}")
    in_parameters = handler is not None and bool(handler.properties)
    misfits = _misfits(template, arguments, in_parameters=in_parameters)
    note_misfits(reader, arguments, misfits)
    texts = TextValues(arguments.shape or _plain_shape(template), template.lists)
    complete, listed = reader.handlers["complete"], reader.handlers["list"]
    return {
        "fields": lambda instance: {
            "uri_template": template,
            "texts": texts,
            "variables": template.variables,
            "complete": completer(complete, instance, arguments.sources),
            # Without `list` the resources of a template are found by their URI only.
            "list": None if listed is None else listed.bind(instance),
            "list_mode": "thread" if listed is None else listed.mode,
        }
    }


def _misfits(
    template: UriTemplate, arguments: DeclaredArguments, *, in_parameters: bool
) -> Iterator[tuple[str, str]]:
    """Yield the contradictions between the template and the declared variables."""
    if not arguments.fields and arguments.shape is None:
        return  # no variable is declared, or no declaration could be read
    for name in arguments.fields:
        if name not in template.variables:
            yield name, f"{template.text!r} has no variable of this name"
    for name in template.variables:
        if name not in arguments.fields:
            # As an ordinary parameter `uri` is taken already.
            cure = "rename it, or take args" if in_parameters and name == "uri" else "declare it"
            yield "", f"{template.text!r} has a variable {name!r}; {cure}"
    # RFC 6570 gives texts, and lists of texts for `{name*}`; the types must be readable from these.
    for name in impossible(arguments.fields, template.lists):
        if name in template.lists:
            yield name, f"{{{name}*}} matches a list of texts; declare it as list[str]"
        else:
            text = "declare it as str, int, float, bool, an Enum or a Literal"
            yield name, f"a variable is a text; {text}"


def _plain_shape(template: UriTemplate) -> Shape:
    """Declare the variables of a template as they come: texts, and lists of texts."""
    # A URI may leave out a variable behind an operator, `{?name}`, never a plain `{name}`.
    declared = {
        name: fields.array(fields.string())
        if name in template.lists
        else fields.string(required=name not in template.optional)
        for name in template.variables
    }
    return cast("Shape", read_shape(declared)[0])


RESOURCE: Final = ComponentKind(
    feature="resources",
    noun="resource",
    key="uri",
    example="config://app",
    options=options_of("Resource"),
    overrides=options_of("resource"),
    methods={"read": CallForm(("uri", "ctx"))},
    definition=ResourceDefinition,
    bound=ResourceSpec,
)
TEMPLATE: Final = ComponentKind(
    feature="resources",
    noun="resource template",
    key="uri_template",
    example="db://{table}",
    options=options_of("ResourceTemplate"),
    overrides=options_of("resource_template"),
    of_functions=options_of("template_function"),
    inputs=("Arguments", "arguments"),
    members={"Arguments": isclass, "complete": takes(3, 4)},
    methods={
        "read": CallForm(("uri", "args", "ctx")),
        "complete": CallForm(("variable", "prefix", "ctx"), least=2),
        # The one method that may be a generator: it often walks a directory or a table.
        "list": CallForm(("ctx",), least=0, may_yield=True),
    },
    parts=_read_variables,
    definition=ResourceTemplateDefinition,
    bound=TemplateSpec,
)


class TemplateOverrides(Overrides, total=False):
    """The options that the registration of a template may change.

    Attributes:
        mime_type: Another media type.
        annotations: For whom its resources are, and how much they matter.
        subscribable: True if clients may subscribe to changes of one of them.
    """

    mime_type: str
    annotations: ContentAnnotations | Mapping[str, object] | None
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
    `visible`, `subscribable`, `timeout`, `requires`, `available`, `loop`, `abstract`. The
    name defaults to the URI, the description to the first paragraph of the docstring.

    `read` may take `uri` and `ctx`, and is sync or async; a sync one runs in a worker thread. It
    returns a text, bytes, `ResourceContents`, a list of these, or any other JSON value, which is
    sent as a text.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = RESOURCE


class ResourceTemplate(Component, metaclass=ComponentMeta):
    """Many resources whose URIs have one form: subclass it, give the template, write `read`.

    Options are keywords of the class statement, or attributes of the same names: `uri_template`
    (RFC 6570), `name`, `title`, `description`, `mime_type`, `annotations`, `icons`, `meta`,
    `hidden`, `visible`, `subscribable`, `timeout`, `requires`, `available`, `loop`, `traversal`,
    `abstract`. Values that could lead a handler out of its directory match nothing, unless
    `traversal=True`.

    `read` takes the variables as parameters, `read(self, table: str, id: int)`, or all of them in
    `args`; it may also take `uri` and `ctx`. It returns the same as `read` of a `Resource`. `args`
    has an attribute for each variable: a text, a list of texts for `{var*}`, None for a
    missing optional one. A nested class `Arguments`, or `arguments = {…}`, gives them types. A URI
    with a value that does not fit is not found.

    `complete(variable, prefix, ctx)` completes variables. `list(ctx)` returns or yields instances
    for `resources/list`: `ResourceDefinition`s, mappings, URIs, or `Resource` classes.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = TEMPLATE


class FunctionOptions(ResourceOverrides, total=False):
    """The options of a function that is a resource or a template.

    Attributes:
        arguments: The variables of the URI as fields, if the function takes them in one object.
        traversal: Let variables lead out of a directory.
    """

    arguments: object
    traversal: bool


@overload
def resource(target: ResourceTarget, /, **overrides: Unpack[ResourceOverrides]) -> Registration: ...
@overload
def resource(
    function: Callable[..., object], /, **options: Unpack[FunctionOptions]
) -> Registration: ...
@refuses_decorating
def resource(target: object, /, **overrides: object) -> Registration:
    """Register a resource with some of its options changed, or a function as a resource.

    A function needs `uri=`. With variables in it, `db://{table}`, it is a template: each variable
    is a parameter of the function. It may also take `uri` and `ctx`.

    Args:
        target: A `Resource` class, a ready instance of one, another registration, or a function.
        **overrides: The changes; see `ResourceOverrides`; for a function `FunctionOptions`.

    Returns:
        An item for `resources = […]` of a server.

    Raises:
        DefinitionError: The target is not a resource, or an option is unknown or wrong.
    """
    uri = overrides.get("uri")
    if is_function(target) and isinstance(uri, str) and "{" in uri:
        del overrides["uri"]
        return register(TEMPLATE, target, {**overrides, "uri_template": uri}, "resource")
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
