"""Mutants: small changes of the code, which nearly all must be detected by the tests.

    python tests/mutants.py
    python tests/mutants.py --count 10 --only noizu_mcp/protocol

It draws changes of the central parts of the package, the same for the same seed and code. First the
quick tests of these parts run under coverage, which records the lines of each test. Then each
change is made in a copy of the tree, and the tests that run its line run on it, tests with the
fewest lines first. A change is killed when a test fails or does not end.

The last line has the killed share; the status is 1 below `WANTED`. A change that survives is a
missing test, or makes no difference.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest
from coverage import Coverage, CoverageData

ROOT = Path(__file__).resolve().parents[1]
#: The parts that are changed, and their tests.
AREAS = {
    "noizu_mcp/protocol": ("tests/protocol", "tests/behaviour", "tests/transports/http"),
    "noizu_mcp/engine": ("tests/engine", "tests/server", "tests/behaviour"),
    "noizu_mcp/server/calls": ("tests/server", "tests/behaviour", "tests/authorization"),
    "noizu_mcp/transports/host": ("tests/transports/host", "tests/transports/http"),
}
#: The share of the mutants that must be killed.
WANTED = 0.92
#: Seconds for one test, and for all tests of a mutant; after them it counts as killed.
TEST_LIMIT, LIMIT = 60, 900
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "node_modules", "__pycache__", ".*_cache")

SWAPS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
}
#: Conditions that are changed themselves.
TURNED = (ast.Compare, ast.UnaryOp, ast.Constant)
#: Fields of nodes without effect at run time, or whose parts have no position in a file.
UNREAD = {"annotation", "returns", "decorator_list", "args", "type_params"}
#: Calls without an effect that a test could assert.
QUIET = ("logger.", "trio.lowlevel.checkpoint", "trio.lowlevel.cancel_shielded_checkpoint")


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    node: ast.AST
    change: ast.AST

    def __str__(self) -> str:
        """Return the place and the change in one line."""
        texts = (" ".join(ast.unparse(each).split()) for each in (self.node, self.change))
        before, after = (text if len(text) <= 60 else f"{text[:57]}..." for text in texts)
        return f"{self.file}:{self.node.lineno}: {before}  ->  {after}"

    def apply(self, source: bytes) -> bytes:
        """Return the source with the change."""
        lines = source.splitlines(keepends=True)
        first, last = self.node.lineno - 1, self.node.end_lineno - 1
        text = ast.unparse(self.change)
        if isinstance(self.change, ast.expr):
            text = f"({text})"
        head, tail = lines[first][: self.node.col_offset], lines[last][self.node.end_col_offset :]
        return b"".join([*lines[:first], head, text.encode(), tail, *lines[last + 1 :]])


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield nodes and their replacements."""
    if isinstance(node, ast.stmt):
        yield from changed_statements(node)
    match node:
        case ast.Compare(left, [op], right) if type(op) in SWAPS:
            yield node, ast.Compare(left, [SWAPS[type(op)]()], right)
        case ast.BoolOp(op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            change = copy.copy(node)
            change.op = SWAPS[type(op)]()
            yield node, change
        case ast.UnaryOp(ast.Not(), operand):
            yield node, operand
        case ast.Constant(bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(int(value)):
            yield node, ast.Constant(value + 1)


def changed_statements(node: ast.stmt) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield a statement or parts of it, and their replacements."""
    match node:
        case ast.If(test) | ast.While(test) if not isinstance(test, TURNED):
            yield test, ast.UnaryOp(ast.Not(), test)
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await() as value):
            if not ast.unparse(value).removeprefix("await ").startswith(QUIET):
                yield node, ast.Pass()
        case ast.Raise():
            yield node, ast.Pass()
        case ast.Break():
            yield node, ast.Continue()
        case ast.Continue():
            yield node, ast.Break()


def mutants(file: Path) -> Iterator[Mutant]:
    """Yield all changes of the functions of a file."""

    def visit(node: ast.AST, inside: bool) -> Iterator[Mutant]:
        if inside:
            for place, change in changes(node):
                yield Mutant(file.relative_to(ROOT).as_posix(), place, change)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name, value in ast.iter_fields(node):
            if name in UNREAD and not isinstance(node, ast.Call):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from visit(child, inside)

    yield from visit(ast.parse(file.read_bytes()), inside=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Record which test runs a line; this file is a plugin of pytest in the first run."""
    coverage = Coverage.current()
    coverage.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        coverage.switch_context("")


class Tree:
    """A copy of the tree, in which one mutant at a time is tested."""

    def __init__(self, folder: Path) -> None:
        """Copy the tree into a new folder."""
        self.path = folder
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)

    def run(self, *words: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        """Run a module in the copy, with the copy of the package."""
        paths = os.pathsep.join([str(self.path), str(self.path / "tests")])
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.path,
            env={**os.environ, "PYTHONPATH": paths, "COVERAGE_CORE": "ctrace"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
        )

    def cover(self, folders: list[str]) -> dict[str, dict[int, list[str]]]:
        """Run quick tests; return the tests of each line of each file, by number of the line."""
        words = ("pytest", "-p", "mutants", "-m", "not slow", *folders)
        for step in (("erase",), ("run", "-m", *words), ("combine", "-q")):
            done = self.run("coverage", *step)
            if done.returncode != 0:
                sys.exit(f"the tests fail without a change:\n{done.stdout[-5000:]}")
        data = CoverageData(str(self.path / ".coverage"))
        data.read()
        lines: dict[str, dict[int, list[str]]] = {}
        sizes: dict[str, int] = defaultdict(int)
        for file in data.measured_files():
            found = data.contexts_by_lineno(file)
            lines[Path(file).relative_to(self.path).as_posix()] = found
            for test in (test for tests in found.values() for test in tests):
                sizes[test] += 1
        sizes.pop("", None)
        return {
            file: {
                line: sorted((test for test in tests if test), key=lambda test: sizes[test])
                for line, tests in found.items()
            }
            for file, found in lines.items()
        }

    def kills(self, mutant: Mutant, tests: list[str]) -> bool:
        """Test a mutant; return whether the tests detect it."""
        file = self.path / mutant.file
        source = file.read_bytes()
        names = self.path / "mutant-tests.txt"
        names.write_text("\n".join(tests), encoding="utf-8")
        try:
            self._write(file, mutant.apply(source))
            limit = ("--time-limit", f"{TEST_LIMIT}")
            done = self.run(
                "pytest", "-x", "-p", "no:cacheprovider", *limit, f"@{names}", timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return True
        finally:
            self._write(file, source)
        return done.returncode != 0

    def _write(self, file: Path, source: bytes) -> None:
        file.write_bytes(source)
        # A change with the same size and time stamp would not be seen by the interpreter.
        for cached in file.parent.glob(f"__pycache__/{file.stem}.*"):
            cached.unlink()


def main() -> int:
    """Draw mutants, test them and print the result of each."""
    parser = argparse.ArgumentParser(description="test small changes of the code")
    parser.add_argument("--count", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice (1)")
    parser.add_argument("--only", default="", metavar="PATH", help="files whose paths begin so")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (1)")
    given = parser.parse_args()
    files = (file for area in AREAS for file in sorted((ROOT / area).rglob("*.py")))
    found = [mutant for file in files for mutant in mutants(file)]
    found = [mutant for mutant in found if mutant.file.startswith(given.only)]
    drawn = random.Random(given.seed).sample(found, min(given.count, len(found)))
    areas = [area for area in AREAS if any(each.file.startswith(area) for each in drawn)]
    folders = list(dict.fromkeys(folder for area in areas for folder in AREAS[area]))
    with tempfile.TemporaryDirectory() as folder:
        trees: SimpleQueue[Tree] = SimpleQueue()
        first = Tree(Path(folder, "0"))
        lines = first.cover(folders)
        for tree in [first, *(Tree(Path(folder, f"{n}")) for n in range(1, given.jobs))]:
            trees.put(tree)

        def test(mutant: Mutant) -> bool:
            tests = lines.get(mutant.file, {}).get(mutant.node.lineno, [])
            tree = trees.get()
            try:
                killed = bool(tests) and tree.kills(mutant, tests)
            finally:
                trees.put(tree)
            print(f"{'killed  ' if killed else 'survived'} {mutant}", flush=True)
            return killed

        with ThreadPoolExecutor(given.jobs) as pool:
            killed = sum(pool.map(test, drawn))
    part = killed / len(drawn)
    print(f"{killed} of {len(drawn)} killed: {part:.0%}, wanted are {WANTED:.0%}")
    return int(part < WANTED)


if __name__ == "__main__":
    sys.exit(main())
