"""Targets of `connect`: strings, files and mappings that name a server."""

import json
import sys
from pathlib import Path

import pytest

from noizu_mcp import Http, Server, Stdio, TransportError, connect
from noizu_mcp.client import read_entry, read_servers, read_target

APP = """
from noizu_mcp import Server

def {name}() -> str:
    return "{name}"

class Docs(Server, name="{name}", version="1"):
    tools = [{name}]
"""


class Demo(Server, name="demo", version="1"):
    """A server in memory."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to an empty current folder; modules that a test imports from it are forgotten."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write_app(path, name):
    path.parent.mkdir(exist_ok=True)
    path.write_text(APP.format(name=name))


def write(path, document):
    path.write_text(json.dumps(document))
    return str(path)


async def name_of(target):
    async with connect(target) as client:
        return client.server_info.name


# Code


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("one_app.py", "one_app.py"),
        ("one_app.py", "one_app.py:Docs"),
        ("one_app.py", Path("one_app.py")),
        ("one_app.py", "one_app"),
        ("one_app.py", "one_app:Docs"),
        ("folder_of_apps/one.py", "folder_of_apps.one:Docs"),
        ("with blank/one.py", "with blank/one.py:Docs"),
    ],
)
async def test_code_is_served_in_memory(folder, file, target):
    """A file or a module names a server as on the command line, and is served in memory."""
    write_app(folder / file, "one")
    async with connect(target) as client:
        assert client.server_info.name == "one"
        assert (await client.call_tool("one")).content[0].text == "one"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nosuch.py", "^no such file: nosuch.py$"),
        ("nosuch_module:A", "^no module nosuch_module; a file is given as path.py$"),
        ("one_app.py:Doc", r"^one_app.py: no Doc; did you mean Docs\?$"),
        ("broken.py", r"^cannot import broken.py: ZeroDivisionError: .* \(broken.py:1\)$"),
        ("wrong.py", r"^wrong.py:2: Docs.bogus: unknown option"),
        ("localhost:8000/mcp", "^cannot connect to 'localhost:8000/mcp': give http://"),
        ("npx -y server", r"a command is Stdio\('program', 'word'\)$"),
        ("", "^cannot connect to ''"),
        (5, "^cannot connect to 5: give a Server"),
    ],
)
async def test_what_is_no_server(folder, target, message):
    """One exception says what is wrong with a string, and what to write."""
    write_app(folder / "one_app.py", "one")
    (folder / "broken.py").write_text("1 / 0\n")
    wrong = "from noizu_mcp import Server\nclass Docs(Server, name='x', version='1', bogus=1): ..."
    (folder / "wrong.py").write_text(wrong)
    with pytest.raises(TransportError, match=message):
        await name_of(target)


# Entries


@pytest.mark.slow
async def test_an_entry_is_a_target(folder):
    """`connect` accepts an entry of one server, alone or as the only one of a configuration."""
    write_app(folder / "app.py", "started")
    args = ["-m", "noizu_mcp", "run", "app.py"]
    entry = {"command": sys.executable, "args": args, "type": "stdio", "cwd": str(folder)}
    assert await name_of(entry) == "started"
    assert await name_of({"mcpServers": {"one": entry}}) == "started"


def test_one_entry_in_three_forms():
    """The entry alone, by its name, and under `mcpServers` is the same target."""
    entry = {"command": "cat", "args": ["-u"]}
    forms = (entry, {"cat": entry}, {"mcpServers": {"cat": entry}, "inputs": []})
    assert [shape(read_target(each)) for each in forms] == [("cat", ("-u",), {}, None)] * 3


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "cat"}, Stdio("cat")),
        ({"command": "cat", "args": ("-u",)}, Stdio("cat", "-u")),
        (
            {"command": "a", "args": ["b"], "env": {"C": "d"}, "cwd": "/e", "type": "stdio"},
            Stdio("a", "b", env={"C": "d"}, cwd="/e"),
        ),
        ({"command": "cat", "type": "local", "alwaysAllow": ["${x y}"]}, Stdio("cat")),
        ({"url": "http://x/mcp"}, Http("http://x/mcp")),
        (
            {"url": "https://x", "headers": {"A": "b"}, "type": "http"},
            Http("https://x", headers={"A": "b"}),
        ),
        ({"url": "https://x", "type": "streamable-http"}, Http("https://x")),
        ("https://x", Http("https://x")),
        (Demo, Demo),
    ],
)
def test_what_an_entry_stands_for(entry, expected):
    """Commands and URLs are read as hosts write them; options of one host are ignored."""
    found = read_entry(entry, "x")

    if isinstance(expected, Stdio):
        assert shape(expected) == shape(found)
    elif isinstance(expected, Http):
        assert (expected.url, expected.headers or {}) == (found.url, found.headers or {})
    else:
        assert expected is found


def shape(target):
    return (target.command, target.args, target.env, target.cwd)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "^x: an entry has a command, or a url, and not both$"),
        ({"command": "a", "url": "http://b"}, "and not both$"),
        ({"url": "http://x", "type": "sse"}, '^x: type "sse" is the transport of 2024-11-05'),
        ({"url": "http://x", "type": "ws"}, "^x: type must be \"http\" with a url, not 'ws'$"),
        ({"command": "a", "type": "http"}, '^x: type must be "stdio" with a command'),
        ({"command": 5}, "^x: command must be text, got 5$"),
        ({"command": "a", "args": "b"}, "^x: args must be a list, not 'b'$"),
        ({"command": "a", "args": ["-p", 80]}, "^x: args must be text, got 80$"),
        ({"command": "a", "cwd": 5}, "^x: cwd must be text, got 5$"),
        ({"command": "a", "env": ["b"]}, "^x: env must be an object$"),
        ({"command": "a", "env": {"PORT": 80}}, r"^x: env\['PORT'\] must be text, got 80$"),
        ({"command": "a", "envFile": ".env"}, "^x: envFile is not read"),
        ({"url": "x"}, "^x: a URL must begin with http://"),
        ({"url": "http://x", "headers": {"A": 1}}, "^x: headers must map strings to strings"),
    ],
)
def test_an_entry_that_is_malformed(entry, message):
    """The error has the name of the entry, and what is expected."""
    with pytest.raises(TransportError, match=message):
        read_entry(entry, "x")


def test_variables_are_filled_in(monkeypatch):
    """The forms of Claude Code, VS Code and Cursor are replaced in every string of an entry."""
    monkeypatch.setenv("MCP_TEST", "v")
    monkeypatch.setenv("MCP_EMPTY", "")
    monkeypatch.delenv("MCP_UNSET", raising=False)
    found = read_entry(
        {
            "command": "${MCP_TEST}",
            "args": ["-${env:MCP_TEST}-", "${MCP_UNSET:-a:-b}", "$MCP_TEST ${", "${MCP_EMPTY:-x}"],
            "env": {"${MCP_TEST}": "${MCP_TEST}${MCP_TEST}"},
            "cwd": "/${MCP_UNSET:-}",
        },
        "x",
    )
    args = ("-v-", "a:-b", "$MCP_TEST ${", "")
    assert shape(found) == ("v", args, {"${MCP_TEST}": "vv"}, "/")
    remote = read_entry(
        {"url": "http://${MCP_TEST}/", "headers": {"Authorization": "Bearer ${MCP_TEST}"}}, "x"
    )
    assert (remote.url, remote.headers) == ("http://v/", {"Authorization": "Bearer v"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${MCP_UNSET}", "^x: the environment variable MCP_UNSET is not set$"),
        ("${input:token}", r"^x: \$\{input:token\} is not known here; write \$\{VAR\} or"),
        ("${}", r"^x: \$\{\} is not known here"),
    ],
)
def test_a_variable_without_a_value(monkeypatch, text, message):
    """A variable without a value is an error, and its text is not sent to a server."""
    monkeypatch.delenv("MCP_UNSET", raising=False)
    with pytest.raises(TransportError, match=message):
        read_entry({"command": "a", "env": {"KEY": text}}, "x")


# Files


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
async def test_a_file_of_a_host(folder, key):
    """Its only server is used, or the one behind `#`; both keys of hosts are known."""
    write_app(folder / "app.py", "app")
    entry = {"command": sys.executable, "args": ["-m", "noizu_mcp", "run", "app.py"]}
    one = write(folder / "one.json", {key: {"a": entry, "off": {**entry, "disabled": True}}})
    two = write(folder / "two.json", {key: {"a": {"url": "http://x"}, "b b": entry}, "inputs": []})
    assert shape(read_target(one)) == shape(read_target(f"{one}#a")) == shape(read_entry(entry, ""))
    assert await name_of(Path(f"{two}#b b")) == "app"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no.json", "^cannot read no.json: No such file or directory$"),
        ("text.json", "^text.json is no JSON: "),
        ("list.json", "^list.json must hold an object$"),
        ("other.json", "^other.json has no member mcpServers$"),
        ("servers.json", "^servers.json: servers must be an object, not 5$"),
        ("none.json", "^none.json has no servers$"),
        ("one.json", "^one.json is the entry of one server; write {'name': {…}}$"),
        (
            "two.json",
            "^two.json has several servers: alpha, beta; write two.json#NAME for one of them, or c",
        ),
        ("two.json#alhpa", r"^two.json has no server alhpa; did you mean alpha\?$"),
        ("two.json#beta", "^two.json: beta: an entry has a command, or a url"),
        ({"a": Demo, "b": Demo}, "^the configuration has several servers: a, b; give the entry of"),
        ({"mcpServers": {}}, "^the configuration has no servers$"),
        ({"mcpServers": {"a": {}}}, "^the configuration: an entry has a command"),
    ],
)
async def test_a_file_that_names_no_server(folder, target, message):
    """The error has the name of the file, and its servers."""
    (folder / "text.json").write_text("{")
    write(folder / "list.json", [])
    write(folder / "other.json", {"x": {}})
    write(folder / "servers.json", {"servers": 5})
    write(folder / "none.json", {"mcpServers": {}})
    write(folder / "one.json", {"mcpServers": {"command": "cat"}})
    write(folder / "two.json", {"mcpServers": {"alpha": {"url": "http://x"}, "beta": {}}})
    with pytest.raises(TransportError, match=message):
        await name_of(target)


async def test_a_mapping_of_targets():
    """A mapping of one name to a target is that target; errors of it are raised unchanged."""
    assert await name_of({"demo": Demo}) == "demo"
    assert list(read_servers({"a": Demo, "b": Demo()})) == ["a", "b"]
    with pytest.raises(ValueError, match="must begin with http"):
        await name_of({"demo": "ftp://x"})
