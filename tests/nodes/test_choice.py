"""The backend of a server: where it is written, and what a start without it says."""

import pytest

from noizu_mcp import DefinitionError, Server
from noizu_mcp.backends import Memory
from noizu_mcp.cli import main
from noizu_mcp.transports.http import HttpOptions

from ..kit.servers import Small
from ..transports.http.wire import serving

WRONG = [
    (7, "must be a URL like redis://127.0.0.1:6379/0, or a Backend"),
    ("http://example.com", "redis://, rediss:// or unix://"),
]


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """No variable of the environment has an effect."""
    monkeypatch.delenv("NOIZU_MCP_BACKEND", raising=False)
    monkeypatch.delenv("NOIZU_MCP_STATE_KEYS", raising=False)


@pytest.mark.parametrize(("value", "text"), WRONG)
def test_a_wrong_backend_is_refused_where_it_is_written(value, text):
    """In the class statement, and among the options of serving."""
    with pytest.raises(DefinitionError, match=text):

        class Shop(Server, name="shop", version="1", backend=value):
            pass

    with pytest.raises(ValueError, match=f"backend: .*{text}"):
        HttpOptions(backend=value)


async def test_what_is_nearer_to_serving_takes_precedence(autojump_clock, monkeypatch):
    """The keyword, then the class, then the environment; an empty text is no backend."""
    monkeypatch.setenv("NOIZU_MCP_BACKEND", "redis://127.0.0.1:1")
    one, two = Memory(), Memory()

    class Shop(Server, name="shop", version="1", backend=one):
        pass

    async def of(server, **options):
        async with serving(server, **options) as wire:
            node = wire.endpoint.app.running.node
            return None if node is None else node.backend

    assert await of(Shop()) is one
    assert await of(Shop(), backend=two) is two
    assert await of(Shop(), backend="") is None
    monkeypatch.setenv("NOIZU_MCP_BACKEND", "")
    assert await of(Small()) is None


APP = """
from noizu_mcp import Server

class Small(Server, name="small", version="1"):
    pass

if __name__ == "__main__":
    Small().run_http(port=0)
"""


def started(tmp_path, capfd, *words):
    """Start a server that cannot start; return the one line that it writes."""
    file = tmp_path / "small_app.py"
    file.write_text(APP)
    assert main(["run", str(file), "--http", "--port", "0", *words]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("noizu-mcp: ")
    return line


def test_a_start_without_keys_says_which_variable_to_set(tmp_path, capfd):
    """Before anything connects."""
    line = started(tmp_path, capfd, "--backend", "redis://:secret@127.0.0.1:1")
    assert "NOIZU_MCP_STATE_KEYS" in line
    assert "secret" not in line


def test_a_wrong_url_in_the_environment_names_the_variable(tmp_path, capfd, monkeypatch):
    """It is one line."""
    monkeypatch.setenv("NOIZU_MCP_BACKEND", "http://example.com")
    assert "NOIZU_MCP_BACKEND: the URL of a backend begins with" in started(tmp_path, capfd)


def test_run_http_ends_with_the_same_line(monkeypatch):
    """As a program of the author."""
    with pytest.raises(SystemExit, match=r"noizu-mcp: .*NOIZU_MCP_STATE_KEYS"):
        Small().run_http(port=0, backend="redis://127.0.0.1:1")
