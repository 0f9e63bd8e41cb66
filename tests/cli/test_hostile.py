"""No server can control the terminal, or forge a line of the program."""

import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

HOSTILE = str(Path(__file__).with_name("hostile.py"))
ERAS = [(), ("modern",)]
#: Categories of characters that control, are not assigned, or show nothing.
UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")

COMMANDS = {
    "list": ("list", "--all"),
    "describe": ("describe", "tool"),
    "describe a resource": ("describe", "x://y"),
    "describe a prompt": ("describe", "prompt"),
    "describe nothing": ("describe", "toll"),
    "call": ("call", "tool"),
    "call a tool that fails": ("call", "fail"),
    "call a tool with an error": ("call", "error"),
    "call a tool that asks": ("call", "ask"),
    "call a tool with a wrong answer": ("call", "ask", "--answers", "{}"),
    "call a tool with too few answers": ("call", "ask", "--answers", "[]"),
    "call a tool that exits": ("call", "exit"),
    "call a tool that breaks the protocol": ("call", "broken"),
    "call nothing": ("call", "toll"),
    "call with a trace": ("call", "tool", "--trace"),
    "call with a log": ("call", "tool", "--log-level", "debug"),
    "call with a traceback": ("call", "error", "--debug"),
    "read": ("read", "x://y"),
    "prompt": ("prompt", "prompt", "word=a"),
    "complete": ("complete", "prompt", "word", "a"),
    "doctor": ("doctor", "--timeout", "20", "--call", "tool"),
    "lint": ("lint",),
    "contract write": ("contract", "write", "--file", "new.json"),
    "contract check": ("contract", "check"),
    "fuzz": ("fuzz", "--examples", "1", "--budget", "4", "--timeout", "4"),
}
SLOW = ("doctor", "fuzz")
CONTRACT = {
    "contract": 1,
    "protocol": "2025-11-25",
    "tools": {"tool": {"name": "tool", "description": "", "inputSchema": {"type": "object"}}},
}


def unseen_in(text):
    """List the characters that no command may print."""
    styles = (0xFE00 <= ord(each) <= 0xFE0F or each == "\u3164" for each in text)
    return sorted(
        {
            f"U+{ord(each):04X}"
            for each, is_style in zip(text, styles, strict=True)
            if each not in "\n\t" and (is_style or unicodedata.category(each) in UNSEEN)
        }
    )


@pytest.fixture
def hostile(forked_command, folder):
    """The command that starts the server; the folder has an outdated contract of it."""
    command = forked_command(HOSTILE, "json")
    return lambda era: ("--", *command, *era)


@pytest.fixture
def on_terminal(run, monkeypatch):
    """Run a command whose stdout and stderr look like a terminal."""

    def run_there(*words):
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True)
        return run(*words)

    return run_there


def commands():
    for name, words in COMMANDS.items():
        marks = [pytest.mark.slow] if words[0] in SLOW else []
        for era in ERAS:
            yield pytest.param(words, era, marks=marks, id="-".join((name, *era)))


@pytest.mark.slow
@pytest.mark.parametrize(("words", "era"), list(commands()))
def test_a_terminal(words, era, hostile, on_terminal, folder):
    """Texts of a server are printed with code points instead of such characters."""
    (folder / "contract.json").write_text(json.dumps(CONTRACT))
    _, out, err = on_terminal(*words, *hostile(era))

    assert unseen_in(out) == []
    # The bar returns to the beginning of its line; the arrows of a trace have colours.
    assert unseen_in(re.sub(r"\r|\x1b\[3[26]m(-->|<--)\x1b\[0m", "", err)) == []
    assert "\\u{202E}" in out + err
    if words != ("call", "fail"):  # its text is printed as a text
        assert "\nFORGED" not in err


def json_commands():
    for name, words in COMMANDS.items():
        if "--trace" not in words and "--debug" not in words:
            marks = [pytest.mark.slow] if words[0] in SLOW else []
            yield pytest.param(words, marks=marks, id=name)


@pytest.mark.slow
@pytest.mark.parametrize("words", list(json_commands()))
def test_json(words, hostile, run, folder):
    """JSON remains exact, with escapes instead of such characters."""
    (folder / "contract.json").write_text(json.dumps(CONTRACT))
    _, out, err = run(*words, "--json", *hostile(()))

    assert unseen_in(out) == []
    assert unseen_in(err) == []
    assert "\nFORGED" not in err
    if out and words[0] in ("list", "call", "read", "prompt", "complete"):
        assert "\u202e" in json.dumps(json.loads(out), ensure_ascii=False)


@pytest.mark.parametrize("words", [("prompt", "prompt", "word=a"), ("call", "tool")])
def test_a_pipe(words, hostile, run):
    """Texts that are data are unchanged; everything around them is safe."""
    _, out, err = run(*words, *hostile(()))

    assert out.count("\u202e") == 1
    assert unseen_in(err) == []


@pytest.mark.slow
def test_a_gateway(hostile, folder):
    """The log of a gateway has one line for each record, and marks the output of its servers."""
    _, command, *words = hostile(())
    servers = {"bad": {"command": command, "args": words}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    names = ("tool", "fail", "error", "broken", "exit")
    asked = [
        {
            "id": number,
            "method": "tools/call",
            "params": {"name": f"bad_{name}", "arguments": {}},
        }
        for number, name in enumerate(names, 1)
    ]
    info = {"name": "x", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    messages = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 9, "method": "tools/list"},
        *asked,
    ]
    program = (sys.executable, "-m", "noizu_mcp", "run", "--config", "mcp.json")
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as gateway:
        for message in messages:
            gateway.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            gateway.stdin.flush()
            if "id" in message:
                while json.loads(gateway.stdout.readline()).get("id") != message["id"]:
                    pass
        _, err = gateway.communicate()

    assert unseen_in(err) == []
    assert "| starting \\u{1B}[2J" in err
    assert "\nFORGED" not in err
