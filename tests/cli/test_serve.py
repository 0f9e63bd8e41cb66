"""`noizu-mcp run --http`: its options, and its failures."""

import json
import os
import signal
import socket
from contextlib import ExitStack

import pytest

from noizu_mcp.cli import _serve
from noizu_mcp.transports.http import HostOptions, HttpLimits, HttpOptions
from noizu_mcp.workers import VARIABLE, open_balance

SECRET = "abcdefghijklmnopqrstuvwxyz012345"


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
    assert served == [
        ("127.0.0.1", 8000, *options, {"server": "noizu", "parent": None, "worker": None})
    ]


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
    assert served == [
        ("::1", 0, options, host_options, {"server": "hypercorn", "parent": 7, "worker": None})
    ]


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
        ("--workers 2", "--workers needs --http; on stdin and stdout it means nothing"),
        ("--http --workers 0", "argument --workers: must be a number from 1 to 512, got '0'"),
        ("--http --workers 513", "argument --workers: must be a number from 1 to 512, got '513'"),
        ("--http --workers two", "argument --workers: must be a number from 1 to 512, got 'two'"),
        ("--http --workers -1", "argument --workers: must be a number from 1 to 512, got '-1'"),
        ("--http --workers 2 --reload", "--reload starts one server again, and --workers several"),
        ("--http --workers 2 --path=", "--path must be a path that begins with /, not ''"),
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


def test_workers_are_started_with_the_same_words(run, served, monkeypatch):
    """The supervisor serves nothing itself; the status is that of a worker that does not start."""
    monkeypatch.setattr("sys.argv", ["noizu-mcp", "run", "nowhere.py"])
    words = ["--http", "--port", "0", "--workers", "2"]
    status, out, _ = run("run", "demo.py:Demo", *words)
    assert (status, out, served) == (2, "", [])


def test_a_port_that_no_worker_can_have(run, served):
    """One line says so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        words = ["--http", "--port", port, "--workers", "2"]
        status, out, err = run("run", "demo.py:Demo", *words)
    where = f"http://127.0.0.1:{port}"
    assert (status, out, served) == (1, "", [])
    assert err == f"noizu-mcp: cannot listen on {where}: address already in use\n"


@pytest.fixture
def place(monkeypatch):
    """Make this process a worker, and give it a secret."""
    before = signal.getsignal(signal.SIGHUP)
    ends = [*socket.socketpair(), *socket.socketpair()]
    with ExitStack() as stack:
        for each in ends:
            stack.enter_context(each)
        numbers = {"number": 1, "control": ends[0].fileno(), "hub": ends[2].fileno()}
        balance = os.dup(stack.enter_context(open_balance(1)).fileno())
        place = {**numbers, "balance": balance, "listeners": [], "secret": SECRET}
        monkeypatch.setenv(VARIABLE, json.dumps(place))
        yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("keys", ["", "keys of the author: ABCDEFGHIJKLMN"])
@pytest.mark.parametrize("health_port", [None, 9])
def test_a_worker(run, served, place, monkeypatch, keys, health_port):
    """It has sealed sessions, and keys; the health port is that of the supervisor."""
    monkeypatch.setenv("NOIZU_MCP_STATE_KEYS", keys)
    words = ["--http", "--workers", "2"]
    if health_port is not None:
        words += ["--health-port", str(health_port)]
    assert run("run", "demo.py:Demo", *words) == (0, "", "")
    (_, _, options, host_options, others), *rest = served
    assert rest == []
    assert options == HttpOptions(health=True, seal_sessions=True)
    assert host_options == HostOptions()
    assert others["worker"].sockets.descriptors == []
    assert os.environ["NOIZU_MCP_STATE_KEYS"] == (keys or SECRET)
