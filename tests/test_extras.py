"""With only the core installed every public name exists; errors name the missing extra."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "noizu_mcp"
PACKAGES = sorted(
    ".".join(("noizu_mcp", *path.relative_to(PACKAGE).parent.parts))
    for path in PACKAGE.rglob("__init__.py")
)
HIDE = """\
import sys
hidden = "coredis httptools hypercorn httpx2 hypothesis jwt opentelemetry prometheus_client yaml"
for name in hidden.split():
    sys.modules[name] = None
"""
SERVER = """\
from noizu_mcp import Server
class Weather(Server, name="weather", version="1"):
    pass
"""
METRICS = "metrics need prometheus_client: pip install 'noizu-mcp[prometheus]'"
TRACING = "tracing needs opentelemetry-api: pip install 'noizu-mcp[otel]'"
HTTP = "serving over HTTP needs httptools: pip install 'noizu-mcp[http]'"


# Each package is the first import of a process, apart from the root, which is always first.
NAMES = """\
import importlib, inspect, os, pydoc, traceback, noizu_mcp
def check(name):
    exec(f"from {name} import *")
    package = importlib.import_module(name)
    found = {name for name, _ in inspect.getmembers(package)}
    assert set(getattr(package, "__all__", ())) <= found, name
    assert name in pydoc.render_doc(package), name
for name in sys.argv[1:]:
    if (child := os.fork()) == 0:
        try:
            check(name)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(child, 0)
"""


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter without extras."""
    command = [sys.executable, "-c", f"{HIDE}{code}", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_all_public_names_are_there() -> None:
    """A program that imports or lists all names needs no extra."""
    done = run(NAMES, *PACKAGES)

    assert (done.returncode, done.stderr) == (0, "")


SERVE = """\
import trio
from noizu_mcp import serve_http
trio.run(serve_http, Weather(), "127.0.0.1", 0)
"""
SERVE_ASGI = """\
import trio
from noizu_mcp.transports.http import HostOptions, serve_asgi
HostOptions(max_streams=3)
trio.run(serve_asgi, None)
"""
SKILLS = "reading skills needs PyYAML: pip install 'noizu-mcp[skills]'"
STRATEGIES = "strategies need hypothesis: pip install 'noizu-mcp[testing]'"
LISTENERS = "from noizu_mcp.telemetry import *\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (f"{SERVER}Weather().run_http(port=0)", HTTP),
        (f"{SERVER}{SERVE}", HTTP),
        (SERVE_ASGI, HTTP),
        (f"{SERVER}{LISTENERS}Metrics(Weather())", METRICS),
        (f"{LISTENERS}Tracing()", TRACING),
        ("from noizu_mcp.testing import from_schema\nfrom_schema(True)", STRATEGIES),
        (
            "from noizu_mcp.testing import SessionMachine\nclass A(SessionMachine): pass",
            STRATEGIES,
        ),
        ("from noizu_mcp import SkillFolder\nSkillFolder('docs/examples/skills').skills", SKILLS),
    ],
)
def test_what_needs_an_extra_says_which(code: str, text: str) -> None:
    """It raises one error with one line, not a group."""
    done = run(code)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ImportError: {text}"


def test_the_command_says_it_too() -> None:
    """`noizu-mcp run --http` prints one line."""
    code = f"{SERVER}import __main__\nfrom noizu_mcp.cli import main\n"
    done = run(f"{code}sys.exit(main(['run', '__main__:Weather', '--http', '--port', '0']))")

    assert (done.returncode, done.stderr) == (1, f"noizu-mcp: {HTTP}\n")
