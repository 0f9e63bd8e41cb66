"""Binds components to the loop of each, and to the schema engine of the server.

The loop of a component is its option `loop`, or else the loop of its server.

A handler on asyncio is bound as a coroutine function of trio that runs it there. So both kinds of
handlers are called in the same way, and a server without asyncio does not load it.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import components
from ..._util import Returned
from ...components import expand

if TYPE_CHECKING:
    from ...components import Source
    from ..policies._policy import Policy
    from ..registry._server_options import ServerOptions


def bind_all(items: Iterable[Any], feature: str, options: "ServerOptions") -> list[Any]:
    """Bind registered components to instances, and to the loops and the engine of a server.

    Args:
        items: Component classes, instances, functions, and registrations.
        feature: The list of the server: `tools`, `resources` or `prompts`.
        options: The options of the server.

    Returns:
        The bound components.

    Raises:
        DefinitionError: An item cannot be registered, two items have one name, URI or template, or
            the engine does not support a schema.
    """
    specs = expand(items, feature)
    if (engine := options.schema_engine) is not None:
        specs = [spec.on_engine(engine) for spec in specs]
    return [_bind(spec, spec.loop or options.loop) for spec in specs]


def _bind(spec: Any, loop: str) -> Any:
    if loop == "trio":
        return spec
    from ._asyncio_context import on_asyncio

    fields = {**vars(spec), "loop": loop}
    if spec.mode == "async":
        fields["invoke"] = on_asyncio(spec.invoke)
    if fields.get("list") is not None and spec.list_mode == "async":
        fields["list"] = on_asyncio(spec.list)
    if "complete" in fields:
        find: Callable[[str], Source | None] = spec.complete

        def complete(name: str) -> "Source | None":
            source = find(name)
            if isinstance(source, components.Completer) and source.mode == "async":
                return source._replace(invoke=on_asyncio(source.invoke))
            return source

        fields["complete"] = complete
    return type(spec)(**fields)


def bind_policy(policy: "Policy", loop: str) -> Callable[..., Any]:
    """Return the `check` of a policy as a function for trio.

    Args:
        policy: The policy.
        loop: The loop of policies without a `loop` option.
    """
    check = policy.check
    if (policy.loop or loop) == "trio" or not inspect.iscoroutinefunction(check):
        return check
    from ._asyncio_context import on_asyncio

    return on_asyncio(check)


def bind_methods(server: Any, names: Iterable[str]) -> None:
    """Let methods of a server, and its lifespan, run on asyncio.

    Args:
        server: The server. The functions become attributes of the instance, which hide the methods
            of its class.
        names: The methods that its class overrides.
    """
    from ._asyncio_context import manager_on_asyncio, on_asyncio

    for name in names:
        setattr(server, name, on_asyncio(getattr(server, name)))
    server.lifespan = manager_on_asyncio(server.lifespan)


def on_trio(function: Callable[..., Awaitable[Returned]], *args: Any) -> Awaitable[Returned]:
    """Call a coroutine function of trio from an override that may run on asyncio.

    Args:
        function: The function.
        *args: Its arguments; the last one is the context.
    """
    side = args[-1].side
    if side is None:
        return function(*args)
    crossed: Awaitable[Returned] = side.run_trio(partial(function, *args[:-1], side.ctx))
    return crossed
