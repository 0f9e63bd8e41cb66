"""What the tests of the command line share."""

import sys

import pytest

from noizu_mcp.cli import main

SERVER = '''
from noizu_mcp import Content, McpError, Server, ToolError, Toolkit, fields as f, mcp

class Kit(Toolkit):
    @mcp(input={"message": f.string(required=True), "times": f.integer(default=1)})
    def echo(self, args):
        """Say it again.

        And again.
        """
        return args.message * args.times

    @mcp
    def kinds(self):
        return [Content.text("one"), Content.image(b"\\0\\1", "image/png")]

    @mcp
    def refuse(self):
        raise ToolError("not\\ntoday")

    @mcp
    def crash(self):
        raise LookupError("details")

    @mcp
    def error(self):
        raise McpError(-32602, "first\\nsecond")

    @mcp(hidden=True)
    def secret(self):
        return "found"

class Demo(Server, name="demo", version="1"):
    tools = [Kit]
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with `demo.py` in it."""
    (tmp_path / "demo.py").write_text(SERVER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run(folder, capsys):
    """Run a command; returns its status, stdout and stderr."""

    def run(*words):
        status = main(words)
        out = capsys.readouterr()
        return status, out.out, out.err

    return run
