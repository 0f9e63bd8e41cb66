"""`noizu-mcp run --http`: its options, and its failures."""

import pytest

from noizu_mcp.cli import _serve
from noizu_mcp.transports.http import HostOptions, HttpLimits, HttpOptions


@pytest.fixture
def served(monkeypatch):
    """Do not serve; record what would be served: where, and how."""
    kept = []
    monkeypatch.setattr(
        _serve, "run_http", lambda _, *args, **options: kept.append((*args, options))
    )
    return kept


def test_its_defaults(run, served):
    """The default is this machine only, on port 8000."""
    assert run("run", "demo.py:Demo", "--http") == (0, "", "")
    options = (HttpOptions(health=True), HostOptions())
    assert served == [("127.0.0.1", 8000, *options, {"server": "noizu", "parent": None})]


def test_its_words(run, served):
    """Each option is passed on; repeatable options are lists."""
    words = "--http --host ::1 --port 0 --path /x --allow-host a --allow-host b"
    words += " --allow-origin https://c --certfile d --keyfile e --seal-sessions"
    words += " --lead 10 --grace 0.5 --parent 7 --server hypercorn --health-port 9 --health-host f"
    words += " --forwarded-allow-ips 10.0.0.0/8 --forwarded-allow-ips ::1"
    assert run("run", "demo.py:Demo", *words.split()) == (0, "", "")
    options = HttpOptions(
        path="/x",
        allowed_hosts=["a", "b"],
        allowed_origins=["https://c"],
        health=True,
        seal_sessions=True,
        limits=HttpLimits(grace=0.5),
    )
    host_options = HostOptions(
        certfile="d",
        keyfile="e",
        forwarded_allow_ips=["10.0.0.0/8", "::1"],
        health_port=9,
        health_host="f",
        lead=10.0,
    )
    assert served == [("::1", 0, options, host_options, {"server": "hypercorn", "parent": 7})]


def test_a_unix_socket(run, served):
    """It replaces the address and the port."""
    assert run("run", "demo.py:Demo", "--http", "--uds", "/run/a") == (0, "", "")
    assert served[0][3] == HostOptions(uds="/run/a")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--port 80", "--port needs --http; on stdin and stdout it means nothing"),
        ("--allow-host x", "--allow-host needs --http; on stdin and stdout it means nothing"),
        ("--uds x", "--uds needs --http; on stdin and stdout it means nothing"),
        ("--seal-sessions", "--seal-sessions needs --http; on stdin and stdout it means nothing"),
        ("--lead 1", "--lead needs --http; on stdin and stdout it means nothing"),
        ("--grace 1", "--grace needs --http; on stdin and stdout it means nothing"),
        ("--http --port 65536", "must be a number from 0 to 65535, got '65536'"),
        ("--http --port ²", "must be a number from 0 to 65535, got '²'"),
        ("--http --path=", "--path must be a path that begins with /, not ''"),
        ("--http --allow-origin foo", "--allow-origin must be origins like https://app.example"),
        ("--http --allow-host=", "--allow-host must be names or addresses like mcp.example.com"),
        ("--http --uds=", "--uds must be the path of a Unix socket, not ''"),
        ("--http --uds x --port 1", "--uds takes the place of --host and --port"),
        ("--http --uds x --host ::1", "--uds takes the place of --host and --port"),
        ("--http --keyfile x", "--keyfile needs --certfile, the certificate to serve with"),
        ("--http --lead -1", "--lead must be seconds from 0 on, not -1.0"),
        ("--http --lead nan", "--lead must be seconds from 0 on, not nan"),
        ("--http --grace 0", "--grace must be a number above 0, not 0.0"),
        ("--http --grace x", "argument --grace: invalid float value: 'x'"),
        ("--http --reload --path=", "--path must be a path that begins with /, not ''"),
    ],
)
def test_wrong_words(run, served, words, text):
    """They are reported in one line, and nothing is served."""
    status, out, err = run("run", "demo.py:Demo", *words.split())
    assert (status, out, served) == (2, "", [])
    assert text in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ImportError("it needs hypercorn"), "it needs hypercorn"),
        (OSError(98, "cannot listen there"), "cannot listen there"),
        (OSError("no number"), "no number"),
        (ValueError("of the lifespan"), "ValueError: of the lifespan (--debug shows where)"),
    ],
)
def test_what_cannot_be_served(run, monkeypatch, error, text):
    """One line has the reason."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(_serve, "run_http", fail)
    assert run("run", "demo.py:Demo", "--http") == (1, "", f"noizu-mcp: {text}\n")


def test_reloading_leaves_the_rest_to_another_process(run, served, monkeypatch):
    """It runs the same command without `--reload`."""
    seen = []
    monkeypatch.setattr(_serve, "run_reloading", lambda *args: seen.append(args) or 0)
    monkeypatch.setattr("sys.argv", ["noizu-mcp", "run", "x", "--http", "--reload"])
    assert run("run", "demo.py:Demo", "--http", "--reload") == (0, "", "")
    assert (seen, served) == ([(["run", "x", "--http"], "demo.py:Demo")], [])
