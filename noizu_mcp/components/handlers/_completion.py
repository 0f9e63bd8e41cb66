"""Completion of arguments and variables: its sources, and the values that an author returns."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..._util import takes
from ...schema import Fault
from ...types import Completion, as_tuple
from ._handler import Handler, Mode, refuse_coroutine
from ._signature import is_async


class Completer(NamedTuple):
    """A function that completes one argument.

    Attributes:
        mode: `async`: awaited; `thread`: may block, runs in a worker thread.
        invoke: Takes the prefix and the context; gives a value for `to_completion`.
    """

    mode: Mode
    invoke: Callable[[str, object], object]


#: All texts that an argument may be, or a function that computes them.
Source = tuple[str, ...] | Completer


def read_sources(
    owner: type | None, completions: Mapping[str, Any]
) -> tuple[dict[str, Source], list[Fault]]:
    """Read the `complete=` of fields.

    Args:
        owner: The class that declares the fields, if it is a class.
        completions: The value of each, unchecked.

    Returns:
        The sources by field; then the faults.
    """
    sources: dict[str, Source] = {}
    faults: list[Fault] = []
    for name, declared in completions.items():
        if isinstance(declared, list | tuple) and all(isinstance(text, str) for text in declared):
            sources[name] = tuple(declared)
        elif takes(declared, "prefix", None):
            # The second one is for an instance with an async `__call__`.
            awaited = is_async(declared) or is_async(declared.__call__)
            sources[name] = Completer("async" if awaited else "thread", declared)
        else:
            text = "complete must be a list of texts or an async function (prefix, ctx)"
            faults.append(Fault((name,), f"{text}, got {declared!r}", owner))
    return sources, faults


def completer(
    handler: Handler | None, instance: object, sources: Mapping[str, Source]
) -> Callable[[str], Source | None]:
    """Make the function that finds the source of completions of an argument.

    Args:
        handler: `complete(argument, prefix, ctx)` of the component, which goes first.
        instance: The component.
        sources: The sources that its fields declare.

    Returns:
        A function of the name of an argument; it gives None where nothing completes the argument.
    """
    if handler is None:
        return sources.get
    bound, mode = handler.bind(instance), handler.mode
    return lambda name: Completer(mode, lambda prefix, ctx: bound(name, prefix, ctx))


def complete_from(texts: Iterable[str], prefix: str) -> Completion:
    """Complete from a list: the texts that start with the prefix; case matters.

    Args:
        texts: All texts that the argument may be.
        prefix: The part that has been typed.
    """
    return Completion([text for text in texts if text.startswith(prefix)])


def to_completion(value: object) -> Completion:
    """Turn the value that a completing function returned into a completion.

    Args:
        value: A list of texts, a `Completion`, or None for nothing.

    Raises:
        TypeError: The value is anything else.
    """
    if isinstance(value, Completion):
        return value
    refuse_coroutine(value, "complete")
    # A text is an iterable of its letters, and would complete to them.
    if value is not None and (isinstance(value, str | Mapping) or not isinstance(value, Iterable)):
        raise TypeError(f"expected a list of texts or a Completion, got {value!r}")
    return Completion(as_tuple(value))
