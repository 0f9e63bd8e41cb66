"""Servers whose client is killed end, too."""

import logging
import os
import signal
import subprocess
import sys

import pytest
import trio

from noizu_mcp import Stdio
from noizu_mcp.transports import open_process
from noizu_mcp.transports.stdio import _child_process, _orphan_watch

#: A client that prints the first line of its server, which has process ids.
CLIENT = """
import sys, trio
from noizu_mcp import Stdio
from noizu_mcp.transports import open_process
from noizu_mcp.transports.stdio import _child_process

_child_process.EXIT_TIMEOUT = 0.1

async def main():
    async with open_process(Stdio("/bin/sh", "-c", sys.argv[1])) as (stream, process):
        (line,) = await stream.receive()
        print(line.data.decode(), flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


async def ended(pid):
    """Wait for the end of a process of any parent."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo '{\"id\":'$$',\"m\":'$$'}'; read line", id="reads"),
        pytest.param("sleep 1000 & echo '{\"id\":'$$',\"m\":'$!'}'; wait", id="never reads"),
        pytest.param(
            "trap '' TERM; sleep 1000 & echo '{\"id\":'$$',\"m\":'$!'}'; wait; wait",
            id="ignores SIGTERM",
        ),
    ],
)
async def test_a_killed_client_leaves_no_server(script):
    """The server ends with its children, whether it notices or not."""
    command = [sys.executable, "-c", CLIENT, script]
    client = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    with trio.fail_after(60):
        line = await client.stdout.receive_some()
        pids = [int(each.partition(b":")[2].strip(b"}\n")) for each in line.split(b",")]
        client.send_signal(signal.SIGKILL)
        await client.wait()
        for pid in pids:
            await ended(pid)


async def test_a_system_without_a_shell(monkeypatch, caplog):
    """The server runs without a watch process, which is logged."""

    async def no_shell(command, **options):
        raise FileNotFoundError(2, "No such file or directory", command[0])

    async with open_process(Stdio("cat")) as (_, process):
        monkeypatch.setattr(trio.lowlevel, "open_process", no_shell)
        with caplog.at_level(logging.DEBUG, "noizu_mcp"):
            watch = await _orphan_watch.watch_orphans(process.pid, 1)
        await watch.aclose()
    assert f"nobody watches the server {process.pid}" in caplog.text


async def test_a_watch_that_somebody_killed():
    """The connection can end without its watch process."""
    async with open_process(Stdio("cat")) as (_, process):
        watch = await _orphan_watch.watch_orphans(process.pid, _child_process.EXIT_TIMEOUT)
        watch._shell.kill()
        await watch._shell.wait()
        await watch.aclose()
    assert process.returncode == 0
