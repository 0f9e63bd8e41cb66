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

#: A client that prints the first line of its server, which has process ids.
CLIENT = """
import sys, trio
from noizu_mcp import Stdio
from noizu_mcp.transports import open_process

async def main():
    server = Stdio("/bin/sh", "-c", sys.argv[1], exit_timeout=0.1)
    async with open_process(server) as (stream, process):
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
    open_any = trio.lowlevel.open_process

    async def open_others(command, **options):
        if command[0] == "/bin/sh":
            raise FileNotFoundError(2, "No such file or directory", command[0])
        return await open_any(command, **options)

    monkeypatch.setattr(trio.lowlevel, "open_process", open_others)
    with caplog.at_level(logging.DEBUG, "noizu_mcp"):
        async with open_process(Stdio("cat")) as (_, process):
            pass
    assert process.returncode == 0
    assert f"nobody watches the server {process.pid}" in caplog.text


async def test_a_watch_that_somebody_killed(monkeypatch):
    """The connection can end without its watch process."""
    open_any, opened = trio.lowlevel.open_process, []

    async def open_recorded(*args, **options):
        opened.append(await open_any(*args, **options))
        return opened[-1]

    monkeypatch.setattr(trio.lowlevel, "open_process", open_recorded)
    async with open_process(Stdio("cat")) as (_, process):
        server, watch = opened
        assert server is process
        watch.kill()
        await watch.wait()
    assert process.returncode == 0
