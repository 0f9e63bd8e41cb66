"""The commands of the README work as described."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)


def test_set_up_takes_two_commands() -> None:
    """There are two commands of one line each; the CI runs the second."""
    demo, checks = COMMANDS

    assert demo.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e . && ")
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == checks
    assert (ROOT / shlex.split(checks)[-1]).is_file()


def test_the_demo_shows_the_exchange() -> None:
    """The first command prints the messages on stderr and the answer on stdout."""
    scripts = str(Path(sys.executable).parent)
    words = shlex.split(COMMANDS[0].rpartition(" && ")[2].replace(".venv/bin", scripts))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    shown = re.search(r"^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)

    assert shown is not None
    *expected, answer = shown[1].splitlines()
    assert done.stdout.splitlines() == [answer]
    for line, got in zip(expected, done.stderr.splitlines()[-2:], strict=True):
        assert re.fullmatch(".*".join(map(re.escape, line.split("…"))), got)
