"""The pages for users of other packages use names that exist there."""

import importlib.util
import re
from pathlib import Path

import pytest

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"


def source_of(package: str) -> str:
    """Read the whole source of an installed package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    files = Path(spec.origin).parent.rglob("*.py")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize(
    ("page", "packages"), [("from-fastmcp", ["fastmcp"]), ("from-mcp", ["mcp", "mcp_types"])]
)
def test_the_names_in_the_tables_exist(page: str, packages: list[str]) -> None:
    """Each call, keyword and attribute in the first column is a word in their source."""
    text = (HOW_TO / f"{page}.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    code = " ".join(re.findall(r"`([^`]*)`", " ".join(cells)))
    names = set(re.findall(r"\b[A-Za-z_]\w{3,}(?=[(=])|(?<=\.)[a-z_]{4,}\b", code))
    known = set(re.findall(r"\w+", "".join(map(source_of, packages))))

    assert len(names) > 25
    assert names - known - {"main", "example"} == set()  # two words of the programs themselves
