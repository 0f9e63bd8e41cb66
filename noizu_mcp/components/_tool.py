"""`Tool`, a class that is one tool, and the options of tools."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from ..types import Annotations
from .declare._component import Component
from .declare._statement import ComponentMeta
from .declare._tool_kind import TOOL
from .registration._registration import Overrides, SharedOptions


class ToolOptions(SharedOptions, total=False):
    """The options of tools that their registrations may change.

    Attributes:
        category: Another category; None for none. It is merged into `meta`.
        annotations: Other hints.
        max_concurrency: Calls at one time, or None for no limit.
        max_queue: Calls that may wait for that, or None for the limit of the server.
        max_result_bytes: Bytes of a result, as JSON, or None for the limit of the server.
        coerce: Read text that stands for other types, as `"3"` for 3.
    """

    category: str | None
    annotations: Annotations | Mapping[str, object] | None
    max_concurrency: int | None
    max_queue: int | None
    max_result_bytes: int | None
    coerce: bool


class ToolOverrides(ToolOptions, Overrides, total=False):
    """The options of the registration of a tool or of a kit."""


class MethodOptions(ToolOptions, total=False):
    """The options of `@mcp(…)`.

    They are the options that a registration may change, and options of the method or the function.
    The name is its name by default, the description the first paragraph of its docstring.
    `category=None` removes the category of a kit.

    Attributes:
        input: The arguments, in any of the four forms.
        output: The structured content, in any of the four forms.
        input_schema: The arguments as raw JSON Schema; wins over `input`.
        output_schema: The structured content as raw JSON Schema; wins over `output`.
        inline: Run a short sync method where it is called, not in a thread.
        strict: Refuse unknown arguments.
        task: Let calls go on as tasks: `required`, or `optional` where the client knows no tasks.
        starts_task: The method begins the task by itself, with `ctx.start_task()`.
        restartable: Run the task again at another node where its node is gone, at most 3 times.
    """

    input: object
    output: object
    input_schema: Mapping[str, object] | str
    output_schema: Mapping[str, object] | str
    inline: bool
    strict: bool
    task: Literal["optional", "required"] | None
    starts_task: bool
    restartable: bool


class ToolFunctionOptions(MethodOptions, Overrides, total=False):
    """The options of a function that is registered as a tool."""


class Tool(Component, metaclass=ComponentMeta):
    """One tool: subclass it, declare the input, write `call`.

    Options are keywords of the class statement, or attributes of the same names: `name`, `title`,
    `description`, `category`, `annotations`, `icons`, `meta`, `hidden`, `visible`, `timeout`,
    `max_concurrency`, `max_queue`, `max_result_bytes`, `coerce`, `requires`, `available`, `loop`,
    `inline`, `strict`, `task`, `starts_task`, `restartable`, `abstract`. The input is a nested
    class `Input`, or `input`, or `input_schema`; the output likewise, or the return annotation of
    `call`.

    A declared input goes to the first parameter of `call`. Without one, the parameters of `call`
    are the input, `call(self, a: int, b: int = 1)`; or `args` takes the whole input, and its
    annotation is the schema. `ctx`, or a parameter annotated `Context`, takes the context. A sync
    `call` runs in a worker thread, with `inline=True` on the loop; an async one on trio, with
    `loop="asyncio"` on an asyncio loop. The name defaults to the name of
    the class in snake case, the description to the first paragraph of the docstring.

    Raises:
        DefinitionError: From the class statement; it lists all problems of the class.
    """

    __mcp_kind__: ClassVar = TOOL
