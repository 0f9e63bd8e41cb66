"""The official clients close the connection while a call runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FIXTURE = Path(__file__).parent / "fixture_server.py"
SCENARIO = {"name": "abandon", "kind": "abandon", "tool": "endless"}
HANDSHAKE = {"kind": "handshake", "version": "2025-11-25"}
PIN = {"kind": "pin", "version": "2026-07-28"}


@pytest.mark.parametrize(
    ("client", "negotiation"),
    [
        pytest.param("python", PIN, id="python-2026-07-28"),
        pytest.param("typescript-2", HANDSHAKE, id="typescript-2-2025-11-25"),
    ],
)
def test_abandoned_call(
    client: str,
    negotiation: dict[str, str],
    drive: Callable[[str, list[dict[str, Any]]], dict[str, Any]],
    serve_command: Callable[[str], list[str]],
    tmp_path: Path,
):
    """The call is cancelled and the lifespan ends, before the client kills the server."""
    journal = tmp_path / "journal"
    connection = {
        **negotiation,
        "label": "abandoned",
        "command": serve_command(f"{FIXTURE}:Interop"),
        "journal": str(journal),
        "scenarios": [SCENARIO],
    }
    assert drive(client, [connection]) == {"abandoned": {"abandon": True}}
    assert journal.read_text().splitlines() == ["started", "cancelled True", "ended"]
