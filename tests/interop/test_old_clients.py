"""The official clients request 2024-11-05, which our server does not support."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reports import call, look_up, mode, texts

FIXTURE = Path(__file__).parent / "fixture_server.py"
SCENARIOS = [{"name": "handshake", "kind": "handshake"}, call("echo", message="hi")]


@pytest.mark.parametrize("client", ["python", "typescript-2", "typescript-1"])
def test_an_old_client_is_served(
    client: str,
    drive: Callable[[str, list[dict[str, Any]]], dict[str, Any]],
    where: Callable[[str, str, str], dict[str, Any]],
    tmp_path: Path,
):
    """The answer has the newest revision with a handshake, which the client uses."""
    connections = [
        {
            **mode("handshake", "2024-11-05", label=transport),
            **where(transport, f"{FIXTURE}:Interop", str(tmp_path / transport)),
            "scenarios": SCENARIOS,
        }
        for transport in ("stdio", "http")
    ]
    reports = drive(client, connections)

    for transport in ("stdio", "http"):
        seen = look_up(reports[transport])
        assert seen("handshake")["version"] == "2025-11-25"
        assert texts(seen("echo")) == ["hi"]
