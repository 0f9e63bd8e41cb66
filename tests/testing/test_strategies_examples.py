"""Every tool of the examples accepts the arguments that its schema allows, and no others."""

import re
from pathlib import Path

import pytest

from noizu_mcp.testing import SessionMachine

from .drawing import run_machine

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
# `fastapi_app.py` is served by an application: its tools need the state of that. The other two have
# the tools of other servers.
SERVERS = [
    f"{path.name}:{name}"
    for path in sorted(EXAMPLES.glob("*.py"))
    if path.stem not in ("fastapi_app", "gateway", "petstore")
    for name in re.findall(r"^class (\w+)\(Server", path.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("name", SERVERS)
def test_sessions_with_an_example(name, version):
    """Whatever a client calls, reads and gets, in any order, no example crashes."""
    pytest.importorskip("pydantic")
    target = f"{EXAMPLES / name}"
    run_machine(type("Sessions", (SessionMachine,), {"target": target, "version": version}), 4)
