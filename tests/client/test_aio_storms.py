"""Many calls and connections, cancelled at random, on both kinds of asyncio loop."""

import subprocess
import sys
from pathlib import Path

import pytest

STORM = str(Path(__file__).parent / "storm.py")
MODULES = ("noizu_mcp.testing", "noizu_mcp.aio", "noizu_mcp.client", "uvicorn")
#: The client, the transport, the number of calls on one connection, and of short connections.
STORMS = [
    ("trio", "memory", 600, 400),
    ("trio", "stdio", 400, 120),
    ("trio", "http", 400, 80),
    ("trio", "process", 400, 0),
    ("asyncio", "memory", 600, 400),
    ("asyncio", "stdio", 400, 120),
    ("asyncio", "http", 400, 80),
    ("asyncio", "process", 400, 0),
    ("asyncio", "uvicorn", 400, 80),
    ("threads", "memory", 400, 120),
    ("threads", "stdio", 400, 80),
    ("threads", "http", 200, 40),
]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.parametrize(("face", "transport", "calls", "connections"), STORMS)
def test_a_storm(face, transport, calls, connections, forked_command, tmp_path):
    """Each call is answered or abandoned, the program ends, and nothing leaks or is printed."""
    command = forked_command(STORM, *MODULES)
    words = [face, transport, str(calls), str(connections), *command, "serve"]
    # Not a pipe: a server process that hangs would keep it open.
    with (tmp_path / "said").open("w+") as said:
        done = subprocess.run([*command, *words], stdout=said, stderr=said, check=False)
        said.seek(0)
        assert (said.read(), done.returncode) == ("done\n", 0)
