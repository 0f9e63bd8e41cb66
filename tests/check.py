"""The checks of the project, in order, up to the first that fails.

`python tests/check.py` runs all of them, as the CI does. With `--quick` it leaves out the tests
that are marked `slow`, and coverage.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A mistake that is found in seconds is reported before the tests take minutes.
STATIC = ("ruff format --check", "ruff check --output-format concise", "mypy")
# A worker more than there are cores, since many tests wait for a process or a timeout. Each begins
# with an equal part of the tests, so that fixtures of a module are made once, and a worker that has
# finished takes over tests of another one.
TESTS = f"pytest -n {(os.cpu_count() or 1) + 1} --dist worksteal"
FULL = (
    *STATIC,
    "coverage erase",
    f"coverage run -m {TESTS}",
    "coverage combine -q",
    "coverage report",
)
QUICK = (*STATIC, f'{TESTS} -m "not slow"')
USAGE = "usage: python tests/check.py [--quick]"


def main(arguments: list[str]) -> int:
    """Run the steps with the interpreter that runs this file.

    Args:
        arguments: The words of the command line.

    Returns:
        0, or the exit status of the step that failed.
    """
    if arguments not in ([], ["--quick"]):
        print(USAGE, file=sys.stderr)
        return 2
    # Tests start `noizu-mcp` by name: the scripts of this environment come first.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    for step in QUICK if arguments else FULL:
        print(f"$ python -m {step}", flush=True)
        command = [sys.executable, "-m", *shlex.split(step)]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, check=False)
        if done.returncode != 0:
            print(f"failed: python -m {step}", file=sys.stderr)
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
