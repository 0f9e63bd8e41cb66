"""Serving as the main job of a process; how it ends is in `tests/e2e`, with real ones."""

import socket
import threading

import pytest

from noizu_mcp import Server
from noizu_mcp.jsonrpc import Request
from noizu_mcp.transports.http import HostOptions, HttpLimits, HttpOptions
from noizu_mcp.transports.http.server._process import MAX_NAMED, _longest_end, _name, _say_overdue

from .shop import Shop
from .wire import call, serving, settled


class Small(Server, name="small", version="1"):
    """Nothing but a server."""


def test_a_process_that_cannot_serve_goes_on():
    """What it raises is one error, and no thread is left behind to end the process."""
    threads = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="address already in use"):
            Small().run_http(port=port, lead=1)
    assert threading.active_count() == threads


def test_the_end_is_the_sum_of_its_parts():
    """Unless options say otherwise it is what the documentation promises."""
    assert _longest_end(HttpOptions(), HostOptions()) == pytest.approx(10)
    limits = HttpLimits(grace=20)
    host = HostOptions(lead=10, drain_timeout=1, lifespan_timeout=4)
    assert _longest_end(HttpOptions(limits=limits), host) == pytest.approx(36)


async def test_the_log_names_what_does_not_end(autojump_clock, caplog):
    """Requests by method and name, also those that have been refused; not all of very many."""
    async with serving(Shop()) as wire:
        _say_overdue(wire.app, 10)
        for number in range(MAX_NAMED + 2):
            wire.modern(call("stuck", {"seconds": 60}, number))
        await settled()
        await wire.endpoint.settle(1)
        _say_overdue(wire.app, 0.5)
    nothing, many = caplog.messages
    assert nothing.endswith(
        "has not ended within 10 s, and is ended now; still at work: no request"
    )
    assert "within 0.5 s" in many
    assert many.count("tools/call 'stuck'") == MAX_NAMED
    assert many.endswith(", 2 more")


def test_what_has_no_name_is_named_by_its_method():
    """And no client may fill the log, or write into it."""
    assert _name(Request(1, "resources/list")) == "resources/list"
    assert _name(Request(1, "tools/call", {"name": 1})) == "tools/call"
    assert _name(Request(1, "tools/call", {"name": "\n" * 200})) == f"tools/call {chr(10) * 100!r}"
