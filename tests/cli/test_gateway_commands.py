"""`noizu-mcp run --config`: a gateway over the servers of a file."""

import json

import pytest

from noizu_mcp import connect
from noizu_mcp.cli import _serve, _target
from noizu_mcp.cli._target import open_server


@pytest.fixture
def config(folder):
    """A file with one working server, and one that cannot start."""
    servers = {"my demo": "demo.py:Demo", "off": {"command": "no-such-command"}}
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


@pytest.fixture
def served(monkeypatch):
    """Do not serve; record what would be served."""
    kept = []
    monkeypatch.setattr(_serve, "run_http", lambda front, *_, **__: kept.append(front))
    monkeypatch.setattr(_target, "run_stdio", lambda make: kept.append(make()))
    return kept


@pytest.mark.parametrize("words", [(), ("--http",)])
async def test_a_gateway(run, served, config, words):
    """Without its own server it has the tools of the others, with prefixes."""
    assert run("run", "--config", config, *words) == (0, "", "")
    (server,) = served
    assert server.options.name == "gateway"
    async with connect(server) as client:
        names = [tool.name for tool in await client.list_tools()]
    assert names
    assert all(name.startswith("my_demo_") for name in names)


async def test_a_server_in_front(config):
    """A named server has these tools in addition to its own."""
    server = open_server("demo.py:Demo", config)
    assert server.options.name == "demo"
    async with connect(server) as client:
        names = {tool.name for tool in await client.list_tools()}
    own = {name for name in names if not name.startswith("my_demo_")}
    assert {f"my_demo_{name}" for name in own} == names - own


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "run needs a server, module:Server or path/to/file.py:Server, or --config FILE"),
        (("--config", "nothing.json"), "cannot read nothing.json: No such file or directory"),
        (("--config", "demo.py"), "demo.py is no JSON"),
        (("--config", "empty.json"), "empty.json names no servers, or all of them are disabled"),
        (("demo.py:Demo", "--reload", "--config", "x"), "--reload starts one server again"),
    ],
)
def test_wrong_words(run, folder, words, text):
    """Wrong arguments are reported, and nothing is served."""
    (folder / "empty.json").write_text('{"mcpServers": {"x": {"disabled": true}}}')
    status, out, err = run("run", *words)
    assert (status, out) == (2, "")
    assert text in err
