"""Programs where the native schema engine is missing, broken or not wanted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WEATHER = Path(__file__).parents[2] / "docs" / "examples" / "weather.py"
CLIENT = f"""
import os, sys
import trio
from noizu_mcp import Stdio, connect

async def main():
    server = Stdio(sys.executable, {str(WEATHER)!r}, env=dict(os.environ))
    async with connect(server, strictness="strict") as client:
        print(*(tool.name for tool in await client.list_tools()))
        print((await client.call_tool("get_weather", {{"city": "Oslo"}})).structured)
        for wrong in ({{"city": "O"}}, {{"city": "Bergen"}}, {{}}):
            result = await client.call_tool("get_weather", wrong)
            print(result.is_error, result.text)

trio.run(main)
print(sorted(name for name in ("fastjsonschema", "jsonschema_rs") if name in sys.modules))
"""
ANSWERS = """\
get_weather
{'celsius': -3.5, 'sky': 'snow'}
True Invalid arguments for tool get_weather:
/city: has 1 character, but needs at least 2
True No report from Bergen; there are: Lima, Nairobi, Oslo
True Invalid arguments for tool get_weather:
/city: required, but missing
"""
REASONS = {
    "missing": "ModuleNotFoundError('No module named', name='jsonschema_rs')",
    "broken": "ImportError('DLL load failed', name='jsonschema_rs.jsonschema_rs')",
    "old libc": 'ImportError("version `GLIBC_2.99\' not found")',
}


@pytest.fixture
def run_weather(tmp_path):
    """Return a function that runs a client of the weather server without the native engine."""

    def run(reason="", engine=""):
        if reason:
            (tmp_path / "jsonschema_rs.py").write_text(f"raise {reason}")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NOIZU_MCP_SCHEMA_ENGINE": engine}
        return subprocess.run(
            [sys.executable, "-c", CLIENT],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("name", REASONS)
def test_the_python_engine_serves(run_weather, name):
    """Client and server work; each logs one line, if the native engine is installed."""
    done = run_weather(REASONS[name])

    assert done.stdout == f"{ANSWERS}['fastjsonschema']\n"
    assert done.stderr.count("jsonschema-rs is installed and cannot be loaded") == (
        0 if name == "missing" else 2
    )
    assert len(done.stderr.splitlines()) == (0 if name == "missing" else 2)
    assert done.returncode == 0


def test_the_python_engine_is_named(run_weather):
    """The native engine is not imported."""
    done = run_weather(engine="python")

    assert (0, f"{ANSWERS}['fastjsonschema']\n", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("native", "cannot be loaded (No module named); install it: pip install jsonschema-rs, or"),
        ("rust", 'NOIZU_MCP_SCHEMA_ENGINE must be "native" or "python", got \'rust\''),
    ],
)
def test_an_engine_that_cannot_be_had(engine, said, run_weather):
    """The program says what to do, and exits."""
    done = run_weather(REASONS["missing"], engine)

    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
