"""Runs the benchmarks as users do, and makes their modules importable."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
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


@pytest.fixture(scope="session")
def measured(benchmarks) -> Callable[..., dict[str, Any]]:
    """Measure one benchmark for moments; returns its report."""

    def run(name: str, *peers: str) -> dict[str, Any]:
        tiny = ["--rounds", "1", "--seconds", "0.01", "--json"]
        done = benchmarks("--only", name, *tiny, "--peers", *peers)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def harness(monkeypatch):
    """Return the module of rounds and tables."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import _harness

    return _harness
