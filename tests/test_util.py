"""Small things of all layers: names of classes, JSON text, final classes."""

import inspect

import pytest

from noizu_mcp import Context, Tool, ToolResult, text_content


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GetWeather", "get_weather"),
        ("SAPExample", "sap_example"),
        ("FooBar10", "foo_bar10"),
        ("Crash", "crash"),
        ("HTML5Parser", "html5_parser"),
        ("already_snake", "already_snake"),
        ("X", "x"),
    ],
)
def test_snake_case(name: str, expected: str) -> None:
    """Words of a class name are found, including acronyms."""
    made: type[Tool] = type(name, (Tool,), {"call": lambda self: "x"})
    assert made.definition()["name"] == expected


def test_an_absent_value_is_false_and_says_its_name() -> None:
    """The marker of an absent argument is false, and its `repr` is its name."""
    marker = inspect.signature(Context.elicit).parameters["timeout"].default
    assert not marker
    assert repr(marker) == "UNSET"


def test_json_text_is_compact_and_strict() -> None:
    """The text has no spaces, no escapes, and no NaN."""
    (block,) = text_content({"é": [1, None], "a": "b"})
    assert block.text == '{"é":[1,null],"a":"b"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        text_content(float("nan"))


def test_final() -> None:
    """A final class cannot be subclassed."""
    with pytest.raises(TypeError, match="More cannot subclass ToolResult, which is final"):

        class More(ToolResult):  # type: ignore[misc]
            pass
