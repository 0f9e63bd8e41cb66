"""`noizu-mcp run --http`: what its words mean, and how it fails."""

import pytest

from noizu_mcp import Server
from noizu_mcp.cli import _serve


@pytest.fixture
def served(monkeypatch):
    """Do not serve; keep what would be served."""
    kept = []
    monkeypatch.setattr(
        Server, "run_http", lambda _, *args, **options: kept.append((args, options))
    )
    return kept


def test_its_defaults(run, served):
    """This machine only, on port 8000."""
    assert run("run", "demo.py:Demo", "--http") == (0, "", "")
    options = {"path": "/mcp", "allowed_hosts": None, "allowed_origins": ()}
    assert served == [(("127.0.0.1", 8000), {**options, "certfile": None, "keyfile": None})]


def test_its_words(run, served):
    """Each goes to `run_http`; those that may be repeated are lists."""
    words = "--http --host ::1 --port 0 --path /x --allow-host a --allow-host b"
    words += " --allow-origin https://c --certfile d --keyfile e"
    assert run("run", "demo.py:Demo", *words.split()) == (0, "", "")
    options = {"path": "/x", "allowed_hosts": ["a", "b"], "allowed_origins": ["https://c"]}
    assert served == [(("::1", 0), {**options, "certfile": "d", "keyfile": "e"})]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--port 80", "--port needs --http; on stdin and stdout it means nothing"),
        ("--allow-host x", "--allow-host needs --http; on stdin and stdout it means nothing"),
        ("--reload", "--reload needs --http; on stdin and stdout it means nothing"),
        ("--http --port 65536", "must be a number from 0 to 65535, got '65536'"),
        ("--http --port ²", "must be a number from 0 to 65535, got '²'"),
    ],
)
def test_wrong_words(run, served, words, text):
    """Said in one line, and nothing is served."""
    status, out, err = run("run", "demo.py:Demo", *words.split())
    assert (status, out, served) == (2, "", [])
    assert text in err


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ImportError("it needs hypercorn"), "it needs hypercorn"),
        (OSError(98, "cannot listen there"), "cannot listen there"),
        (OSError("no number"), "no number"),
        (ValueError("a wrong value"), "a wrong value"),
    ],
)
def test_what_cannot_be_served(run, monkeypatch, error, text):
    """One line says why."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Server, "run_http", fail)
    assert run("run", "demo.py:Demo", "--http") == (1, "", f"noizu-mcp: {text}\n")


def test_reloading_leaves_the_rest_to_another_process(run, served, monkeypatch):
    """It is the same command, without the word."""
    seen = []
    monkeypatch.setattr(_serve, "run_reloading", lambda words: seen.append(words) or 0)
    monkeypatch.setattr("sys.argv", ["noizu-mcp", "run", "x", "--http", "--reload"])
    assert run("run", "demo.py:Demo", "--http", "--reload") == (0, "", "")
    assert (seen, served) == ([["run", "x", "--http"]], [])
