"""The names on the page for contributors exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.*) \| `pytest (.*)` \|$", PAGE, re.MULTILINE)


def test_every_layer_has_a_command() -> None:
    """The table lists each folder of the package once."""
    layers = {path.parent.name for path in (ROOT / "noizu_mcp").glob("*/__init__.py")}
    listed = [name for names, _ in ROWS for name in re.findall(r"`(\w+)`", names)]

    assert sorted(layers | {"docs", "benchmarks"}) == sorted(listed)


def test_the_commands_name_folders_of_tests() -> None:
    """Every folder after `pytest` has tests."""
    folders = {folder for _, command in ROWS for folder in command.split()}

    assert [folder for folder in folders if not any((ROOT / folder).rglob("test_*.py"))] == []
