"""The code of every page runs, in the order of the page, and prints the output on the page.

A block ```` ```python ```` is run; `raises=Name` after it names the exception that it must raise,
`needs=name` a package without which it is left out, with its output, `file=name` the file that it
stands in, for pages about several files.
The lines of a block ```` ```sh ```` that begin with `noizu-mcp` are run as commands, in the top
folder. A block ```` ```output ```` holds the output of the block before it, or the text of its
exception; `…` in it stands for any text. All blocks of a page share one namespace, as if a reader
had written them one below the other into `app.py`.
"""

import contextlib
import importlib.util
import io
import linecache
import logging
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings

from noizu_mcp.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)[ ]*(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Every language of the pages, so that a misspelt one cannot exclude a block from this test.
SHOWN = ("text", "json", "toml", "pyi", "mermaid", "dockerfile", "ini")
# What Hypothesis adds to a failing example varies between runs, and on CI machines.
settings.register_profile("pages", print_blob=False, phases=set(Phase) - {Phase.explain})


class Block(NamedTuple):
    """One fenced block."""

    language: str
    note: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [Block(*m.groups(), text.count("\n", 0, m.start()) + 1) for m in found]


def matches(expected: str, got: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, got.strip(), re.DOTALL) is not None


def notes_of(block: Block) -> dict[str, str]:
    """Read the words after the language of a block: `raises=Name`, `needs=name`, `file=name`."""
    return dict(re.findall(r"(raises|needs|file)=([\w.]+)(?: |$)", block.note))


def is_left_out(block: Block) -> bool:
    needed = notes_of(block).get("needs")
    return needed is not None and importlib.util.find_spec(needed) is None


class Printed(io.StringIO):
    """Collects the output of a block, also bytes."""

    @property
    def buffer(self) -> "Printed":
        return self

    def write(self, text: str | bytes) -> int:
        return super().write(text if isinstance(text, str) else text.decode())


class Runner:
    """Runs the blocks of one page in a module `app`, whose file is `app.py`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.module = ModuleType("app")
        self.module.__file__ = str(folder / "app.py")
        monkeypatch.setitem(sys.modules, "app", self.module)

    def run(self, block: Block) -> str:
        out = Printed()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            warnings.catch_warnings(),
        ):
            if "needs" in notes_of(block):
                warnings.simplefilter("ignore")  # other packages are not under test
            text = self._python(block) if block.language == "python" else self._commands(block)
        return text + out.getvalue()

    def _python(self, block: Block) -> str:
        self.monkeypatch.chdir(self.folder)
        Path("app.py").write_text(block.text, encoding="utf-8")
        linecache.clearcache()  # the file of the previous block had the same name
        name = notes_of(block).get("raises")
        try:
            exec(compile(block.text, "app.py", "exec"), vars(self.module))
        except Exception as error:
            if type(error).__name__ != name:
                raise
            return str(error)
        assert name is None, f"nothing raised {name}"
        return ""

    def _commands(self, block: Block) -> str:
        self.monkeypatch.chdir(ROOT)
        for line in block.text.splitlines():
            words = shlex.split(line)
            if words[:1] == ["noizu-mcp"] and words[1] != "run":
                main(words[1:])
        return ""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(logging.getLogger("noizu_mcp"), "handlers", [])
    # Commands are started by name; the scripts of this interpreter must be found first.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    profile = settings.get_current_profile_name()
    settings.load_profile("pages")
    yield Runner(tmp_path, monkeypatch)
    settings.load_profile(profile)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and "examples" in str(
            sys.modules[name].__file__
        ):
            del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_a_page(page: Path, runner: Runner) -> None:
    """Every block runs, and prints the text of the output block after it."""
    printed: str | None = ""
    for block in blocks_of(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.language == "output":
            assert printed is None or matches(block.text, printed), f"{where}: printed\n{printed}"
        elif is_left_out(block):
            printed = None
        elif block.language in {"python", "sh"}:
            try:
                printed = runner.run(block)
            except BaseException as error:
                error.add_note(where)
                raise
        else:
            assert block.language in SHOWN, f"{where}: unknown language {block.language!r}"


@pytest.mark.slow
@pytest.mark.time_limit(360)
def test_the_tests_of_a_page_pass(tmp_path: Path) -> None:
    """The files of the page about pytest, with its configuration, are a suite that passes."""
    server, *others = blocks_of(ROOT / "docs" / "how-to" / "pytest.md")
    (tmp_path / "app.py").write_text(server.text, encoding="utf-8")
    for block in (each for each in others if each.language != "text"):
        name = "pyproject.toml" if block.language == "toml" else notes_of(block).get("file")
        assert name is not None, block.line
        (tmp_path / name).write_text(block.text, encoding="utf-8")
    # The page has no file of the contract.
    options = ("-q", "-p", "no:cacheprovider", "--mcp-update")
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    assert "48 passed" in done.stdout


def test_blocks_are_found() -> None:
    """The pages exist, and the pattern finds their blocks."""
    languages = [block.language for page in PAGES for block in blocks_of(page)]
    fences = sum(page.read_text(encoding="utf-8").count("\n```") for page in PAGES)

    assert {"python", "output", "sh", "json"} <= set(languages)
    assert fences == 2 * len(languages)
