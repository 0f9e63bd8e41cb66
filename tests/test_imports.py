"""The cost of a bare import: it loads little besides trio, and no engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Everything that the import loads, and `import trio` does not.
LOADED = {"json", "json.decoder", "json.encoder", "json.scanner", "_json"}
# For URIs; before 3.13 `import trio` loads them, too.
MAYBE_LOADED = {"urllib", "urllib.parse", "ipaddress"}
HEAVY = {
    *("argparse", "asyncio", "dataclasses", "datetime", "decimal", "tomllib", "unittest"),
    *(
        "cryptography",
        "fastjsonschema",
        "httptools",
        "hypercorn",
        "hypothesis",
        "jsonschema",
        "jsonschema_rs",
    ),
    *("opentelemetry", "prometheus_client", "pydantic", "jwt", "httpx2"),
}
#: Maximum cost in addition to `import trio`, as a factor of it. Measured: 0.6 on CPython 3.11.
RATIO = 0.75


def run(code: str) -> str:
    """Run code in a fresh interpreter without coverage, with bytecode kept."""
    unwanted = ("COVERAGE_", "COV_", "PYTHONDONTWRITEBYTECODE")
    env = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def modules_after(name: str) -> set[str]:
    return set(run(f"import sys, {name}; print(*sys.modules, sep='\\n')").split())


@pytest.fixture(scope="module")
def beside_trio() -> set[str]:
    """List the modules that the package loads, and `import trio` does not."""
    return modules_after("noizu_mcp") - modules_after("trio")


def test_the_modules_are_these(beside_trio: set[str]) -> None:
    """Only the listed modules of others are loaded."""
    others = {name for name in beside_trio if not name.startswith("noizu_mcp")}

    assert others - MAYBE_LOADED == LOADED


def test_nothing_heavy(beside_trio: set[str]) -> None:
    """No engine, server, second event loop, or test tool is loaded."""
    assert beside_trio & HEAVY == set()


def test_commands_are_not_loaded(beside_trio: set[str]) -> None:
    """The command line, the client and the test kit load when they are used."""
    late = {"noizu_mcp.cli", "noizu_mcp.testing", "noizu_mcp.tools"}
    late |= {
        "noizu_mcp.client",
        "noizu_mcp.protocol._client_peer",
        "noizu_mcp.transports.stdio._command",
    }
    late |= {"noizu_mcp.types._capabilities", "noizu_mcp.telemetry"}
    late |= {f"noizu_mcp.transports.{name}" for name in ("_memory", "_process", "_tap")}
    late |= {"noizu_mcp.openapi", "noizu_mcp.remote"}
    late |= {"noizu_mcp.components._handle", "noizu_mcp.schema._handle_form", "noizu_mcp.backends"}
    late |= {"noizu_mcp.auth", "noizu_mcp.models", "noizu_mcp.skills._frontmatter"}
    late |= {f"noizu_mcp.components.{name}" for name in ("_prompt", "_resource")}
    late |= {
        f"noizu_mcp.components.{name}"
        for name in ("declare._arguments", "handlers._completion", "handlers._contents")
    }
    late |= {"noizu_mcp.components.handlers._text_values", "noizu_mcp.uri"}
    late |= {"noizu_mcp.schema._elicitation_form"}
    late |= {
        f"noizu_mcp.types._{name}"
        for name in ("client_results", "extensions", "principal", "prompts", "resources")
    }
    late |= {
        f"noizu_mcp.server.asking.{name}" for name in ("_live", "_parked", "_record", "_rounds")
    }
    late |= {"noizu_mcp.server.tasks._task_store", "noizu_mcp.server.features._tasks"}
    late |= {f"noizu_mcp.server.policies._{name}" for name in ("policy", "shipped", "capability")}
    late |= {f"noizu_mcp.server.calls._{name}" for name in ("policy_checks", "nested")}
    late |= {"noizu_mcp.components._capability"}

    assert beside_trio & late == set()


def test_the_client_loads_with_its_first_name() -> None:
    """`from noizu_mcp import connect` loads it, and `dir` lists it before."""
    loaded = run(
        "import sys, noizu_mcp\n"
        "print('connect' in dir(noizu_mcp), 'noizu_mcp.client' in sys.modules)\n"
        "from noizu_mcp import connect\n"
        "print('noizu_mcp.client' in sys.modules, noizu_mcp.connect is connect)\n"
    )

    assert loaded.split() == ["True", "False", "True", "True"]


def test_the_client_of_plain_code_loads_with_its_first_name() -> None:
    """A program with its own loop does not load threads for it."""
    loaded = run(
        "import sys\n"
        "from noizu_mcp import connect\n"
        "print('noizu_mcp.client._sync' in sys.modules, 'concurrent.futures' in sys.modules)\n"
        "from noizu_mcp import SyncClient\n"
        "print('noizu_mcp.client._sync' in sys.modules)\n"
    )
    assert loaded.split() == ["False", "False", "True"]


def test_http_loads_with_its_first_url() -> None:
    """Other clients do not load it."""
    loaded = run(
        "import sys\n"
        "from noizu_mcp import Http, Stdio, connect\n"
        "Http('http://x')\n"
        "print('noizu_mcp.transports.http.client' in sys.modules, 'httpx2' in sys.modules)\n"
    )

    assert loaded.split() == ["False", "False"]


def test_the_native_engine_loads_with_the_first_value() -> None:
    """A tool class checks its schema without it, and the first call compiles it."""
    loaded = run(
        "import sys\n"
        "from noizu_mcp.schema import Schema, field, read_shape\n"
        "class Echo(Schema):\n"
        "    text: str = field(max_length=9)\n"
        "    repeat: int = field(default=1, min=1)\n"
        "compiled = read_shape(Echo)[0].compiled\n"
        "print('jsonschema_rs' in sys.modules)\n"
        "print(compiled.is_valid({'text': 'a'}), 'jsonschema_rs' in sys.modules)\n"
    )

    assert loaded.split() == ["False", "True", "True"]


def test_the_native_engine_loads_with_the_first_pattern() -> None:
    """An invalid pattern is an error of the class, so the engine compiles it at once."""
    loaded = run(
        "import sys\n"
        "from noizu_mcp.schema import check_schema\n"
        "check_schema({'type': 'string'})\n"
        "print('jsonschema_rs' in sys.modules)\n"
        "check_schema({'pattern': 'a'})\n"
        "print('jsonschema_rs' in sys.modules)\n"
    )

    assert loaded.split() == ["False", "True"]


def test_explanations_load_with_the_first_violation() -> None:
    """A schema without defaults, and a value that fits it, do not load them."""
    loaded = run(
        "import sys\n"
        "from noizu_mcp.schema import compile_schema\n"
        "compiled = compile_schema({'type': 'integer'})\n"
        "compiled.violations(1)\n"
        "print('noizu_mcp.schema.report._explain' in sys.modules)\n"
        "compiled.violations('x')\n"
        "print('noizu_mcp.schema.report._explain' in sys.modules)\n"
    )

    assert loaded.split() == ["False", "True"]


def test_a_call_loads_nothing_of_questions_tasks_callers_and_policies() -> None:
    """A tool that only answers loads none of them, in either era; nor does its list."""
    loaded = run(
        "import sys, trio\n"
        "from noizu_mcp import Context, Server, Tool, connect\n"
        "class Echo(Tool):\n"
        "    async def call(self, args, ctx: Context) -> str:\n"
        "        return 'hi'\n"
        "class Demo(Server, name='demo', version='1'):\n"
        "    tools = [Echo]\n"
        "async def call(version):\n"
        "    async with connect(Demo, version=version) as client:\n"
        "        await client.list_tools()\n"
        "        await client.call_tool('echo')\n"
        "trio.run(call, '2025-11-25')\n"
        "trio.run(call, '2026-07-28')\n"
        "rooms = ('noizu_mcp.server.asking._', 'noizu_mcp.server.tasks._')\n"
        "rooms += ('noizu_mcp.server.policies._', 'noizu_mcp.server.calls._polic')\n"
        "print(*(name for name in sys.modules if name.startswith(rooms)))\n"
    )

    assert set(loaded.split()) == {
        "noizu_mcp.server.asking._seal",
        "noizu_mcp.server.policies._policy_set",
        "noizu_mcp.server.tasks._task_change",
    }


def test_the_cipher_loads_with_the_first_sealed_state() -> None:
    """A server without questions, or with clients of earlier revisions, does not load it."""
    loaded = run(
        "import sys, trio\n"
        "from noizu_mcp import ClientHandler, Context, Decline, Schema, Server, Tool, connect\n"
        "class Form(Schema):\n"
        "    name: str\n"
        "class Ask(Tool):\n"
        "    async def call(self, args, ctx: Context) -> str:\n"
        "        return (await ctx.elicit('Who?', Form)).action\n"
        "class Demo(Server, name='demo', version='1'):\n"
        "    tools = [Ask]\n"
        "class Handler(ClientHandler):\n"
        "    async def handle_elicitation(self, params):\n"
        "        return Decline()\n"
        "async def ask(version):\n"
        "    async with connect(Demo, handler=Handler(), version=version) as client:\n"
        "        await client.call_tool('ask')\n"
        "    print('cryptography' in sys.modules)\n"
        "trio.run(ask, '2025-11-25')\n"
        "trio.run(ask, '2026-07-28')\n"
    )

    assert loaded.split() == ["False", "True"]


@pytest.mark.slow
def test_the_libraries_of_verifiers_load_when_one_needs_them() -> None:
    """Neither importing the folder nor API keys load PyJWT or httpx2."""
    loaded = run(
        "import sys\n"
        "from noizu_mcp.auth import *\n"
        "BearerAuth(APIKeyVerifier({'a-key-of-some-length': Principal(subject='ci')}),\n"
        "    resource='https://mcp.example.com/mcp', authorization_servers=())\n"
        "print('jwt' in sys.modules, 'httpx2' in sys.modules)\n"
        "given = {'issuer': 'https://a.example', 'audience': 'https://b.example'}\n"
        "CompoundJWTVerifier('x' * 32, check_api_key=bool, **given)\n"
        "print('jwt' in sys.modules, 'httpx2' in sys.modules)\n"
        "JWTVerifier(jwks_uri='https://a.example/keys', **given)\n"
        "print('jwt' in sys.modules, 'httpx2' in sys.modules)\n"
    )

    assert loaded.split() == ["False", "False", "True", "False", "True", "True"]


def test_authorization_loads_with_the_first_auth() -> None:
    """An application without authorization does not load it."""
    loaded = run(
        "import sys\n"
        "from noizu_mcp import Server\n"
        "from noizu_mcp.transports.http import HttpApp, HttpOptions\n"
        "class Open(Server, name='open', version='1', requires='read'): pass\n"
        "HttpApp(Open(), HttpOptions())\n"
        "print('noizu_mcp.auth' in sys.modules)\n"
        "from noizu_mcp.auth import BearerAuth, Principal, StaticVerifier\n"
        "auth = BearerAuth(StaticVerifier({'token': Principal(subject='ada')}),\n"
        "    resource='https://mcp.example.com/mcp', authorization_servers=())\n"
        "HttpApp(Open(), HttpOptions(auth=auth))\n"
        "print('noizu_mcp.transports.http.server._authorization' in sys.modules)\n"
    )

    assert loaded.split() == ["False", "True"]


@pytest.mark.slow
def test_the_import_is_cheap() -> None:
    """The best of five imports costs less than `import trio`, in processor time."""
    code = (
        "from time import process_time as t\n"
        "a = t(); import trio; b = t(); import noizu_mcp; print((t() - b) / (b - a))"
    )

    assert min(float(run(code)) for _ in range(5)) <= RATIO
