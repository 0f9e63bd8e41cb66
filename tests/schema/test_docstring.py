"""Docstrings: first paragraph and parameter sections."""

import pytest

from noizu_mcp.schema import docstring_parameters, docstring_summary

GOOGLE = """Add two numbers.

    Longer text.

    Args:
        a: the first addend,
            continued here
        *rest: the others
        b (int, optional): the second: addend
        c:
            on its own line
        empty:
        not an entry

    Returns:
        sum: no parameter

    Attributes:
        d: an attribute
    """

NUMPY = """
    Add two numbers.

    Parameters
    ----------
    a : int
        The first addend,
        continued here.
    b, c
        Two of them.
    ???
        not a name
    d : int

    Returns
    -------
    sum : int
        No parameter.
    """


def test_google_sections():
    """Args and Attributes are read, each entry as one line, names without stars."""
    assert docstring_parameters(GOOGLE) == {
        "a": "the first addend, continued here",
        "rest": "the others",
        "b": "the second: addend",
        "c": "on its own line",
        "d": "an attribute",
    }


def test_a_numpy_section_at_the_end():
    """A section at the end of the docstring is read."""
    assert docstring_parameters("Parameters\n----------\na : int\n    First.") == {"a": "First."}


def test_numpy_sections():
    """Underlined Parameters are read; several names may share a text."""
    assert docstring_parameters(NUMPY) == {
        "a": "The first addend, continued here.",
        "b": "Two of them.",
        "c": "Two of them.",
    }


@pytest.mark.parametrize(
    "text", [None, "", "   ", "One line.", "Args:", "Args:\n\nx", "Parameters"]
)
def test_nothing_to_find(text):
    """A missing docstring, or one without entries, has no descriptions."""
    assert docstring_parameters(text) == {}


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (None, None),
        ("", None),
        ("  \n ", None),
        ("One line.", "One line."),
        ("\n    Two\n    lines.\n    \n    More.\n", "Two lines."),
        (GOOGLE, "Add two numbers."),
    ],
)
def test_summary(text, summary):
    """It is the first paragraph, as one line."""
    assert summary == docstring_summary(text)
