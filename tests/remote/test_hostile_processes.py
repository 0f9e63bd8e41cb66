"""Hostile servers over stdio: their floods use little memory, and do not affect other servers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .hostile import FLOOD, FLOODS

PROGRAM = Path(__file__).with_name("flooded.py")
#: The worst ones for a process; none waits for a timeout.
WORST = (
    "garbage",
    "the_end_at_once",
    "answers_to_other_requests",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def run(mode, names):
    """Run the program; return its output and its log."""
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, PROGRAM, mode, *names],
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("mode", ["several", "gateway"])
def test_floods_take_no_memory(mode):
    """A process keeps a small part of what its servers send, and reads on to their answers."""
    names = [*FLOODS, *WORST, "good"]
    told, log = run(mode, names)

    assert told["grew"] < 50_000_000 < FLOOD * len(FLOODS) / 3
    assert told["told"].keys() == {*names}
    answered = {name for name, text in told["told"].items() if text == "fine"}
    assert answered >= {*FLOODS, "good"} - {"pages_of_a_flood"}
    assert "tools/list has more than 4000000 bytes" in log
