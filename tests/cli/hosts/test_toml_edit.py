"""Settings in TOML: one table changes, and all else stays."""

import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

URL = "https://x.example/mcp"
ENTRY = {"url": URL}
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
names = words.filter(lambda name: name and "=" not in name)

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


@pytest.fixture
def settings_file(folder):
    """The settings of Codex in a project."""
    (folder / ".codex").mkdir()
    return folder / ".codex" / "config.toml"


@pytest.fixture
def edit(run, settings_file):
    """Install a server into a text, or remove it; return the new text, and the error."""

    def edit(text, name, *words):
        settings_file.write_bytes(text.encode())
        # The command of a server goes last.
        at = words.index("--") if "--" in words else len(words)
        options = ("--scope", "project", "--name", name)
        _, _, err = run("install", "codex", *words[:at], *options, *words[at:])
        return settings_file.read_bytes().decode(), err

    return edit


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(env=st.dictionaries(names, words, max_size=3), value=words)
def test_an_added_table_changes_nothing_else(edit, env, value):
    """The new text begins with the old one, and the table has its values."""
    variables = [word for name, text in env.items() for word in ("--env", f"{name}={text}")]
    edited, _ = edit(TEXT, "n", *variables, "--", "true", value)

    assert edited.startswith(TEXT)
    table = tomllib.loads(edited)["mcp_servers"]["n"]
    assert (table["args"], table.get("env", {})) == ([value], env)
    again, _ = edit(edited, "n", URL)
    assert tomllib.loads(again)["mcp_servers"]["n"] == ENTRY
    assert tomllib.loads(TEXT) == tomllib.loads(edit(again, "n", "--remove")[0])


def test_a_table_in_the_middle(edit):
    """It is replaced in place, with its subtables; comments around it stay."""
    edited, _ = edit(TEXT, "two", URL, "--header", "B=2")

    table = f'# The second one.\n[mcp_servers.two]\nurl = "{URL}"\nhttp_headers = {{ b = "2" }}\n#'
    assert table in edited
    assert "A =" not in edited
    removed, _ = edit(edited, "two", "--remove")
    assert "two]" not in removed
    assert "# The second one.\n# The end of two.\n\n[other]" in removed
    assert "[other]" in edit(removed, "one", "--remove")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '[mcp_servers.n]\nurl = "u"\n'),
        ("x = 1", 'x = 1\n\n[mcp_servers.n]\nurl = "u"\n'),
        ("x = 1\r\n", 'x = 1\r\n\r\n[mcp_servers.n]\r\nurl = "u"\r\n'),
        ("[ mcp_servers . 'n' ]\nc = 1\n\n[t]\n", '[mcp_servers.n]\nurl = "u"\n\n[t]\n'),
    ],
)
def test_small_texts(edit, text, expected):
    """Empty texts, texts without a final newline and texts with CRLF keep their form."""
    assert (expected.replace('"u"', f'"{URL}"'), "") == edit(text, "n", URL)


@pytest.mark.parametrize("text", ["", "x = 1\n", "mcp_servers = 1\n", "[mcp_servers.m]\n"])
def test_nothing_to_remove(edit, text):
    """A text without the table is unchanged."""
    edited, err = edit(text, "n", "--remove")

    assert edited == text
    assert "has no server n" in err


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = { n = { a = 1 } }\n",
        "[mcp_servers]\nn = { a = 1 }\n",
        "[mcp_servers]\nn.a = 1\n",
        "[mcp_servers.n]\na = [\n[1],\n]\n",
        "x = '''\n[mcp_servers.n]\n'''\n",
    ],
)
def test_other_forms_are_left_alone(edit, text):
    """A table that is not written with headers is refused, not damaged."""
    edited, err = edit(text, "n", URL)
    assert edited == text
    assert "only you can change" in err
    if "'''" not in text and "[\n[1]" not in text:
        edited, err = edit(text, "n", "--remove")
        assert edited == text
        assert "only you can change" in err


def test_text_that_is_not_toml(edit):
    """It is refused with the position."""
    assert "line 1" in edit("a = = 1", "n", URL)[1]
