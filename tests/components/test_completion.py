"""Completion of arguments: the sources of a field, and the values that they return."""

import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.components import Completer, Prompt, complete_from, expand, to_completion
from noizu_mcp.schema import Schema, argument
from noizu_mcp.types import Completion


def plain(prefix: str, ctx: Any) -> list[str]:
    return [prefix]


async def waiting(prefix: str, ctx: Any) -> list[str]:
    return [prefix]


@functools.wraps(waiting)
def decorated(*row: Any) -> Any:
    return waiting(*row)


class Callable:
    async def __call__(self, prefix: str, ctx: Any) -> list[str]:
        return [prefix]


@pytest.mark.parametrize(
    ("function", "mode"),
    [
        (plain, "thread"),
        (waiting, "async"),
        (decorated, "async"),
        (Callable(), "async"),
        (functools.partial(waiting), "async"),
        (lambda *row: list(row), "thread"),
    ],
)
def test_functions_of_every_kind(function: Any, mode: str) -> None:
    """A function of a prefix and a context completes; a sync function may block."""

    class Asked(Prompt):
        class Arguments(Schema):
            word: str = argument(complete=function)

        def get(self, args: Any) -> Any: ...

    (spec,) = expand([Asked], "prompts")
    assert spec.complete("word") == Completer(mode, function)


@pytest.mark.parametrize(
    ("prefix", "values"),
    [("", ("strict", "Strict", "soft")), ("s", ("strict", "soft")), ("S", ("Strict",)), ("x", ())],
)
def test_lists_are_filtered(prefix: str, values: tuple[str, ...]) -> None:
    """Values must begin with the prefix, case-sensitive."""
    assert complete_from(["strict", "Strict", "soft"], prefix) == Completion(values)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=150), st.text(max_size=1))
def test_completions_fit_the_wire(texts: list[str], prefix: str) -> None:
    """At most 100 values are sent, all with the prefix, and `has_more` only if there are more."""
    inner = complete_from(texts, prefix).to_wire()["completion"]
    fitting = [text for text in texts if text.startswith(prefix)]
    assert inner["values"] == fitting[:100]
    assert inner.get("hasMore", False) == (len(fitting) > 100)


READY = Completion(["a"], 5, has_more=True)


@pytest.mark.parametrize(
    ("value", "completion"),
    [
        (None, Completion()),
        ([], Completion()),
        (("a", "b"), Completion(["a", "b"])),
        ((text for text in "ab"), Completion(["a", "b"])),
        (READY, READY),
    ],
)
def test_what_may_be_returned(value: Any, completion: Completion) -> None:
    """A list of strings, a `Completion`, or None may be returned."""
    assert to_completion(value) == completion


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("abc", "expected a list of texts or a Completion, got 'abc'"),
        ({"a": 1}, "expected a list of texts or a Completion, got {'a': 1}"),
        (3, "expected a list of texts or a Completion, got 3"),
        ([3], "a completion is a text, got 3"),
    ],
)
def test_what_may_not(value: Any, message: str) -> None:
    """Other values raise an error for the log."""
    with pytest.raises(TypeError) as caught:
        to_completion(value)
    assert str(caught.value) == message


def test_a_forgotten_await() -> None:
    """A coroutine is refused, and closed."""
    with pytest.raises(TypeError, match="a coroutine was returned; make complete async, or await"):
        to_completion(waiting("", None))
