"""Mounted in another application, under hosts of another make, a server serves both eras."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from noizu_mcp import connect

PROGRAM = Path(__file__).with_name("hosted.py")
HOSTS = {
    "uvicorn": "uvicorn",
    "asyncio": "hypercorn.asyncio",
    "trio": "hypercorn.trio",
    "quart": "quart_trio",
}


@pytest.fixture(params=HOSTS)
def url(request):
    """Run the program until the test has ended; then it must end by itself, and quietly."""
    package = HOSTS[request.param]
    if importlib.util.find_spec(package.partition(".")[0]) is None:
        pytest.skip(f"{package} is not installed")
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = process.stdout.readline().strip()
        assert port.isdigit(), process.communicate()
        yield f"http://localhost:{port}/api/mcp"
    finally:
        stderr = process.communicate("", timeout=30)[1]
        process.kill()
    assert (process.returncode, stderr) == (0, "")


async def test_a_mounted_server_serves_both_eras(url):
    """Its lifespan runs, and its answers stream."""
    for version in ("2025-06-18", "2026-07-28"):
        seen = []
        async with connect(url, version=version) as client:
            result = await client.call_tool("echo", {"text": "hi"}, progress=seen.append)
            assert result.content[0].text == "hi state"
            assert len(seen) == 1
