"""Fixtures of the tests of the command line: a demo server, and commands in process."""

import json
import sys

import pytest

from noizu_mcp.cli import main

SERVER = '''
from noizu_mcp import (
    Completion, Content, McpError, Prompt, PromptMessage, Resource, ResourceNotFound,
    ResourceTemplate, Schema, Server, ToolError, Toolkit, argument, fields as f, mcp,
)

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

class Config(Resource, uri="config://app", mime_type="application/json"):
    """The configuration.

    All of it.
    """
    def read(self, uri, ctx):
        return '{"é": 1}'

class Logo(Resource, uri="logo://app", mime_type="image/png"):
    def read(self, uri, ctx):
        return b"\\0\\xff"

class Note(ResourceTemplate, uri_template="note://{day}"):
    """The note of a day."""
    def read(self, uri, args, ctx):
        if args.day == "never":
            raise McpError(-32603, "out of ink")
        if args.day == "gone":
            raise ResourceNotFound
        return args.day
    def complete(self, variable, prefix, ctx):
        return [prefix + "1"]

class Review(Prompt):
    """Review code."""
    class Arguments(Schema):
        code: str
        style: str | None = argument(default=None)
    def get(self, args, ctx):
        picture = Content.image(b"\\0\\1", "image/png")
        return [f"Review {args.code}, {args.style}.", PromptMessage.assistant(picture)]
    def complete(self, argument, prefix, ctx):
        found = [ctx.completion_arguments.get("code", "-"), prefix]
        return Completion(found, total=int(prefix or 0) or None, has_more=bool(prefix))

class Demo(Server, name="demo", version="1"):
    tools = [Kit]
    resources = [Config, Logo, Note]
    prompts = [Review]
'''

BARE = """
from noizu_mcp import Server, Tool

class Only(Tool):
    def call(self, args):
        return None

class Bare(Server, name="bare", version="1"):
    tools = [Only]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with `demo.py` and `bare.py` in it."""
    (tmp_path / "demo.py").write_text(SERVER, encoding="utf-8")
    (tmp_path / "bare.py").write_text(BARE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run(folder, capsys):
    """Run a command; return its status, stdout and stderr."""

    def run(*words):
        status = main(words)
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


@pytest.fixture
def tape(folder):
    """Write a cassette of a server of 2026-07-28: it gives each result for the request before."""

    def tape(*exchanges, name="taped.jsonl"):
        about = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        offers = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        lines = [{"cassette": 1}]
        for number, (method, params, result) in enumerate(
            [("server/discover", {}, offers), *exchanges], 1
        ):
            message = {"jsonrpc": "2.0", "id": number}
            lines.append({"sent": {**message, "method": method, "params": params}})
            lines.append({"received": {**message, "result": {**about, **result}}})
        (folder / name).write_text("".join(f"{json.dumps(each)}\n" for each in lines))
        return name

    return tape
