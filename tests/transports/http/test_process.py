"""Serving as the main task of a process; `tests/e2e` tests its end with real processes."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from noizu_mcp.jsonrpc import Request
from noizu_mcp.transports.http import HostOptions, HttpLimits, HttpOptions
from noizu_mcp.transports.http.server._process import (
    MAX_NAMED,
    describe,
    longest_end,
    run_process,
    say_overdue,
)

from ...kit.messages import call
from ...kit.servers import Small
from .shop import Shop
from .wire import serving, settled


def test_a_process_that_cannot_serve_goes_on():
    """One line says why, the status is 1, and no thread remains that would end the process."""
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            Small().run_http(port=port, lead=1)
    where = f"http://127.0.0.1:{port}"
    assert ended.value.code == f"noizu-mcp: cannot listen on {where}: address already in use"
    # Idle threads of earlier tests may end meanwhile.
    assert set(threading.enumerate()) <= before


class Said:
    """Replaces stderr, and kills a process when the server's address is written."""

    def __init__(self, process):
        self.process = process
        self.lines = []

    def write(self, text):
        self.lines.append(text)
        if "serves at" in text:
            self.process.kill()


def test_it_ends_with_its_parent(monkeypatch):
    """The server ends normally when the parent with the given id has ended."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as parent:
        monkeypatch.setattr(os, "getppid", lambda: parent.pid)
        monkeypatch.setattr(sys, "stderr", Said(parent))
        options = (HttpOptions(), HostOptions())
        run_process(Small(), "127.0.0.1", 0, *options, server_name="noizu", parent=parent.pid)
        line = sys.stderr.lines[-1]
    assert line.startswith("noizu-mcp: small serves at http://127.0.0.1:")


def test_only_known_servers_are_served_on():
    """The error lists the known servers."""
    with pytest.raises(ValueError, match="server must be one of noizu, hypercorn, not 'apache'"):
        Small().run_http(server="apache")


def test_the_end_is_the_sum_of_its_parts():
    """The maximum duration of a shutdown is the documented one, unless options change it."""
    options, host = HttpOptions(), HostOptions()
    assert longest_end(options, host) == pytest.approx(7)
    # Also for a call that hangs, whose client reads nothing and keeps its connection open.
    assert longest_end(options, host) - host.lifespan_timeout <= 5
    limits = HttpLimits(grace=20)
    host = HostOptions(lead=10, drain_timeout=1, lifespan_timeout=4)
    assert longest_end(HttpOptions(limits=limits), host) == pytest.approx(36)


async def test_the_log_names_what_does_not_end(autojump_clock, caplog):
    """Running requests are listed by method and name, also refused ones; long lists are cut."""
    async with serving(Shop()) as wire:
        say_overdue(wire.app, 10)
        for number in range(MAX_NAMED + 2):
            wire.modern(call("stuck", {"seconds": 60}, number))
        await settled()
        await wire.endpoint.settle(1)
        say_overdue(wire.app, 0.5)
    nothing, many = caplog.messages
    assert nothing.endswith(
        "has not ended within 10 s, and is ended now; still at work: no request"
    )
    assert "within 0.5 s" in many
    assert many.count("tools/call 'stuck'") == MAX_NAMED
    assert many.endswith(", 2 more")


def test_what_has_no_name_is_named_by_its_method():
    """No client can flood the log, or write into it."""
    assert describe(Request(1, "resources/list")) == "resources/list"
    assert describe(Request(1, "tools/call", {"name": 1})) == "tools/call"
    assert (
        describe(Request(1, "tools/call", {"name": "\n" * 200})) == f"tools/call {chr(10) * 100!r}"
    )
