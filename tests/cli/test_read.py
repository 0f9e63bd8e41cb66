"""`list` of everything, `read`, `prompt` and `complete`."""

import json
import sys

import pytest

DEMO = "demo.py:Demo"


@pytest.mark.parametrize(
    ("kind", "header", "row"),
    [
        ("resources", "URI NAME DESCRIPTION", "config://app config://app The configuration."),
        ("templates", "URI TEMPLATE NAME DESCRIPTION", "note://{day} note://{day} The note"),
        ("prompts", "NAME ARGUMENTS DESCRIPTION", "review code [style] Review code."),
    ],
)
def test_list_of_one_kind(run, kind, header, row):
    """Each kind has its table, and its list of definitions."""
    status, out, err = run("list", DEMO, f"--{kind}")
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == header
    assert lines[1].startswith(row)
    assert isinstance(json.loads(run("list", DEMO, f"--{kind}", "--json")[1]), list)


def test_list_of_several_kinds(run):
    """Several tables have headings, and JSON has keys."""
    out = run("list", DEMO, "--prompts", "--templates")[1]
    assert [line for line in out.splitlines() if line.isupper() and " " not in line] == [
        "TEMPLATES",
        "PROMPTS",
    ]
    found = json.loads(run("list", DEMO, "--prompts", "--templates", "--json")[1])
    assert list(found) == ["templates", "prompts"]


def test_list_of_everything(run):
    """`--all` requests only what the server's capabilities include."""
    found = json.loads(run("list", DEMO, "--all", "--json")[1])
    assert {kind: len(each) for kind, each in found.items()} == {
        "tools": 5,
        "resources": 2,
        "templates": 1,
        "prompts": 1,
    }
    assert list(json.loads(run("list", "bare.py", "--all", "--json")[1])) == ["tools"]


def test_read(run):
    """Not on a terminal a resource is written byte for byte."""
    assert run("read", DEMO, "config://app") == (0, '{"é": 1}', "")
    assert run("read", DEMO, "note://today", "--protocol", "2025-06-18") == (0, "today", "")


def test_read_bytes(folder, capfdbinary):
    """Bytes are written unchanged, too."""
    from noizu_mcp.cli import main

    assert main(["read", DEMO, "logo://app"]) == 0
    assert capfdbinary.readouterr().out == b"\0\xff"


def test_read_on_a_terminal(run, monkeypatch):
    """A terminal gets printable text, and no other bytes."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert run("read", DEMO, "config://app") == (0, '{"é": 1}\n', "")
    shown = "(2 bytes of image/png; --output FILE writes them)\n"
    assert run("read", DEMO, "logo://app") == (0, shown, "")


def test_read_as_json(run):
    """`--json` prints the result."""
    (contents,) = json.loads(run("read", DEMO, "logo://app", "--json")[1])["contents"]
    assert contents["blob"] == "AP8="


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_an_unknown_resource(run, version):
    """The nearest URI is suggested."""
    words = ("--protocol", version)
    hint = "noizu-mcp: no resource config://ap; did you mean config://app?\n"
    assert run("read", DEMO, "config://ap", *words) == (2, "", hint)
    assert run("read", DEMO, "note://never", *words)[0] == 1
    # A template has it: no list has more than the server's.
    status, _, err = run("read", DEMO, "note://gone", *words)
    assert (status, "Resource not found" in err, "there are" in err) == (1, True, False)
    assert "there are: config://app, " in run("read", DEMO, "elsewhere://x", *words)[2]


def test_a_resource_of_a_server_without_good_templates(folder, run):
    """If templates cannot be listed or read, other URIs are still suggested."""
    text = (
        "from noizu_mcp import McpError, Server\n"
        "class Odd(Server, name='odd', version='1'):\n"
        "    async def list_resources(self, cursor, ctx):\n"
        "        return [{'uri': 'a://b', 'name': 'b'}]\n"
        "    async def list_resource_templates(self, cursor, ctx):\n"
        "        RESULT\n"
    )
    broken = "return [{'uriTemplate': 'a://{', 'name': 'broken'}]"
    for name, result in (("odd.py", broken), ("odder.py", "raise McpError(-32603, 'no')")):
        (folder / name).write_text(text.replace("RESULT", result))
        told = "noizu-mcp: no resource x://y; there are: a://b\n"
        assert run("read", name, "x://y") == (2, "", told)


def test_prompt(run):
    """Each message has its role above it."""
    status, out, err = run("prompt", DEMO, "review", "code=1", "--debug", "style=a=b")
    assert (status, err) == (0, "")
    assert out == (
        "user:\nReview 1, a=b.\nassistant:\n"
        '{"type": "image", "data": "(4 characters of base64)", "mimeType": "image/png"}\n'
    )


def test_prompt_as_json(run):
    """`--json` prints the result."""
    found = json.loads(run("prompt", DEMO, "review", "code=1", "--json")[1])
    assert found["messages"][0] == {
        "role": "user",
        "content": {"type": "text", "text": "Review 1, None."},
    }


def test_an_unknown_prompt(run):
    """The nearest name is suggested; errors about arguments are reported unchanged."""
    hint = "noizu-mcp: no prompt reviw; did you mean review?\n"
    assert run("prompt", DEMO, "reviw") == (2, "", hint)
    status, out, err = run("prompt", DEMO, "review")
    assert (status, out) == (1, "")
    assert "code" in err


def test_complete(run):
    """Each value is a line; given arguments are sent along."""
    assert run("complete", DEMO, "review", "style") == (0, "-\n\n", "")
    words = ("complete", DEMO, "review", "style", "--context", "code=x", "200")
    assert run(*words) == (0, "x\n200\n", "noizu-mcp: there are more, 200 in all\n")
    assert run("complete", DEMO, "note://{day}", "day", "d") == (0, "d1\n", "")


def test_complete_without_a_total(run):
    """Without a total of the server the number of completions is left out."""
    words = ("complete", DEMO, "review", "style", "0")
    assert run(*words)[2] == "noizu-mcp: there are more\n"


def test_complete_as_json(run):
    """`--json` prints the completion."""
    words = ("complete", DEMO, "review", "style", "7", "--json")
    found = {"values": ["-", "7"], "total": 7, "hasMore": True}
    assert json.loads(run(*words)[1]) == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("complete", DEMO, "review", "style", "a", "b"), "give one prefix, not a b"),
        (("complete", DEMO, "review", "style", "--context", "x"), "write arguments as name=value"),
        (("prompt", DEMO, "review", "x"), "write arguments as name=value, not 'x'"),
        (("read", DEMO), "the following arguments are required: URI"),
    ],
)
def test_what_is_asked_wrongly(run, words, message):
    """One line says what is wrong, and the status is 2."""
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith(f"noizu-mcp: {message}")


@pytest.mark.parametrize(
    ("words", "stderr"),
    [
        (("read", "bare.py", "x://y"), "noizu-mcp: the server has no resources\n"),
        (("prompt", "bare.py", "x"), "noizu-mcp: the server has no prompts\n"),
        (("complete", "bare.py", "x", "y"), "noizu-mcp: the server completes nothing\n"),
    ],
)
def test_a_server_without_any(run, words, stderr):
    """The error says so in words, without a method name."""
    assert run(*words) == (1, "", stderr)


def test_list_of_what_a_server_does_not_have(run):
    """The list is empty, and a text for users says so."""
    assert json.loads(run("list", "bare.py", "--prompts", "--json")[1]) == []
    assert run("list", "bare.py", "--prompts") == (0, "the server lists no prompts\n", "")
    assert run("list", "bare.py", "--resources", "--templates") == (
        0,
        "RESOURCES\nthe server lists no resources\n\nTEMPLATES\nthe server lists no templates\n",
        "",
    )


def test_a_list_that_fails(run, folder):
    """Other errors are reported."""
    (folder / "bad.py").write_text(
        "from noizu_mcp import McpError, Server\n"
        "class Bad(Server, name='bad', version='1'):\n"
        "    async def list_tools(self, cursor, ctx):\n"
        "        raise McpError(-32603, 'no list today')\n"
    )
    assert run("list", "bad.py") == (1, "", "noizu-mcp: no list today (-32603)\n")


def test_an_unknown_completion(run):
    """The nearest prompt or template is suggested; errors about arguments stay unchanged."""
    hint = "noizu-mcp: no prompt reviw; did you mean review?\n"
    assert run("complete", DEMO, "reviw", "style") == (2, "", hint)
    hint = "noizu-mcp: no template note://{dya}; did you mean note://{day}?\n"
    assert run("complete", DEMO, "note://{dya}", "day") == (2, "", hint)
    status, _, err = run("complete", DEMO, "review", "nope")
    assert (status, err) == (1, "noizu-mcp: Unknown prompt argument: nope (-32602)\n")
