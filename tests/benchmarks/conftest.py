"""Runs the benchmarks as users do, and makes their modules importable."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def benchmarks() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python -m benchmarks` with arguments."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "benchmarks", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def harness(monkeypatch):
    """Return the module of rounds and tables."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import _harness

    return _harness


def some_of(cases: Iterable[Any]) -> list[Any]:
    """Choose cases so that each row, each revision and each kind of table has one.

    Every row in every table would start thirty servers for one benchmark; each of these three
    selects other lines of the program.
    """

    def traits(case: Any) -> set[tuple[str, str]]:
        kind, _, year = case.table.name.partition(" 20")
        return {("row", case.row), ("kind", kind), ("revision", year)}

    left, chosen = list(cases), []
    needed = set().union(*map(traits, left))
    while needed:
        case = max(left, key=lambda each: len(traits(each) & needed))
        chosen.append(case)
        needed -= traits(case)
    return chosen


@pytest.fixture
def measured(harness, monkeypatch) -> Callable[..., Any]:
    """Measure some cases of one benchmark briefly; return them, and the results."""
    from benchmarks import bench_fanout, bench_sessions
    from benchmarks.__main__ import BENCHMARKS
    from benchmarks._peers import PEERS

    monkeypatch.setattr(bench_fanout, "CLIENTS", 10)
    monkeypatch.setattr(bench_sessions, "SESSIONS", 20)
    monkeypatch.setattr(bench_sessions, "WARM_UP", 5)

    def run(name: str, *peers: str) -> tuple[list[Any], Any]:
        settings = harness.Settings({peer: PEERS[peer] for peer in peers}, 0.01)
        cases = some_of(BENCHMARKS[name].cases(settings))
        return cases, harness.run([harness.Benchmark(name, lambda _: cases)], settings, 1)

    return run
