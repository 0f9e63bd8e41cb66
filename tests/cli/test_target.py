"""Targets of commands: modules, files, and the server classes in them."""

import json
import os
import re
import sys

import pytest

from noizu_mcp import McpError, Stdio, SyncClient
from noizu_mcp.server import load_server
from noizu_mcp.testing import record


def _load(target):
    return load_server(target).options.name


def test_a_file(folder):
    """A file is found by its path, from any folder, with its servers."""
    assert _load("demo.py:Demo") == "demo"
    assert _load(f"{folder}/demo.py") == "demo"
    (folder / "sub").mkdir()
    (folder / "sub" / "helper.py").write_text("NAME = 'sub'")
    text = "from noizu_mcp import Server\nfrom helper import NAME\n"
    (folder / "sub" / "json.py").write_text(
        f"{text}class A(Server, name=NAME, version='1'): pass\nready = A()\n"
    )
    assert _load("sub/json.py:ready") == "sub"


@pytest.fixture
def cassette(folder):
    """A recorded session of the demo server."""
    with (
        record("demo.jsonl") as tap,
        SyncClient("demo.py", version="2025-06-18", tap=tap) as client,
    ):
        client.list_tools()
        client.call_tool("echo", {"message": "a"})
    return "demo.jsonl"


def test_commands_use_a_cassette(run, cassette):
    """It replays the recording without the server, and reports what was not recorded."""
    assert run("call", cassette, "echo", "message=a") == (0, "a\n", "")
    assert run("list", cassette)[1].startswith("NAME")
    status, _, err = run("call", cassette, "echo", "message=b")
    assert status == 1
    assert "demo.jsonl has no such request: tools/call" in err


def test_a_cassette_is_served(cassette):
    """`run` serves it on stdin and stdout, to any client; answers are repeated."""
    command = Stdio(sys.executable, "-m", "noizu_mcp", "run", cassette, env=dict(os.environ))
    with SyncClient(command) as client:
        assert client.protocol_version == "2025-06-18"
        for _ in range(2):
            assert client.call_tool("echo", {"message": "a"}).content[0].text == "a"
        with pytest.raises(McpError, match="no such request: resources/list"):
            client.list_resources()


def test_a_cassette_that_cannot_be_read(run, folder):
    """One line says whether the file is missing or has another form."""
    (folder / "other.jsonl").write_text("{}\n")
    for words in ("list", "run"):
        status, out, err = run(words, "nosuch.jsonl")
        assert (status, out) == (2, "")
        assert err == "noizu-mcp: cannot read nosuch.jsonl: No such file or directory\n"
        assert run(words, "other.jsonl")[2].startswith("noizu-mcp: other.jsonl is no cassette: its")


def test_a_module(folder):
    """A module is imported from the working directory; servers that it imports can be used."""
    (folder / "pack_of_tests").mkdir()
    (folder / "pack_of_tests" / "__init__.py").write_text("from .inner import One\n")
    (folder / "pack_of_tests" / "inner.py").write_text(
        "from noizu_mcp import Server\n"
        "class Base(Server, abstract=True): pass\n"
        "class One(Base, name='one', version='1'): pass\n"
    )
    assert _load("pack_of_tests") == "one"
    assert _load("pack_of_tests.inner") == "one"
    assert _load("pack_of_tests.inner:One") == "one"


def test_a_module_goes_before_what_it_imports(folder):
    """Its only own server is used, whatever others it imports."""
    text = "from demo import Demo\nclass Own(Demo, name='own', version='1'):\n    tools = []\n"
    (folder / "own.py").write_text(text)
    assert _load("own.py") == "own"


SERVER = "from noizu_mcp import Server\nclass {}(Server, name='{}', version='1'): pass\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (SERVER.format("One", "one") + "app = One()\n", "app one"),
        (SERVER.format("One", "one") + "app = server = One()\n", "app one"),
        (SERVER.format("One", "one") + SERVER.format("Two", "two") + "a = Two()\n", "a two"),
        (SERVER.format("One", "one") + "tools = []\n", "class one"),
        ("from demo import Demo\ntools = []\n", "class x"),
        ("from demo import Demo\n", "class demo"),
        ("from demo import Demo\napp = Demo()\n", "app demo"),
        ("tools = ()\n", "class x"),
    ],
)
def test_what_a_module_serves(folder, text, name):
    """An instance is preferred, then an own class, the list of tools, an imported class."""
    (folder / "x.py").write_text(text)
    server = load_server("x.py")
    # An instance is served itself, and not made again.
    made = "app" if server in vars(sys.modules["x"]).values() else "class"
    assert f"{made} {server.options.name}" in (name, name.replace("a ", "app "))


LISTS = '''
"""Sums and such."""
from noizu_mcp import Prompt, Resource, Tool

def add(a: int, b: int) -> int:
    """Add."""
    return a + b

class Ping(Tool):
    """Ping."""
    def call(self):
        return "pong"

class Info(Resource, uri="info://x"):
    def read(self, uri, ctx):
        return "about"

def greet(name: str) -> str:
    """Say hello."""
    return f"Hello {name}"

tools = [add, Ping, Ping()] [:2]
more: list = [add]
resources = [Info]
prompts = [greet]
'''


def test_a_list_of_tools(run, folder):
    """Functions and classes are served, with the resources and prompts of the module."""
    (folder / "sums.py").write_text(LISTS)
    assert run("call", "sums.py", "add", "a=1", "b=2") == (0, "3\n", "")
    assert run("call", "sums.py", "ping") == (0, "pong\n", "")
    assert run("read", "sums.py", "info://x") == (0, "about", "")
    assert run("prompt", "sums.py", "greet", "name=Ada")[1] == "user:\nHello Ada\n"
    assert run("call", "sums.py:more", "ping")[0] == 2
    assert run("describe", "sums.py", "add")[1].startswith("add: a tool of sums 0\n")


def test_a_list_with_mistakes(run, folder):
    """Each mistake has the line of its function, or of the list."""
    (folder / "bad.py").write_text(
        "def add(a): pass\ntools = [5]\nothers: list = [add, 6]\nprompts = [7]\n"
    )
    status, out, err = run("list", "bad.py")
    assert (status, out) == (1, "")
    first, second = err.splitlines()
    assert first.startswith("noizu-mcp: bad.py:2: bad.tools[0]: 5 is not a tool; ")
    assert second.startswith("noizu-mcp: bad.py:4: bad.prompts[0]: 7 is not a prompt; ")
    err = run("list", "bad.py:others")[2]
    assert "noizu-mcp: bad.py:1: add.a: has no annotation; write a: str" in err
    assert "noizu-mcp: bad.py:3: bad.others[1]: 6 is not a tool; " in err


@pytest.mark.parametrize(
    ("inits", "target", "here", "advice"),
    [
        (["src/pkg"], "src/pkg/rel.py:S", ".", "use pkg.rel:S in the folder src"),
        (["pkg", "pkg/sub"], "pkg/sub/rel.py", ".", "use pkg.sub.rel"),
        (["pkg"], "pkg/rel.py:S", ".", "use pkg.rel:S"),
        ([], "pkg/rel.py:S", ".", "use pkg.rel:S"),
        ([], "../pkg/rel.py:S", "elsewhere", "use pkg.rel:S in the folder {root}"),
    ],
)
def test_a_part_of_a_package(run, folder, monkeypatch, inits, target, here, advice):
    """A relative import needs the package: the error has the right target, which works."""
    for each in inits:
        (folder / each).mkdir(parents=True)
        (folder / each / "__init__.py").touch()
    (folder / "elsewhere").mkdir()
    file = folder / here / target.partition(":")[0]
    file.parent.mkdir(parents=True, exist_ok=True)
    (file.parent / "names.py").write_text("NAME = 'rel'\n")
    file.write_text(f"from .names import NAME\n{SERVER.format('S', 'rel')}")
    monkeypatch.chdir(folder / here)
    status, _, err = run("list", target)
    place = target.partition(":")[0]
    told = f"cannot import {place}: it is a part of a package; {advice.format(root=folder)}"
    assert (status, err) == (1, f"noizu-mcp: {told}\n")
    words = told.partition("use ")[2].split(" in the folder ")
    monkeypatch.chdir(words[1] if words[1:] else ".")
    assert _load(words[0]) == "rel"
    for name in [*sys.modules]:
        if name.partition(".")[0] == "pkg":
            del sys.modules[name]


SCRIPT = """\
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "no-such-distribution>=2",
#
#   "trio",
# ]
# ///
import no_such_module
"""


def test_the_dependencies_of_a_script(run, folder):
    """Missing dependencies are listed, with a command that installs them (PEP 723)."""
    (folder / "x.py").write_text(SCRIPT)
    assert run("list", "x.py:App")[2] == (
        "noizu-mcp: cannot import x.py: the script needs no-such-distribution>=2, not installed "
        "here; start it with: uv run --with 'no-such-distribution>=2' --with trio noizu-mcp run "
        "x.py:App\n"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("no-such-distribution>=2", "attrs"),
        ('"no-such', "no-such"),
        ("dependencies = [", "others = ["),
        ("# dependencies = [", "# dependencies = 3\n# x = ["),
        ("# ///\nimport", "import"),
    ],
)
def test_a_script_that_tells_nothing(run, folder, old, new):
    """Without missing dependencies, or with an invalid block, Python's error is reported."""
    (folder / "x.py").write_text(SCRIPT.replace(old, new))
    assert "ModuleNotFoundError: No module named 'no_such_mod" in run("list", "x.py")[2]


def test_an_invalid_requirement(run, folder):
    """An invalid requirement counts as missing, and is listed unchanged."""
    (folder / "x.py").write_text(SCRIPT.replace("no-such-distribution>=2", "?"))
    assert "the script needs ?, not installed here" in run("list", "x.py")[2]


@pytest.mark.parametrize(
    ("text", "target", "message", "status"),
    [
        ("", "nosuch.py", "^no such file: nosuch.py$", 2),
        ("", "nosuch_module:A", "^no module nosuch_module; a file is given as path.py$", 2),
        ("", "nosuch.inner:A", "^no module nosuch.inner; ", 2),
        ("", "x.py", "^x.py: it has no server: no Server class, no instance of one, ", 2),
        ("", "x.py:A", "^x.py: no A; there are: none$", 2),
        ("A = 5", "x.py:A", "^x.py: A is no server; there are: none$", 2),
        ("{server}", "x.py:Onee", r"^x.py: no Onee; did you mean One\?$", 2),
        ("{server}", "x.py:Z", "^x.py: no Z; there are: One$", 2),
        ("{server}{second}", "x.py", "^x.py: write x.py:NAME with one of One, Two$", 2),
        ("1/0", "x.py", r"^cannot import x.py: ZeroDivisionError: .* \(x.py:1\)$", 1),
        ("import nosuch", "x.py", r"^cannot import x.py: ModuleNotFoundError: .*\(x.py:1\)$", 1),
        ("exit(3)", "x.py", "^cannot import x.py: SystemExit: 3", 1),
        ("(", "x.py", "^cannot import x.py: SyntaxError: ", 1),
        ("{server}{init}", "x.py:One", r"^cannot make One: TypeError: no \(x.py:4\)$", 1),
        ("import nosuch", "needs_more", "^cannot import needs_more: ModuleNotFoundError", 1),
    ],
)
def test_what_cannot_be_served(run, folder, text, target, message, status):
    """The message says what is wrong, where, and what is available."""
    parts = {
        "{server}": "from noizu_mcp import Server\nclass One(Server, name='one', version='1'):\n",
        "{second}": "    pass\nclass Two(Server, name='two', version='1'): pass\n",
        "{init}": "    def __init__(self):\n        raise TypeError('no')\n",
    }
    if text == "{server}":
        text += "    pass\n"
    for name, part in parts.items():
        text = text.replace(name, part)
    (folder / "x.py").write_text(text)
    (folder / "needs_more.py").write_text(text)
    found, _, err = run("list", target)
    assert found == status
    assert re.search(message, err.removeprefix("noizu-mcp: ").rstrip("\n"))


@pytest.mark.slow
def test_a_server_of_a_host(run, folder):
    """The entry of a host's file is used as the host would use it."""
    entry = {"command": sys.executable, "args": ["-m", "noizu_mcp", "run", "demo.py"]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"demo": entry, "x": {"url": "y"}}}))
    assert run("call", "mcp.json#demo", "echo", "message=a") == (0, "a\n", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mcp.json",), "mcp.json has several servers: a, b, c, d; write mcp.json#NAME for one"),
        (("mcp.json#a",), "mcp.json: a: an entry has a command, or a url"),
        (("mcp.json#b",), "a URL must begin with http:// or https://"),
        (("mcp.json#c",), "mcp.json#c: an entry is an object with a command or a url"),
        (("mcp.json#d",), "command not found: no-such-command"),
        (("mcp.json#d", "--header", "a=b"), "--header goes with a URL"),
        (("no.json",), "cannot read no.json: No such file or directory"),
    ],
)
def test_an_unusable_file_of_a_host(run, folder, words, message):
    """One line has the name of the file and the problem in it."""
    servers = {"a": {}, "b": "ftp://x", "c": "demo.py", "d": {"command": "no-such-command"}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    status, out, err = run("list", *words)
    assert (status, out) == (1 if words == ("mcp.json#d",) else 2, "")
    assert err.startswith(f"noizu-mcp: {message}")
    assert err.count("\n") == 1
