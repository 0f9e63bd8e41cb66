"""The example of a whole application, with files of its own for each test."""

import importlib
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .workbench_kit import EXAMPLES


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a new workbench with the sample files."""
    return Path(shutil.copytree(EXAMPLES / "workbench" / "home", tmp_path / "home"))


@pytest.fixture
def made(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Make the server of the workbench."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module = importlib.import_module("workbench")
    yield lambda: module.Workbench(home)
    assert logging.getLogRecordFactory() is logging.LogRecord
