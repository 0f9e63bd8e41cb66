"""The pytest plugin: sessions of pytest with its fixtures, in this process."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noizu_mcp import Server, SyncClient, aio, connect
from noizu_mcp.check import contract
from noizu_mcp.check.lint import lint
from noizu_mcp.testing import Network, replay, serve_over
from noizu_mcp.testing.plugin import prepare

ROOT = str(Path(__file__).resolve().parents[2])
APP = """
from noizu_mcp import Context, Server

def add(a: int, b: int = 1) -> int:
    "Add two numbers."
    return a + b

async def nap(ctx: Context) -> str:
    "Sleep for an hour."
    import trio
    await trio.sleep(25)
    return "awake"

class Calculator(Server, name="calculator", version="1.0.0"):
    tools = [add, nap]
"""
CONFTEST = """
import pytest
from plugin_app import Calculator

@pytest.fixture
def mcp_server():
    return Calculator
"""
PLAIN = """
def test_add(mcp_client):
    assert mcp_client.call_tool("add", {"a": 2}).content[0].text == "3"
"""
ASYNC = """
async def test_add(mcp_client):
    result = await mcp_client.call_tool("add", {"a": 2})
    assert result.content[0].text == "3"
"""
ONCE = "import pytest\n@pytest.mark.mcp(versions='2026-07-28', transports='memory')"


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import everything in this process: a session in it forgets its imported modules."""

    class Nothing(Server, name="nothing", version="1"):
        pass

    with SyncClient(serve_over(Nothing, "http")), SyncClient(serve_over(Nothing, "stdio")):
        assert all(map(callable, (aio.connect, Network, replay, prepare, connect, lint)))


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A project with a server, whose tests are given as text; returns the result of a run."""
    pytester.makepyfile(plugin_app=APP)
    pytester.makeconftest(CONFTEST)
    # The options of this run do not apply to that one.
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(
        text: str, *options: str, ini: str = "trio_mode = true", asyncio: bool = False
    ) -> pytest.RunResult:
        pytester.makeini(f"[pytest]\nfilterwarnings = error\n{ini}")
        pytester.makepyfile(test_it=text)
        without = ("no:xdist",) if asyncio else ("no:xdist", "no:asyncio")
        return pytester.runpytest_inprocess(*(f"-p{each}" for each in without), *options)

    yield run
    sys.modules.pop("plugin_app", None)


@pytest.mark.parametrize("text", [PLAIN, ASYNC], ids=["plain", "trio"])
def test_a_test_runs_on_each_revision_and_transport(project: Any, text: str) -> None:
    """It runs twelve times, with ids for each variant: as plain test, and on pytest-trio."""
    result = project(text, "-v")

    result.assert_outcomes(passed=12)
    result.stdout.fnmatch_lines(["*::test_add[[]2026-07-28-memory] PASSED*"])
    result.stdout.fnmatch_lines(["*::test_add[[]2025-03-26-http] PASSED*"])


def test_anyio(project: Any) -> None:
    """The client uses the loop that anyio runs: trio or asyncio."""
    text = f"{ONCE}\n@pytest.mark.anyio\n{ASYNC.strip()}\n"
    backends = "@pytest.fixture(params=['trio', 'asyncio'])\ndef anyio_backend(request):\n"
    result = project(f"{text}\n{backends}    return request.param\n", ini="")

    result.assert_outcomes(passed=2)


def test_pytest_asyncio(pytester: pytest.Pytester, project: Any) -> None:
    """In its strict and its auto mode the client is on asyncio."""
    pytest.importorskip("pytest_asyncio")
    for mode, mark in (("strict", "@pytest.mark.asyncio\n"), ("auto", "")):
        ini = f"asyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function"
        result = project(f"{ONCE}\n{mark}{ASYNC.strip()}\n", ini=ini, asyncio=True)

        result.assert_outcomes(passed=1)


def test_pytest_asyncio_with_a_loop_for_a_file(project: Any) -> None:
    """The client is on the loop of the test, by its mark or by the configuration."""
    pytest.importorskip("pytest_asyncio")
    text = f"{ONCE}\n@pytest.mark.asyncio(loop_scope='module')\n{ASYNC.strip()}\n"
    scopes = "asyncio_default_fixture_loop_scope = function"
    project(text, ini=scopes, asyncio=True).assert_outcomes(passed=1)
    text = f"{ONCE}\n@pytest.mark.asyncio\n{ASYNC.strip()}\n"
    scopes += "\nasyncio_default_test_loop_scope = session"
    project(text, ini=scopes, asyncio=True).assert_outcomes(passed=1)


def test_hypothesis(project: Any) -> None:
    """One connection serves all examples of a property; on trio the error says that it cannot."""
    text = """
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

one_client = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5, database=None
)

@pytest.mark.mcp(versions="2026-07-28", transports="memory")
@one_client
@given(a=st.integers(0, 9))
def test_plain(mcp_client, a):
    assert mcp_client.call_tool("add", {"a": a}).structured == a + 1

@pytest.mark.mcp(versions="2026-07-28", transports="memory")
@one_client
@given(a=st.integers(0, 9))
async def test_trio(mcp_client, a):
    assert (await mcp_client.call_tool("add", {"a": a})).structured == a + 1
"""
    result = project(text)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*mcp_client does not work with Hypothesis on pytest-trio*"])


def test_marks_and_the_configuration_narrow(project: Any) -> None:
    """A mark overrides the configuration of the project."""
    ini = "trio_mode = true\nmcp_versions = 2025-11-25 2026-07-28\nmcp_transports = memory"

    project(PLAIN, ini=ini).assert_outcomes(passed=2)
    text = "import pytest\npytestmark = pytest.mark.mcp(transports=['stdio', 'memory'])\n"
    project(f"{text}{PLAIN}", ini=ini).assert_outcomes(passed=4)


def test_a_wrong_mark_is_reported(project: Any) -> None:
    """A wrong mark is reported in one line, at collection."""
    result = project(f"import pytest\n@pytest.mark.mcp(version=[])\n{PLAIN.strip()}\n")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["test_it.py::test_add: the mark mcp has no 'version'; did you mean versions?"]
    )
    assert "Traceback" not in result.stdout.str()


def test_other_fixtures_use_the_client(project: Any) -> None:
    """Fixtures of the user can use the client, the server and its options."""
    text = """
import pytest
from plugin_app import Calculator
from noizu_mcp.types import Implementation

@pytest.fixture(params=["sync", "async"])
def kind(request):
    return request.param

@pytest.fixture
def mcp_options():
    seen = []
    return {"client_info": Implementation("probe", "1"), "tap": lambda *each: seen.append(each)}

@pytest.fixture
async def ready(mcp_client, mcp_options, mcp_variant, kind):
    await mcp_client.call_tool("add", {"a": 1})
    assert mcp_client.protocol_version == mcp_variant.version
    yield mcp_client

async def test_add(ready, mcp_transcript):
    assert len(mcp_transcript.sent("tools/call")) == 1
"""
    ini = "trio_mode = true\nmcp_versions = 2026-07-28"

    project(text, ini=ini).assert_outcomes(passed=6)


def test_an_async_server_fixture(project: Any) -> None:
    """pytest-trio runs `mcp_server`, and everything that depends on it."""
    text = """
import pytest, trio
from plugin_app import Calculator
from noizu_mcp import Stdio

@pytest.fixture
async def mcp_server():
    await trio.sleep(0)
    yield Calculator

async def test_add(mcp_client):
    assert (await mcp_client.call_tool("add", {"a": 2})).content[0].text == "3"
"""
    project(text).assert_outcomes(passed=12)


def test_a_virtual_clock(project: Any) -> None:
    """With pytest-trio's `autojump_clock` a test runs in memory, without real waits."""
    text = """
async def test_nap(mcp_client, autojump_clock):
    assert (await mcp_client.call_tool("nap")).content[0].text == "awake"
"""
    project(text).assert_outcomes(passed=4)


def test_a_virtual_clock_is_of_trio(project: Any) -> None:
    """On other loops and over HTTP the error says that the clock would not move."""
    text = """
import pytest

@pytest.mark.mcp(versions="2026-07-28")
def test_plain(mcp_client, autojump_clock): pass

@pytest.mark.mcp(transports="http")
async def test_http(mcp_client, mock_clock): pass
"""
    result = project(text)

    result.assert_outcomes(errors=1)  # at collection
    result.stdout.fnmatch_lines(["*::test_http: a virtual clock needs the transport memory: *"])
    result = project(text.partition("@pytest.mark.mcp(transports")[0])
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*autojump_clock is a clock of pytest-trio, and this test does*"])


CONTRACT = """
import pytest

@pytest.fixture
def mcp_options():
    return {"version": "2025-11-25"}

def test_contract(mcp_contract):
    mcp_contract("docs.json")
    mcp_contract("prompts.json", kinds=["prompts"])
"""


def test_the_contract_of_a_server(project: Any, pytester: pytest.Pytester) -> None:
    """An option writes its file; without one, and with another server, the test fails."""
    missing = project(CONTRACT)
    for options in ("--mcp-update",), ():
        project(CONTRACT, *options).assert_outcomes(passed=1)
    written = contract.read(pytester.path / "docs.json")
    emptied = 'class Emptied(Calculator, name="calculator", version="1"):\n    tools = []\n'
    pytester.makeconftest(CONFTEST.replace("return Calculator", "return Emptied") + emptied)
    broken = project(CONTRACT)

    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["there is no */docs.json; pytest --mcp-update writes it"])
    assert (set(written["tools"]), written["protocol"]) == ({"add", "nap"}, "2025-11-25")
    assert "tools" not in contract.read(pytester.path / "prompts.json")
    broken.assert_outcomes(failed=1)
    broken.stdout.fnmatch_lines(
        ["*docs.json; pytest --mcp-update writes it again", "  breaking: *"]
    )
    broken.stdout.no_fnmatch_line("*_pytest_plugin.py*")


def test_the_tools_of_a_server(project: Any) -> None:
    """`mcp_lint` fails the test with its findings, or returns the report."""
    text = """
def test_sizes(mcp_lint):
    assert set(mcp_lint().tokens) == {"add", "nap"}

def test_descriptions(mcp_lint):
    mcp_lint(fail_on="warning", apis=["openai"], ignore=["keyword"])
"""
    result = project(text)

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["warning: add /properties/a: a has no description (*"])


HOSTILE = """
import pytest
from noizu_mcp import Server, tool
from noizu_mcp.check import contract

STEERS = "\\x1b]0;mine\\x07 \\x9b31m \\u202e \\u200b"

def act(args) -> str:
    return STEERS

def schema(pattern):
    return {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}

class Before(Server, name="hostile", version="1"):
    tools = [tool(act, description=STEERS, input_schema=schema("x"))]

class Hostile(Server, name="hostile", version="1"):
    tools = [tool(act, description=STEERS, input_schema=schema(f"[{STEERS}]"))]

@pytest.fixture
def mcp_server():
    return Hostile

@pytest.mark.mcp(versions="2026-07-28", transports="memory")
def test_call(mcp_client):
    mcp_client.call_tool("act", {"a": "b"})
    pytest.fail("on purpose")

def test_lint(mcp_lint):
    mcp_lint(fail_on="note")

def test_contract(mcp_contract, request):
    contract.write(Before, request.path.parent / "contract.json")
    mcp_contract()
"""


def test_a_hostile_server_does_not_steer_the_terminal(project: Any) -> None:
    """Messages, findings and changes are shown with code points, as by the commands."""
    result = project(HOSTILE)

    result.assert_outcomes(failed=3)
    shown = result.stdout.str()
    assert not re.search("[\x1b\x07\x9b\u202e\u200b]", shown)
    assert re.search(r"received .*\\u\{202E\}", shown)


def test_a_failure_shows_the_messages(project: Any) -> None:
    """The messages have their revision and transport; without a connection there are none."""
    text = f"{ONCE}\n{PLAIN.strip()[:-3]}'4'\ndef test_other(): assert not 'unrelated'\n"
    result = project(text)

    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*- MCP messages (2026-07-28, memory) -*",
            'sent     *"method":"server/discover"*',
            "received *",
            'sent     *"method":"tools/call"*',
            'received *"text":"3"*',
        ]
    )
    assert result.stdout.str().count("MCP messages") == 1


def test_own_connections_show_their_messages(project: Any) -> None:
    """`mcp_transcript` alone is a tap for `connect`."""
    text = """
from noizu_mcp import SyncClient
from plugin_app import Calculator

def test_it(mcp_transcript):
    with SyncClient(Calculator, tap=mcp_transcript) as client:
        assert client.list_tools() == []
"""
    result = project(text)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- MCP messages -*", "sent *", "received *tools*"])


def test_no_server(project: Any, pytester: pytest.Pytester) -> None:
    """Without a fixture `mcp_server` the error says what to write."""
    pytester.makeconftest("")
    result = project(f"{ONCE}\n{PLAIN.strip()}\n")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["mcp_client needs a server: define a fixture mcp_server*"])


def test_an_async_test_that_nothing_runs(project: Any) -> None:
    """The error names the marks, before pytest's own error."""
    result = project(f"{ONCE}\n{ASYNC.strip()}\n", ini="")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*is async, and nothing runs it: mark it with trio, asyncio*"])


@pytest.mark.parametrize("workers", [0, 2])
def test_an_async_test_that_two_plugins_take(
    pytester: pytest.Pytester, project: Any, workers: int
) -> None:
    """The error names both plugins: one would run the test and the other one its fixtures."""
    pytest.importorskip("pytest_asyncio")
    pytest.importorskip("xdist")
    text = "".join(
        f"{ONCE.partition(chr(10))[2]}\n@pytest.mark.{mark}\n{ASYNC.strip()}\n".replace(
            "add(", f"{mark}("
        )
        for mark in ("anyio", "trio")
    )
    ini = "asyncio_mode = auto\nasyncio_default_fixture_loop_scope = function"
    pytester.makeini(f"[pytest]\n{ini}")
    pytester.makepyfile(test_it=f"import pytest\n{text}")
    options = ("-pxdist", f"-n{workers}") if workers else ("-pno:xdist",)
    result = pytester.runpytest_subprocess(*options, timeout=60)

    result.assert_outcomes(errors=3)  # anyio has two loops
    result.stdout.fnmatch_lines_random(
        ["*::test_anyio* is taken by asyncio and anyio, *", "*::test_trio* is taken by trio and*"]
    )


def test_targets_with_one_transport_are_skipped(project: Any) -> None:
    """A URL is tested neither in memory nor over pipes; the skip has the reason."""
    text = f"""
import pytest
from noizu_mcp import Stdio

@pytest.fixture
def mcp_server():
    return Stdio({sys.executable!r}, "-c", "")

@pytest.mark.mcp(versions="2026-07-28", transports=["memory", "http"])
{PLAIN.strip()}
"""
    result = project(text, "-rs")

    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*is reached over stdio only*"])


def test_a_context_manager_as_the_server(project: Any) -> None:
    """It is entered for each run, and its server is served over the transport."""
    text = f"""
import contextlib
import pytest
from plugin_app import Calculator

@pytest.fixture
def mcp_server():
    @contextlib.asynccontextmanager
    async def open_server():
        yield Calculator
    return open_server()

@pytest.mark.mcp(versions="2026-07-28")
{PLAIN.strip()}
"""
    project(text).assert_outcomes(passed=3)


def test_a_network_stands_between(project: Any) -> None:
    """`mcp_network` makes faults, in memory and over HTTP; pipes have none."""
    text = f"""
import pytest
from noizu_mcp.testing import Network

@pytest.fixture
def mcp_network():
    return Network(1, delay=(0.0, 0.001), reorder=True)

@pytest.mark.mcp(versions="2026-07-28")
{PLAIN.strip()}
"""
    result = project(text, "-rs")

    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*a simulated network is in memory, or over HTTP*"])


def test_without_the_extra_http(project: Any) -> None:
    """Tests over HTTP are skipped, and the reason says what to install."""
    text = f"""
import importlib.util
import pytest

@pytest.fixture(autouse=True)
def no_http(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

@pytest.mark.mcp(versions="2026-07-28")
{PLAIN.strip()}
"""
    result = project(text, "-rs")

    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*pip install 'noizu-mcp[[]http]'*"])


RECORDED = """
import pytest
from plugin_app import Calculator

@pytest.fixture
def mcp_server(mcp_cassette):
    return mcp_cassette({target})

@pytest.mark.mcp(versions="2026-07-28", transports="http")
def test_add(mcp_client):
    assert mcp_client.call_tool("add", {{"a": 2}}).content[0].text == "{expected}"
"""


def test_a_cassette_is_recorded_once(project: Any, pytester: pytest.Pytester) -> None:
    """A failing test records nothing; later runs need no server; an option records again."""
    nowhere = '"http://127.0.0.1:1/mcp"'
    folder = pytester.path / "cassettes"

    project(RECORDED.format(target="Calculator", expected=4)).assert_outcomes(failed=1)
    assert list(folder.rglob("*.*")) == []
    project(RECORDED.format(target="Calculator", expected=3)).assert_outcomes(passed=1)
    (file,) = folder.rglob("*.*")
    assert file.relative_to(folder).as_posix() == "test_it/test_add-2026-07-28-http.jsonl"
    project(RECORDED.format(target=nowhere, expected=3)).assert_outcomes(passed=1)
    again = project(RECORDED.format(target=nowhere, expected=3), "--mcp-record")
    again.assert_outcomes(errors=1)
    assert list(folder.rglob("*.*")) == [file]


def test_a_session_without_it_loads_little(pytester: pytest.Pytester) -> None:
    """Test kit and client are only imported for tests that use the fixtures."""
    pytester.makepyfile("def test_it(): pass")
    code = (
        "import sys, pytest\n"
        "status = pytest.main(['-q', '-p', 'noizu_mcp._pytest_plugin'])\n"
        "late = ('noizu_mcp.testing', 'noizu_mcp.client', 'asyncio', 'hypothesis')\n"
        "print(status == 0, *(name for name in late if name in sys.modules))\n"
    )
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": ROOT}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "True"


def test_it_is_installed(pytester: pytest.Pytester) -> None:
    """A session finds the plugin by itself, and can disable it."""
    options = ("--markers", "-pno:xdist", "-pno:asyncio")
    result = pytester.runpytest_inprocess(*options)
    result.stdout.fnmatch_lines(["@pytest.mark.mcp(versions=…, transports=…): *"])
    result = pytester.runpytest_inprocess(*options, "-pno:noizu_mcp")

    assert "mcp" not in result.stdout.str()
