"""Strategies for the tools of public servers: each has valid and invalid arguments."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noizu_mcp import SyncClient
from noizu_mcp.schema import compile_schema
from noizu_mcp.testing import Unsatisfiable, arguments, invalid_arguments
from noizu_mcp.types import ToolDefinition

from ..testing.drawing import draw
from .public_servers import SERVERS
from .test_public_servers import PATIENCE, command_of


def near_misses(tool: ToolDefinition) -> list[Any] | None:
    """Draw arguments that a tool refuses; None if it accepts every object."""
    try:
        return draw(invalid_arguments(tool), 5)
    except Unsatisfiable:
        return None


@pytest.mark.parametrize("name", SERVERS)
def test_tools_of_a_public_server(
    name: str, tmp_path: Path, node_package: Callable[[str], Path]
) -> None:
    """Each tool has valid arguments, and near misses that violate one keyword each."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    command = command_of(name, tmp_path, node_package)
    with SyncClient(command, probe_timeout=PATIENCE) as client:
        tools = client.list_tools()
    drawn = {tool.name: (draw(arguments(tool), 5), near_misses(tool)) for tool in tools}
    assert drawn
    assert [name for name, (fitting, broken) in drawn.items() if not fitting or broken == []] == []
    for tool in tools:
        schema = compile_schema(tool.input_schema)
        fitting, broken = drawn[tool.name]
        assert all(map(schema.is_valid, fitting)), tool.name
        assert {len(schema.violations(each)) for each in broken or []} <= {1}, tool.name
