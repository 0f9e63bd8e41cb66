"""Edits of TOML text: one table changes, and all else stays."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.cli.hosts._json_edit import EditError
from noizu_mcp.cli.hosts._toml_edit import read_toml_text, remove_table, set_table

letters = st.characters(exclude_categories=["Cs"])
words = st.text(letters, max_size=6)
tables = st.dictionaries(words, words | st.lists(words, max_size=3), max_size=3)

TEXT = """\
# Mine.
model = "o" # the best

[mcp_servers.one]
command = "x"

# The second one.
[mcp_servers.two] # here
command = "y"
[mcp_servers.two.env]
A = "1"
# The end of two.

[other]
text = '''
[mcp_servers.three]
'''
"""


@pytest.mark.slow
@given(table=tables, name=st.text(letters, min_size=1, max_size=6))
def test_an_added_table_changes_nothing_else(table, name):
    """The new text begins with the old one, and the table has its values."""
    if name in ("one", "two"):
        return
    edited = set_table(TEXT, ("mcp_servers", name), table)

    assert edited.startswith(TEXT)
    assert table == tomllib.loads(edited)["mcp_servers"][name]
    again = set_table(edited, ("mcp_servers", name), {"command": "z"})
    assert tomllib.loads(again)["mcp_servers"][name] == {"command": "z"}
    assert tomllib.loads(TEXT) == tomllib.loads(remove_table(again, ("mcp_servers", name)))


def test_a_table_in_the_middle():
    """It is replaced in place, with its subtables; comments around it stay."""
    edited = set_table(TEXT, ("mcp_servers", "two"), {"url": "u", "env": {"B c": "2"}})

    assert '# The second one.\n[mcp_servers.two]\nurl = "u"\nenv = { "B c" = "2" }\n# The' in edited
    assert "A =" not in edited
    removed = remove_table(edited, ("mcp_servers", "two"))
    assert "two]" not in removed
    assert "# The second one.\n# The end of two.\n\n[other]" in removed
    assert "[other]" in remove_table(removed, ("mcp_servers", "one"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '[s.n]\na = "b"\n'),
        ("x = 1", 'x = 1\n\n[s.n]\na = "b"\n'),
        ("x = 1\r\n", 'x = 1\r\n\r\n[s.n]\r\na = "b"\r\n'),
        ("[ s . 'n' ]\nc = 1\n\n[t]\n", '[s.n]\na = "b"\n\n[t]\n'),
    ],
)
def test_small_texts(text, expected):
    """Empty texts, texts without a final newline and texts with CRLF keep their form."""
    assert expected == set_table(text, ("s", "n"), {"a": "b"})


@pytest.mark.parametrize("text", ["", "x = 1\n", "s = 1\n", "[s.m]\n"])
def test_nothing_to_remove(text):
    """A text without the table is unchanged."""
    assert text == remove_table(text, ("s", "n"))


@pytest.mark.parametrize(
    "text",
    [
        "s = { n = { a = 1 } }\n",
        "[s]\nn = { a = 1 }\n",
        "[s]\nn.a = 1\n",
        "[s.n]\na = [\n[1],\n]\n",
        "x = '''\n[s.n]\n'''\n",
    ],
)
def test_other_forms_are_left_alone(text):
    """A table that is not written with headers is refused, not damaged."""
    with pytest.raises(EditError, match="only you can change"):
        set_table(text, ("s", "n"), {"a": "b"})
    if "'''" not in text and "[[" not in text:
        with pytest.raises(EditError, match="only you can change"):
            remove_table(text, ("s", "n"))


def test_text_that_is_not_toml():
    """It is refused with the position."""
    with pytest.raises(EditError, match="line 1"):
        read_toml_text("a = = 1")
