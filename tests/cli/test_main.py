"""The commands, from their arguments to their exit status."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import noizu_mcp
from noizu_mcp.cli import _main, _target, main
from noizu_mcp.cli._commands import KINDS
from noizu_mcp.types import ToolDefinition

_CLOSED = "the connection ended before server/discover was answered"
ROOT = str(Path(noizu_mcp.__file__).parents[1])
SERVE = f"import sys; sys.path.insert(0, {ROOT!r}); import demo; demo.Demo().run()"
HIDDEN = "noizu-mcp: 1 more is hidden\n"
COMMAND = ("--", sys.executable, "-c", SERVE)


def test_the_package_is_a_program():
    """`python -m noizu_mcp` is the command."""
    command = [sys.executable, "-m", "noizu_mcp", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(noizu_mcp.__version__)


def test_list(run):
    """The table has each tool, its arguments, and the first line of its description."""
    status, out, err = run("list", "demo.py:Demo")
    assert (status, err) == (0, HIDDEN)
    lines = out.splitlines()
    assert lines[0].split() == ["NAME", "ARGUMENTS", "DESCRIPTION"]
    assert lines[1].split(maxsplit=3) == ["echo", "message", "[times]", "Say it again."]
    assert "secret" not in out


def test_hidden_components_are_counted(run, folder):
    """Hidden components of a server in this process are counted; other servers do not tell."""
    assert run("list", "demo.py", "--prompts")[2] == ""
    assert run("list", "demo.py", "--json")[2] == ""
    assert run("list", *COMMAND)[2] == ""
    (folder / "gate.py").write_text(
        "from noizu_mcp import Server, mcp, Toolkit\n"
        "class Kit(Toolkit):\n"
        "    @mcp(hidden=True)\n"
        "    def a(self):\n        'A'\n"
        "    @mcp(hidden=True)\n"
        "    def b(self):\n        'B'\n"
        "class Gate(Server, name='gate', version='1'):\n"
        "    tools = [Kit]\n"
        "    {override}\n"
    )
    text = (folder / "gate.py").read_text()
    (folder / "gate.py").write_text(text.format(override="pass"))
    closed = "the server lists no tools\n"
    assert run("list", "gate.py") == (0, closed, "noizu-mcp: 2 more are hidden\n")
    shown = "async def list_tools(self, cursor, ctx):\n"
    shown += "        return self.registry.list_tools(cursor, include_hidden=True)"
    (folder / "open.py").write_text(text.format(override=shown))
    status, out, err = run("list", "open.py")
    assert (status, err, len(out.splitlines())) == (0, "", 3)


def test_without_words(run):
    """Without arguments the help goes to stderr, with the status of wrong usage."""
    status, out, err = run()
    assert (status, out) == (2, "")
    assert err == run("--help")[1]


def test_list_as_json(run):
    """`--json` prints the definitions in wire form."""
    status, out, _ = run("list", "demo.py:Demo", "--json")
    assert status == 0
    assert json.loads(out)[0]["inputSchema"]["required"] == ["message"]


def test_list_of_a_server_that_writes_null(run, monkeypatch):
    """An invalid schema affects its own column, not the list."""
    schema = {"type": "object", "properties": None, "required": None}
    tool = ToolDefinition("odd", description="Odd", input_schema=schema)

    async def list_tools(_):
        return [tool]

    monkeypatch.setitem(KINDS, "tools", KINDS["tools"]._replace(fetch=list_tools))
    status, out, err = run("list", "demo.py:Demo")
    assert (status, err) == (0, HIDDEN)
    assert out.splitlines()[1].split() == ["odd", "Odd"]


def test_call(run):
    """Arguments are read by the schema; options may be between them."""
    words = ("call", "demo.py:Demo", "echo", "message=1", "--debug", "times=2")
    assert run(*words) == (0, "11\n", "")
    assert run("call", "demo.py", "echo", "--args", '{"message": "x"}') == (0, "x\n", "")
    assert run("call", "demo.py", "secret") == (0, "found\n", "")


def test_call_as_json(run):
    """`--json` prints the result."""
    status, out, _ = run("call", "demo.py", "kinds", "--json")
    assert status == 0
    assert [block["type"] for block in json.loads(out)["content"]] == ["text", "image"]


def test_a_command_behind_two_dashes(run):
    """Any command that serves on stdio can be used."""
    assert run("call", "echo", "message=hi", *COMMAND) == (0, "hi\n", "")
    status, out, _ = run("list", "--json", *COMMAND)
    assert (status, json.loads(out)[0]["name"]) == (0, "echo")


def test_one_revision_and_every_message(run):
    """`--protocol` pins the revision, and `--trace` shows the messages."""
    words = ("call", "demo.py", "kinds", "--protocol", "2025-03-26", "--trace", "--timeout", "9")
    status, _, err = run(*words)
    assert status == 0
    assert '--> {"jsonrpc":"2.0","id":1,"method":"initialize"' in err
    assert '<-- {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"' in err


@pytest.mark.parametrize(
    ("tool", "stderr"),
    [
        ("refuse", "not\ntoday\n"),
        (
            "crash",
            "noizu-mcp: demo.Kit.crash failed: LookupError: details\nTool execution failed\n",
        ),
        ("error", "noizu-mcp: first\\u{A}second (-32602)\n"),
    ],
)
def test_a_tool_that_fails(run, tool, stderr):
    """The text of a failed tool goes to stderr, and the status is 1."""
    assert run("call", "demo.py", tool) == (1, "", stderr)
    # The module is imported a second time, so it needs another name.
    status, out, err = run("call", "demo.py", tool, "x=1")
    assert (status, out, err.replace("demo_", "demo")) == (1, "", stderr)


FAILING = """
from noizu_mcp import McpError, Server

class Failing(Server, name="failing", version="1"):
    async def list_tools(self, cursor, ctx):
        {listing}

    async def call_tool(self, name, args, ctx):
        raise McpError({code}, "nothing behind it")
"""


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("code", [-32601, -32602])
def test_a_tool_that_is_listed_is_there(run, folder, code, protocol):
    """Its error is reported, with any code, and the list is requested once."""
    listing = "return [{'name': 'far', 'inputSchema': {'type': 'object'}}]"
    (folder / "failing.py").write_text(FAILING.format(code=code, listing=listing))
    words = ("call", "failing.py", "--trace", "--protocol", protocol)
    status, out, err = run(*words, "far", "x=1")
    assert (status, out, err.splitlines()[-1]) == (
        1,
        "",
        f"noizu-mcp: nothing behind it ({code})",
    )
    assert err.count('"method":"tools/list"') == 1
    assert "noizu-mcp: no tool fa; did you mean far?\n" in run(*words, "fa", "x=1")[2]


@pytest.mark.parametrize(
    ("code", "told"),
    [(-32601, "the server has no tools"), (-32602, "nothing behind it (-32602)")],
)
def test_a_server_that_lists_no_tools(run, folder, code, told):
    """An unknown method means no tools; otherwise the error of the call is reported."""
    listing = "raise McpError(-32601, 'Method not found')"
    (folder / "failing.py").write_text(FAILING.format(code=code, listing=listing))
    assert run("call", "failing.py", "far") == (1, "", f"noizu-mcp: {told}\n")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            "{'requiredCapabilities': {'sampling': {'tools': {}}, 'roots': {}}}",
            ": sampling.tools, roots",
        ),
        ("{'requiredCapabilities': {}}", ""),
        ("{'requiredCapabilities': ['x']}", ""),
        ("{'requiredCapabilities': {'sampling': 3}}", ": sampling"),
        ("'x'", ""),
        ("None", ""),
    ],
)
def test_a_capability_that_is_missing(run, folder, data, told):
    """The error names the capability."""
    (folder / "needy.py").write_text(
        "from noizu_mcp import McpError, Server\n"
        "class Needy(Server, name='needy', version='1'):\n"
        "    async def call_tool(self, name, args, ctx):\n"
        f"        raise McpError(-32021, 'Missing required client capability', {data})\n"
    )
    told = f"noizu-mcp: Missing required client capability{told} (-32021)\n"
    assert run("call", "needy.py", "x") == (1, "", told)


def test_an_unknown_tool(run):
    """The nearest name is suggested; without one, all names."""
    hint = "noizu-mcp: no tool ehco; did you mean echo?\n"
    assert run("call", "demo.py", "ehco") == (2, "", hint)
    assert run("call", "demo.py", "ehco", "message=1") == (2, "", hint)
    assert run("call", "demo.py", "zzzz")[2].startswith(
        "noizu-mcp: no tool zzzz; there are: echo, "
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--",), "give the command of a server after --"),
        (("--x",), "the following arguments are required: COMMAND; see noizu-mcp --help"),
        (("list",), "the following arguments are required: SERVER; see noizu-mcp list --help"),
        (("list", "demo.py", "more"), "unrecognized arguments: more; see noizu-mcp --help"),
        (("call", "demo.py", "echo", "-x"), "unrecognized arguments: -x; see noizu-mcp --help"),
        (("call", "demo.py", "echo", "x"), "write arguments as name=value, not 'x'"),
        (("list", "--"), "give the command of a server after --"),
        (("run", "--", "cat"), "run serves module:Server; a command serves itself"),
        (("run", "nosuch.py"), "no such file: nosuch.py"),
        (("list", "x", "--timeout", "0"), "argument --timeout: must be seconds above 0, got '0'"),
        (("list", "x", "--timeout", "a"), "argument --timeout: must be seconds above 0, got 'a'"),
    ],
)
def test_what_is_asked_wrongly(run, monkeypatch, words, message):
    """One line says what is wrong, and the status is 2."""
    monkeypatch.setattr(_target, "run_stdio", lambda load: load())
    if words == ("run", "--", "cat"):
        words = ("run", "demo.py", "--", "cat")
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith(f"noizu-mcp: {message}")
    assert err.count("\n") == 1


def test_every_problem_of_a_definition_has_its_line(run, folder):
    """Every problem of an invalid class is reported in its own line."""
    (folder / "bad.py").write_text(
        "from noizu_mcp import Server\nclass Bad(Server, bogus=1, name=5): pass\n"
    )
    status, _, err = run("list", "bad.py")
    assert status == 1
    assert err.count("\n") == err.count("noizu-mcp: bad.py:2: Bad") == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("list", "--", "no-such-command"), "command not found: no-such-command"),
        (
            ("list", "--", "/bin/sh", "-c", "exit 3"),
            f"{_CLOSED}: /bin/sh exited with status 3",
        ),
    ],
)
def test_a_server_that_cannot_be_used(run, words, message):
    """One line has the command and its failure."""
    assert run(*words) == (1, "", f"noizu-mcp: {message}\n")


def test_debugging(run):
    """`--debug` prints the traceback, too."""
    status, _, err = run("call", "demo.py", "error", "--debug")
    assert status == 1
    assert err.startswith("  Traceback ")
    assert err.endswith("\nnoizu-mcp: first\\u{A}second (-32602)\n")
    _, _, err = run("call", "demo.py", "crash", "--debug")
    assert "noizu-mcp: demo.Kit.crash" not in err
    # After two dashes it is an argument of the server.
    assert "Traceback" not in run("list", "--", "false", "--debug")[2]


@pytest.mark.parametrize(
    "words",
    [
        (),
        *[("run",), ("list",), ("describe",), ("call",), ("read",), ("prompt",), ("complete",)],
    ],
)
def test_help(run, words):
    """Every command has a help, with status 0."""
    status, out, err = run(*words, "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"usage: {' '.join(('noizu-mcp', *words))} ")
    assert "Exit status: 0 done" in out
    assert "SUPPRESS" not in out


def test_version(run):
    """`--version` prints the version."""
    assert run("--version") == (0, f"noizu-mcp {noizu_mcp.__version__}\n", "")


@pytest.mark.parametrize("words", [("run", "demo.py"), ("run", "--debug", "demo.py:Demo")])
def test_run(run, monkeypatch, words):
    """`run` serves its target, with or without options."""
    served = []
    monkeypatch.setattr(_target, "run_stdio", lambda load: served.append(load().options.name))
    assert run(*words) == (0, "", "")
    assert served == ["demo"]


def test_run_on_a_terminal(run, monkeypatch):
    """A server that is started on a terminal prints that it waits for a client."""
    monkeypatch.setattr(_target, "run_stdio", lambda load: None)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    status, out, err = run("run", "demo.py")
    assert (status, out) == (0, "")
    assert err.startswith("noizu-mcp: serving on this terminal")


@pytest.mark.parametrize(
    ("error", "status", "stderr"),
    [
        (KeyboardInterrupt(), 130, ""),
        (BaseExceptionGroup("", [KeyboardInterrupt()]), 130, ""),
        (LookupError("a\nb"), 1, "noizu-mcp: LookupError: a\\u{A}b (--debug shows where)\n"),
        (ExceptionGroup("two", [ValueError(), ValueError()]), 1, "noizu-mcp: ExceptionGroup: two"),
    ],
)
def test_no_failure_shows_a_traceback(run, monkeypatch, error, status, stderr):
    """Each failure has a status and at most one line."""

    def fail(_):
        raise error

    monkeypatch.setattr(_main, "run", fail)
    found = run("run", "demo.py")
    assert found[:2] == (status, "")
    assert found[2].startswith(stderr)


def test_other_ends_of_the_program_pass(monkeypatch):
    """Other exceptions, neither a failure nor an interruption, are raised."""

    def fail(_):
        raise GeneratorExit

    monkeypatch.setattr(_main, "run", fail)
    with pytest.raises(GeneratorExit):
        main(["run", "demo.py"])


def test_a_reader_that_is_gone(folder, monkeypatch):
    """`noizu-mcp list … | head` ends silently, and so does the interpreter."""
    out, stdout = os.pipe()
    os.close(out)
    saved = os.dup(1)
    try:
        os.dup2(stdout, 1)
        with os.fdopen(1, "w", closefd=False) as text:
            monkeypatch.setattr(sys, "stdout", text)
            assert main(["list", "demo.py"]) == 1
            text.flush()
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(stdout)


def test_without_stdout_and_stderr(folder, monkeypatch):
    """A program without stdout and stderr prints nothing."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(os, "fdopen", lambda *_, **__: io.StringIO())
    assert main(["list", "demo.py"]) == 0
    assert main(["list"]) == 2


BIG = """
from noizu_mcp import Server, Toolkit, mcp

class Kit(Toolkit):
    @mcp
    def text(self, n: int) -> str:
        return "x" * n

    @mcp
    def numbers(self, n: int) -> list[int]:
        return [1] * n

class Big(Server, name="big", version="1"):
    tools = [Kit]
"""


@pytest.mark.parametrize(
    ("size", "largest"), [("1000", 1000), ("1k", 1024), ("1KiB", 1024), ("32M", 2**25)]
)
def test_a_size(run, folder, size, largest):
    """The largest message is given in bytes, or with a unit."""
    (folder / "big.py").write_text(BIG)
    words = ("call", "big.py", "text", "--max-message", size)
    assert run(*words, "n=100")[0] == 0
    told = f"noizu-mcp: Message over {largest} bytes; --max-message SIZE allows more (-32600)\n"
    assert run(*words, f"n={largest}") == (1, "", told)


def test_a_large_result(run, folder):
    """The error names the option, with which the result is printed."""
    (folder / "big.py").write_text(BIG)
    words = ("call", "big.py", "numbers", "n=510000")
    told = "noizu-mcp: Parse error: more than 500000 values; --max-message SIZE allows more"
    assert run(*words)[2].startswith(told)
    status, out, _ = run(*words, "--max-message", "32M")
    assert (status, out.count("1")) == (0, 510000)


@pytest.mark.parametrize("size", ["0", "5x", "1.5M", "", "-1", "٣"])
def test_no_size(run, size):
    """Other values are refused."""
    status, _, err = run("list", "demo.py", f"--max-message={size}")
    told = f"noizu-mcp: argument --max-message: must be bytes, like 64M or 67108864, got {size!r}"
    assert (status, err.startswith(told)) == (2, True)
