"""`Resource` and `ResourceTemplate`: classes that are one resource, or many of one kind."""

from collections.abc import Iterator
from typing import ClassVar, cast

from ..schema import Shape, fields, read_shape
from ..uri import UriTemplate
from ._declare import ComponentMeta, Declaration
from ._method import read_method
from ._misses import is_class, takes
from ._plan import Described
from ._reader import Arguments, Reader
from ._resource_options import RESOURCE_OPTIONS, TEMPLATE_OPTIONS
from ._resource_spec import ResourcePlan, TemplatePlan
from ._texts import Texts, impossible


class Resource(Described, metaclass=ComponentMeta):
    """One resource: subclass it, give its URI, write `read`.

    Options are keywords of the class statement, or attributes of the same names: `uri`, `name`,
    `title`, `description`, `mime_type`, `size`, `annotations`, `icons`, `meta`, `hidden`,
    `visible`, `subscribable`, `timeout`, `requires`, `abstract`. The name defaults to
    the URI, the description to the first paragraph of the docstring.

    `read` takes `()`, `(uri)` or `(uri, ctx)` after `self`, sync or async; a sync one runs in a
    worker thread. It returns a text, bytes, `ResourceContents`, a list of these, or any other JSON
    value, which is sent as a text.

    Raises:
        DefinitionError: From the class statement; it lists all that is wrong in the class.
    """

    __mcp_kind__: ClassVar = "resources"
    __mcp_table__: ClassVar = RESOURCE_OPTIONS
    __mcp__: ClassVar[tuple[ResourcePlan, ...]] = ()

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        reader = Reader(declaration, "resource")
        if not reader.needs_own("uri"):
            reader.problem("", "a resource needs a uri: write uri='config://app', or abstract=True")
        read = reader.required_method("read", ("uri", "ctx"))
        if read is None or declaration.abstract or "uri" not in reader.options:
            cls.__mcp__ = ()
        else:
            cls.__mcp__ = (ResourcePlan(options=reader.options, answer=read, source=reader.source),)


class ResourceTemplate(Described, metaclass=ComponentMeta):
    """Many resources whose URIs have one form: subclass it, give the template, write `read`.

    Options are keywords of the class statement, or attributes of the same names: `uri_template`
    (RFC 6570), `name`, `title`, `description`, `mime_type`, `annotations`, `icons`, `meta`,
    `hidden`, `visible`, `subscribable`, `timeout`, `requires`, `traversal`, `abstract`. Values
    that could lead a handler out of its directory match nothing, unless `traversal=True`.

    `read` takes `(uri, args)` or `(uri, args, ctx)` after `self`, sync or async, and returns what
    that of a `Resource` does. `args` has an attribute for each variable: a text, a list of texts
    for `{var*}`, None for an optional one that is absent. A nested class `Arguments`, or
    `arguments = {…}`, gives them types; a URI with a value that does not fit is not found.

    `complete(variable, prefix, ctx)` completes variables. `list(ctx)` returns or yields instances
    for `resources/list`: `ResourceDefinition`s, mappings, URIs, or `Resource` classes.

    Raises:
        DefinitionError: From the class statement; it lists all that is wrong in the class.
    """

    __mcp_kind__: ClassVar = "resources"
    __mcp_table__: ClassVar = TEMPLATE_OPTIONS
    __mcp_members__: ClassVar = {"Arguments": is_class, "complete": takes(3, 4)}
    __mcp__: ClassVar[tuple[TemplatePlan, ...]] = ()

    @classmethod
    def _read_class(cls, declaration: Declaration) -> None:
        cls.__mcp__ = _TemplateReader(declaration, "resource template").plans()


class _TemplateReader(Reader):
    """Reads the statement of one template."""

    def plans(self) -> tuple[TemplatePlan, ...]:
        if not self.needs_own("uri_template"):
            self.problem(
                "",
                "a resource template needs a uri_template: write uri_template='db://{table}', or"
                " abstract=True",
            )
        read = self.required_method("read", ("uri", "args", "ctx"), least=2)
        complete = read_method(self.declaration, "complete", ("variable", "prefix", "ctx"), least=2)
        listed = read_method(self.declaration, "list", ("ctx",), may_yield=True)
        arguments = self.arguments(read)
        if self.declaration.abstract or "uri_template" not in self.options:
            return ()
        traversal = self.options.get("traversal", False)
        template = UriTemplate(self.options["uri_template"], traversal=traversal)
        self.argument_faults(arguments, _misfits(template, arguments))
        if read is None:
            return ()
        plan = TemplatePlan(
            options=self.options,
            template=template,
            texts=Texts(arguments.shape or _plain_shape(template), template.lists),
            sources=arguments.sources,
            answer=read,
            complete=complete,
            list=listed,
            source=self.source,
        )
        return (plan,)


def _misfits(template: UriTemplate, arguments: Arguments) -> Iterator[tuple[str, str]]:
    """Yield what the template and the declared variables have against each other."""
    if not arguments.fields and arguments.shape is None:
        return  # nothing is declared, or nothing that could be read
    for name in arguments.fields:
        if name not in template.variables:
            yield name, f"{template.text!r} has no variable of this name"
    for name in template.variables:
        if name not in arguments.fields:
            yield "", f"{template.text!r} has a variable {name!r}; declare it"
    for name in impossible(arguments.fields, template.lists):
        yield name, _impossible(template, name)


def _impossible(template: UriTemplate, name: str) -> str:
    if name in template.lists:
        return f"{{{name}*}} matches a list of texts; declare it as list[str]"
    return "a variable is a text; declare it as str, int, float, bool, an Enum or a Literal"


def _plain_shape(template: UriTemplate) -> Shape:
    """Declare the variables of a template as they come: texts, and lists of texts."""
    declared = {
        name: fields.array(fields.string())
        if name in template.lists
        else fields.string(required=name not in template.optional)
        for name in template.variables
    }
    return cast("Shape", read_shape(declared)[0])
