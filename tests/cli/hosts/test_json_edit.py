"""Settings in JSON: one member changes, and every other character stays."""

import json
import re
import string
from itertools import cycle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

URL = "https://x.example/mcp"
#: A host whose files have no comments, and another one; with the entry of a server at a URL.
PLAIN, COMMENTED = "cursor", "gemini"
ENTRIES = {PLAIN: {"url": URL}, COMMENTED: {"httpUrl": URL}}
FILES = {PLAIN: ".cursor/mcp.json", COMMENTED: ".gemini/settings.json"}
hosts = pytest.mark.parametrize("host", ENTRIES)
drawing = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def edit(run, folder):
    """Install a server into a text, or remove it; return the new text, and the error."""

    def edit(host, text, name, *words):
        file = folder / FILES[host]
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode())
        # The command of a server goes last.
        at = words.index("--") if "--" in words else len(words)
        options = ("--scope", "project", "--name", name)
        _, _, err = run("install", host, *words[:at], *options, *words[at:])
        return file.read_bytes().decode(), err

    return edit


def without_comments(text):
    """Decode JSON with comments, which no text in the tests looks like, and trailing commas."""
    tokens = r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/'
    kept = re.sub(
        tokens, lambda found: found[0] if found[0][0] == '"' else "", text, flags=re.DOTALL
    )
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", kept))


names = st.sampled_from(["a", "b", "é", "mcpServers", 'q"', ""])
# Text that a reader with regular expressions takes for nothing else.
letters = "".join(set(string.printable) - set(",}]/*\\"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(letters, max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(names, st.dictionaries(names, values, max_size=4), max_size=4)
gaps = st.sampled_from(["", " ", "\n", "\n  ", "\t", "// one\n", "/* , } */", " // {\n\t"])


@st.composite
def texts(draw, host):
    """Draw a document and one of its possible texts."""
    document = draw(documents)
    comments = host == COMMENTED
    kinds = gaps if comments else st.sampled_from(["", " ", "\n", "\r\n  ", "\t"])
    found = cycle(draw(st.lists(kinds, min_size=1, max_size=8)))
    comma = cycle(draw(st.lists(st.booleans(), min_size=1, max_size=4)))

    def gap():
        return next(found)

    def shown(value):
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=next(comma))
        if isinstance(value, dict):
            items = [f"{json.dumps(k)}{gap()}:{gap()}{shown(v)}" for k, v in value.items()]
        else:
            items = [shown(v) for v in value]
        ends = "{}" if isinstance(value, dict) else "[]"
        text = ",".join(f"{gap()}{item}{gap()}" for item in items)
        last = f",{gap()}" if comments and items and next(comma) else ""
        return f"{ends[0]}{gap()}{text}{last}{ends[1]}"

    return document, f"{gap()}{shown(document)}{gap()}"


@pytest.mark.slow
@hosts
def test_an_entry_changes_nothing_else(edit, host):
    """The edited text has the entry; all other values and comments are unchanged."""

    @drawing
    @given(drawn=texts(host), name=st.sampled_from("abc"))
    def check(drawn, name):
        document, text = drawn
        edited, _ = edit(host, text, name, URL)
        servers = document.get("mcpServers", {})
        expected = {**document, "mcpServers": {**servers, name: ENTRIES[host]}}
        assert expected == without_comments(edited)
        if name not in servers:
            # All characters of the old text are there, in order.
            rest = iter(edited)
            assert all(letter in rest for letter in text if not letter.isspace())

    check()


@pytest.mark.slow
@hosts
def test_a_removed_entry_takes_nothing_else(edit, host):
    """Only the entry is removed; without such an entry the text is unchanged."""

    @drawing
    @given(drawn=texts(host), name=st.sampled_from("abc"))
    def check(drawn, name):
        document, text = drawn
        edited, _ = edit(host, text, name, "--remove")
        if name not in document.get("mcpServers", {}):
            assert text == edited
            return
        inner = {key: value for key, value in document["mcpServers"].items() if key != name}
        assert {**document, "mcpServers": inner} == without_comments(edited)
        assert edited.count("// one") <= text.count("// one")

    check()


SETTINGS = """\
{
    // My theme.
    "theme": "dark", // not light
    "mcpServers": {
        "one": {"command": "x"} // the first
    },
}
"""


def test_an_added_entry_looks_like_its_neighbours(edit):
    """Indentation and comments are as in the rest of the file."""
    edited, _ = edit(COMMENTED, SETTINGS, "two", URL)

    assert edited == SETTINGS.replace(
        "} // the first\n",
        f'}}, // the first\n        "two": {{\n            "httpUrl": "{URL}"\n        }}\n',
    )
    removed, _ = edit(COMMENTED, edited, "two", "--remove")
    assert SETTINGS.replace("}, // the", "} // the") == removed


def test_an_added_object_goes_to_the_end(edit):
    """A missing object of the servers is added at the end, also after a trailing comma."""
    edited, _ = edit(COMMENTED, SETTINGS.replace("mcpServers", "others"), "two", URL)

    end = f'    }},\n    "mcpServers": {{\n        "two": {{\n            "httpUrl": "{URL}"\n'
    assert edited.endswith(f"{end}        }}\n    }},\n}}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "s": {\n    "n": {\n      "url": "u"\n    }\n  }\n}\n'),
        ("{}", '{\n  "s": {\n    "n": {\n      "url": "u"\n    }\n  }\n}'),
        ('{"a": 1}', '{"a": 1,\n  "s": {\n    "n": {\n      "url": "u"\n    }\n  }\n}'),
        ('{"s": {}}', '{"s": {\n  "n": {\n    "url": "u"\n  }\n}}'),
        (
            '{\r\n\t"a": 1\r\n}',
            '{\r\n\t"a": 1,\r\n\t"s": {\r\n\t\t"n": {\r\n\t\t\t"url": "u"\r\n\t\t}\r\n\t}\r\n}',
        ),
        ('{\n "s": {"n": 2, "m": 3}}', '{\n "s": {"n": {\n  "url": "u"\n }, "m": 3}}'),
        (
            '{"s": {"n": 0}, "s": {"n": 2}}',
            '{"s": {"n": 0}, "s": {"n": {\n  "url": "u"\n}}}',
        ),
    ],
)
def test_small_files(edit, text, expected):
    """Empty files, files of one line and files with CRLF keep their form."""
    expected = expected.replace('"s"', '"mcpServers"').replace('"u"', f'"{URL}"')
    assert (expected, "") == edit(PLAIN, text.replace('"s"', '"mcpServers"'), "n", URL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"s": {"n": 1}}', '{"s": {}}'),
        ('{"s": {"a": 0, "n": 1}}', '{"s": {"a": 0 }}'),
        ('{"s": {"n": 1, "a": 0}}', '{"s": {"a": 0}}'),
        ('{\n"s": {\r\n "n": 1,\r\n "a": 0\r\n}}', '{\n"s": {\r\n "a": 0\r\n}}'),
        ('{"n": {"s": 1}}', '{"n": {"s": 1}}'),
        ('{"s": 1}', '{"s": 1}'),
        ("", ""),
    ],
)
def test_small_files_without_an_entry(edit, text, expected):
    """Commas are removed with the entry that they belong to."""
    text, expected = (each.replace('"s"', '"mcpServers"') for each in (text, expected))
    assert expected == edit(PLAIN, text, "n", "--remove")[0]


@pytest.mark.parametrize(
    ("text", "host", "message"),
    [
        ("{", PLAIN, "line 1, column 2: a name in quotes is missing here"),
        ("{1: 2}", PLAIN, "line 1, column 2: a name in quotes"),
        ('{"a" 1}', PLAIN, "line 1, column 6: a colon is missing"),
        ('{"a": }', PLAIN, "line 1, column 7: a JSON value is missing"),
        ('{"a": 01}', PLAIN, "a JSON value is missing"),
        ('{"a": "\t"}', PLAIN, "a JSON value is missing"),
        ('{"a": 1 "b": 2}', PLAIN, "line 1, column 9: a comma or } is missing"),
        ('{"a": [1 2]}', PLAIN, "a comma or ] is missing"),
        ('{"a": 1,}', PLAIN, "line 1, column 8: a comma before }"),
        ('{\n// x\n"a": 1}', PLAIN, "line 2, column 1: a name in quotes is missing here (the host"),
        ("{} x", COMMENTED, "line 1, column 4: unexpected text"),
        ('{"a": /* 1}', COMMENTED, "a JSON value is missing"),
        ('{"a": ' + "[" * 1000, COMMENTED, "nested too deep"),
        ("[]", PLAIN, "the whole is [], not an object"),
        ('{"mcpServers": null}', PLAIN, "mcpServers is null, not an object"),
    ],
)
def test_faults(edit, text, host, message):
    """A file that cannot be read, or has another form, is refused with the position."""
    edited, err = edit(host, text, "n", URL)

    assert edited == text
    assert message in err


def test_half_a_letter_is_escaped(edit):
    """A word of the command line may be half of a surrogate pair; it is escaped."""
    edited, _ = edit(PLAIN, "{}", "n", "--", "true", "\ud800")

    assert json.loads(edited)["mcpServers"]["n"]["args"] == ["\ud800"]
