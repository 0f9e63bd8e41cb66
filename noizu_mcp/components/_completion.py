"""What arguments and variables are completed from, and what an author returns for it."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..schema import Fault
from ..types import Completion, as_tuple
from ._method import Method
from ._signature import Mode, is_async, refuse_coroutine


class Completer(NamedTuple):
    """A function that completes one argument.

    Attributes:
        mode: `async`: awaited; `thread`: may block, runs in a worker thread.
        invoke: Takes the prefix and the context; gives what `to_completion` takes.
    """

    mode: Mode
    invoke: Callable[[str, Any], Any]


#: All texts that an argument may be, or what computes them.
Source = tuple[str, ...] | Completer


def read_sources(
    owner: type | None, completions: Mapping[str, Any]
) -> tuple[dict[str, Source], list[Fault]]:
    """Read the `complete=` of the fields of a form.

    Args:
        owner: The class that declares them, if it is one.
        completions: What each says, unchecked.

    Returns:
        The sources by field; then what is wrong.
    """
    sources: dict[str, Source] = {}
    faults: list[Fault] = []
    for name, declared in completions.items():
        source = _source(declared)
        if source is None:
            text = "complete must be a list of texts or an async function (prefix, ctx)"
            faults.append(Fault((name,), f"{text}, got {declared!r}", owner))
        else:
            sources[name] = source
    return sources, faults


def _source(declared: Any) -> Source | None:
    if isinstance(declared, list | tuple):
        return tuple(declared) if all(isinstance(text, str) for text in declared) else None
    if not _takes_two(declared):
        return None
    asynchronous = is_async(declared) or is_async(declared.__call__)
    return Completer("async" if asynchronous else "thread", declared)


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind("prefix", None)
    except (TypeError, ValueError):
        return False
    return True


def completer(
    method: Method | None, instance: object, sources: Mapping[str, Source]
) -> Callable[[str], Source | None]:
    """Make the function that says what an argument is completed from.

    Args:
        method: `complete(argument, prefix, ctx)` of the component, which goes first.
        instance: The component.
        sources: What its fields declare.

    Returns:
        A function of the name of an argument; None where nothing completes it.
    """
    if method is None:
        return sources.get
    bound, mode = method.bind(instance), method.mode
    return lambda name: Completer(mode, lambda prefix, ctx: bound(name, prefix, ctx))


def complete_from(texts: Iterable[str], prefix: str) -> Completion:
    """Complete from a list: the texts that start with the prefix, upper and lower case told apart.

    Args:
        texts: All that there are.
        prefix: What has been typed.
    """
    return Completion([text for text in texts if text.startswith(prefix)])


def to_completion(value: Any) -> Completion:
    """Turn what a completing function returned into a completion.

    Args:
        value: A list of texts, a `Completion`, or None for nothing.

    Raises:
        TypeError: Anything else.
    """
    if isinstance(value, Completion):
        return value
    refuse_coroutine(value, "complete")
    if value is not None and (isinstance(value, str | Mapping) or not isinstance(value, Iterable)):
        raise TypeError(f"expected a list of texts or a Completion, got {value!r}")
    return Completion(as_tuple(value))
