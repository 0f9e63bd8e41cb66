"""The code of every page runs, in the order of the page, and prints the output on the page.

A block ```` ```python ```` is run; `raises=Name` after it names the exception that it must raise.
The lines of a block ```` ```sh ```` that begin with `noizu-mcp` are run as commands, in the top
folder. A block ```` ```output ```` holds the output of the block before it, or the text of its
exception; `…` in it stands for any text. A block with `needs=NAME` runs where the library is
installed. All blocks of a page share one namespace. Statements that wait run in a `main` of their
own.
"""

import ast
import contextlib
import inspect
import io
import linecache
import logging
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import trio

from noizu_mcp.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)[ ]*(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Every language that a page may use, so that a misspelt one cannot hide a block from this test.
SHOWN = ("text", "json", "toml", "pyi", "mermaid")


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


def halves(block: ast.Module) -> tuple[ast.Module, ast.Module]:
    """Split a block where it begins to wait; the rest goes into `main`, as docs/index.md says."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for at, statement in enumerate(block.body):
        alone = compile(ast.Module([statement], []), "app.py", "exec", flags=flags)
        if alone.co_flags & inspect.CO_COROUTINE:
            main = ast.parse("async def main(): ...")
            main.body[0].body = block.body[at:]  # type: ignore[attr-defined]
            return ast.Module(block.body[:at], []), main
    return block, ast.Module([], [])


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
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            text = self._python(block) if block.language == "python" else self._commands(block)
        return text + out.getvalue()

    def _python(self, block: Block) -> str:
        self.monkeypatch.chdir(self.folder)
        Path("app.py").write_text(block.text, encoding="utf-8")
        linecache.clearcache()  # the file of the block before had the same name
        name = block.note.removeprefix("raises=") if "raises=" in block.note else ""
        try:
            self._execute(block.text)
        except Exception as error:
            if type(error).__name__ != name:
                raise
            return str(error)
        assert not name, f"nothing raised {name}"
        return ""

    def _execute(self, text: str) -> None:
        top, waiting = halves(ast.parse(text, "app.py"))
        exec(compile(top, "app.py", "exec"), vars(self.module))
        if waiting.body:
            exec(compile(waiting, "app.py", "exec"), vars(self.module))
            trio.run(vars(self.module)["main"])

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
    yield Runner(tmp_path, monkeypatch)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and "examples" in str(
            sys.modules[name].__file__
        ):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_a_page(page: Path, runner: Runner) -> None:
    """Every block runs, and prints the text of the output block after it."""
    printed = ""
    missing = False
    for block in blocks_of(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.language != "output":
            library = block.note.removeprefix("needs=") if "needs=" in block.note else "noizu_mcp"
            missing = find_spec(library) is None
        if missing:
            continue
        if block.language == "output":
            assert matches(block.text, printed), f"{where}: it printed\n{printed}"
        elif block.language in {"python", "sh"}:
            try:
                printed = runner.run(block)
            except BaseException as error:
                error.add_note(where)
                raise
        else:
            assert block.language in SHOWN, f"{where}: unknown language {block.language!r}"


def test_blocks_are_found() -> None:
    """The pages are there, and the pattern sees their blocks."""
    languages = [block.language for page in PAGES for block in blocks_of(page)]
    fences = sum(page.read_text(encoding="utf-8").count("\n```") for page in PAGES)

    assert {"python", "output", "sh", "json"} <= set(languages)
    assert fences == 2 * len(languages)
