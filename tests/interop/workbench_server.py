"""The workbench of the examples, with a tool that changes its files while a client is connected."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Literal

from noizu_mcp import Toolkit, mcp

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
sys.path.insert(0, str(EXAMPLES))

from workbench import Workbench  # noqa: E402  (an application, found beside the others)

# Removed when the process exits.
FOLDER = tempfile.TemporaryDirectory()
HOME = shutil.copytree(EXAMPLES / "workbench" / "home", Path(FOLDER.name) / "home")

SKILL = 'def run(who: str) -> str:\n    """Greet in {0}."""\n    return f"{1} {{who}}"\n'
TEXTS = {
    "english": SKILL.format("English", "Hello"),
    "german": SKILL.format("German", "Hallo"),
}


class Files(Toolkit):
    @mcp
    def put(self, language: Literal["english", "german", "none"]) -> str:
        """Write the file of the skill, or remove it."""
        file = Path(HOME) / "skills" / "greet.py"
        if language == "none":
            file.unlink()
        else:
            part = file.with_suffix(".part")
            part.write_text(TEXTS[language])
            part.replace(file)
        return language


class Changing(Workbench, name="workbench", version="1.0.0", tool_timeout=30.0):
    tools = [Files]

    def __init__(self) -> None:
        super().__init__(Path(HOME))
