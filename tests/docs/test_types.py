"""Type checkers of users find the package after the documented install."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
from noizu_mcp import Content, ToolResult

ToolResult([Content.text("x")], structured={"a": 1})
ToolResult(is_error="yes")
Content.nothing
"""


def wrong_lines(folder: Path, *command: str) -> list[int]:
    """Run a type checker on the program, outside of the clone.

    Args:
        folder: An empty folder.
        command: The module that is the checker, and its options.

    Returns:
        The line of every error.
    """
    (folder / "app.py").write_text(PROGRAM, encoding="utf-8")
    # No variable may point to the clone: only the install does.
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", *command, "app.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(line) for line in re.findall(r"app\.py:(\d+):.*error: ", done.stdout)]


@pytest.fixture
def node() -> None:
    """Skip without Node.js, which runs pyright."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")


@pytest.mark.slow
@pytest.mark.time_limit(360)
def test_mypy_finds_the_types(tmp_path: Path) -> None:
    """An installed package has types for mypy, without settings."""
    assert wrong_lines(tmp_path, "mypy", "--strict") == [4, 5]


@pytest.mark.slow
@pytest.mark.usefixtures("node")
def test_pyright_finds_the_types(tmp_path: Path) -> None:
    """An installed package has types for pyright, without settings."""
    assert wrong_lines(tmp_path, "pyright", "--pythonpath", sys.executable) == [4, 5]


@pytest.mark.slow
@pytest.mark.usefixtures("node")
@pytest.mark.time_limit(360)
def test_examples_pass_pyright() -> None:
    """The examples pass pyright in strict mode."""
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.split(",")[0]) == (0, "0 errors"), done.stdout
