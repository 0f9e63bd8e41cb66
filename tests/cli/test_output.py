"""Tables, JSON and traces, on terminals and elsewhere."""

import io
import json
import logging
import os
import subprocess
import sys

import pytest

from noizu_mcp import Content
from noizu_mcp.cli._output import TracePrinter, one_line_log, print_json, print_table, show
from noizu_mcp.cli._say import marked_stderr


class Terminal(io.StringIO):
    """A stdout that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Make stdout a terminal of 40 columns; called within the test, since pytest replaces it."""

    def make():
        made = Terminal()
        monkeypatch.setattr(sys, "stdout", made)
        monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 20)))
        return made

    return make


ROWS = [("a", "[limit] query", "Short"), ("b" * 30, "x", "A description that is too long for it")]


def test_a_table_on_a_terminal_fits(terminal):
    """Columns are cut with a mark, and no line is wider than the terminal."""
    out = terminal()
    print_table(("NAME", "ARGUMENTS", "DESCRIPTION"), ROWS)
    lines = out.getvalue().splitlines()
    assert lines[0] == "NAME           ARGUMENTS      DESCRIPTI…"
    assert lines[1] == "a              [limit] query  Short"
    assert lines[2] == "bbbbbbbbbbbb…  x              A descrip…"


def test_a_table_elsewhere_is_whole(capsys):
    """A program that reads the table gets all of it."""
    print_table(("NAME", "ARGUMENTS", "DESCRIPTION"), ROWS)
    assert ROWS[1][2] in capsys.readouterr().out


def test_columns_line_up_in_any_script(capsys):
    """Wide letters count twice, accents not at all."""
    print_table(("N", "D"), [("漢字", "1"), ("e\u0301", "2")])
    assert capsys.readouterr().out == "N     D\n漢字  1\ne\u0301     2\n"


def test_a_server_cannot_steer_the_terminal(terminal):
    """Control characters are printed as text; in tables line ends, too."""
    out = terminal()
    print_table(("N", "D"), [("a\x1b[2J", "b\nc")])
    show(Content.text("x\x1b]0;y\x07\n\tz"), sys.stdout)
    assert out.getvalue() == ("N           D\na\\u{1B}[2J  b\\u{A}c\nx\\u{1B}]0;y\\u{7}\n\tz\n")


@pytest.mark.parametrize(
    ("text", "written"),
    [("a\r\nb\x1b[0m\r\n", "a\r\nb\x1b[0m\r\n"), ("a\rb", "a\rb\n"), ("", "\n")],
)
def test_a_pipe_gets_text_as_it_is(run, text, written):
    """Line ends and control characters are unchanged; the last line is terminated."""
    assert run("call", "demo.py", "echo", f"message={text}") == (0, written, "")


def test_json_is_as_it_is_where_it_can_be(monkeypatch):
    """Encodings other than UTF-8 get escapes; so does half of a surrogate pair."""
    for encoding, expected in (("utf-8", '"é\\ud800"'), ("ascii", '"\\u00e9\\ud800"')):
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
        monkeypatch.setattr(sys, "stdout", out)
        print_json("é\ud800")
        assert raw.getvalue().decode() == expected + "\n"
        assert json.loads(raw.getvalue()) == "é\ud800"


def test_content_that_is_no_text_is_summed_up(capsys):
    """Bytes are counted; other content is JSON; characters that stdout lacks are escaped."""
    show(Content.image(b"\0" * 30, "image/png"), sys.stdout)
    show(Content.resource_link("a://b", "c"), sys.stdout)
    out = capsys.readouterr().out.splitlines()
    assert json.loads(out[0])["data"] == "(40 characters of base64)"
    assert json.loads(out[1])["uri"] == "a://b"
    raw = io.BytesIO()
    plain = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    show(Content.text("é"), plain)
    assert raw.getvalue() == b"\\xe9\n"


def test_a_trace_shows_directions(terminal):
    """Arrows show the direction, in colour on a terminal only."""
    plain = io.StringIO()
    trace = TracePrinter(plain)
    trace("sent", b"{}")
    trace("received", b"\xff")
    assert plain.getvalue() == "--> {}\n<-- \ufffd\n"
    coloured = terminal()
    TracePrinter(coloured)("sent", b"{}")
    assert coloured.getvalue() == "\x1b[36m-->\x1b[0m {}\n"


def test_the_log_is_a_line_a_record(capsys):
    """Tracebacks and line ends are removed while the setting is active."""
    log = logging.getLogger("noizu_mcp")
    with one_line_log():
        log.error("a\nb", exc_info=LookupError("c\nd"))
        log.warning("plain")
        log.info("not shown")
    assert (
        capsys.readouterr().err == "noizu-mcp: a\\u{A}b: LookupError: c\\u{A}d\nnoizu-mcp: plain\n"
    )
    assert not log.handlers


PROGRAM = """
import os, sys
os.write(2, b"one\\r\\ntwo \\x1b[2J \\xff\\n" + b"x" * 100_000 + b"\\nend")
"""


def test_programs_that_are_started_have_marks(capfd):
    """Each of their lines on stderr is marked, also long or unterminated ones."""
    with marked_stderr():
        subprocess.run([sys.executable, "-c", PROGRAM], check=True)
        sys.stderr.write("ours\n")
    subprocess.run([sys.executable, "-c", "import os; os.write(2, b'raw')"], check=True)
    err = capfd.readouterr().err

    lines = err.replace("ours\n", "").split("\n")
    assert lines[:2] == ["| one", "| two \\u{1B}[2J \ufffd"]
    assert lines[-2:] == ["| end", "raw"]
    long = "".join(line.removeprefix("| ") for line in lines[2:-2])
    assert len(long) == 100_000


def test_stderr_of_this_program_is_put_back(tmp_path):
    """Descriptor 2 and `sys.stderr` are restored, since a program may go on."""
    code = """
import os, subprocess, sys
from noizu_mcp.cli._say import marked_stderr
before = sys.stderr
with marked_stderr():
    assert sys.stderr is not before
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    print("ours", file=sys.stderr)
    os.write(2, b"not ours\\n")
assert sys.stderr is before
os.write(2, b"raw\\n")
child.communicate(b"\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(done.stderr.splitlines()) == ["ours", "raw", "| not ours"]
