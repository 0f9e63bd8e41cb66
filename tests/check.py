"""Every check of the project, in order, up to the first that fails: `python tests/check.py`."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What is cheap to mend comes before what takes minutes.
STEPS = (
    "ruff format --check",
    "ruff check --output-format concise",
    "mypy",
    "coverage erase",
    "coverage run -m pytest",
    "coverage combine -q",
    "coverage report",
)


def main() -> int:
    """Run the steps with the interpreter that runs this.

    Returns:
        0, or the exit status of the step that failed.
    """
    # Tests start `noizu-mcp` by name: the scripts of this environment come first.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    for step in STEPS:
        print(f"$ python -m {step}", flush=True)
        command = [sys.executable, "-m", *shlex.split(step)]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, check=False)
        if done.returncode != 0:
            print(f"failed: python -m {step}", file=sys.stderr)
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
