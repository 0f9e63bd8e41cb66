"""The checks of the project: format, lint, types, tests and their coverage.

`python tests/check.py` runs all of them, as the CI does:

1. format and lint,
2. the quick tests, under coverage: they must reach every line and every branch,
3. the tests that are marked `slow`, without coverage: they show no other line, and tracing them
   and the processes that they start would take minutes,
4. types, beside the tests.

With `--quick` it leaves out the slow tests, and coverage.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A mistake that is found in a second is reported before the tests take minutes.
STATIC = ("ruff format --check", "ruff check --output-format concise")
# Runs beside the tests: it has one thread, and they wait a good deal.
TYPES = "mypy"
# Compiles the tests. In a new clone every worker would do that, under coverage, which takes five
# times as long together.
COLLECT = "pytest --collect-only -qq"
# A worker more than there are cores, since many tests wait for a process or a timeout. Each begins
# with an equal part of the tests, so that fixtures of a module are made once, and a worker that has
# finished takes over tests of another one.
CORES = os.cpu_count() or 1
QUICK = f'pytest -n {CORES + 1} --dist worksteal -m "not slow"'
# The slow ones wait more: they start programs.
SLOW = f"pytest -n {CORES + 2} --dist worksteal -m slow"
COVERED = ("coverage erase", f"coverage run -m {QUICK}", "coverage combine -q", "coverage report")
USAGE = "usage: python tests/check.py [--quick]"


def main(arguments: list[str]) -> int:
    """Run the steps with the interpreter that runs this file.

    Args:
        arguments: The words of the command line.

    Returns:
        0 if everything has passed, 1 if a step failed, 2 for a wrong command line.
    """
    if arguments not in ([], ["--quick"]):
        print(USAGE, file=sys.stderr)
        return 2
    if not run(STATIC):
        return 1
    with subprocess.Popen(command(TYPES), cwd=ROOT, stdout=subprocess.PIPE, text=True) as types:
        if arguments:
            passed = run((QUICK,))
        else:
            passed = run((COLLECT,), quiet=True) and run((*COVERED, SLOW))
        print(f"$ python -m {TYPES}\n{types.communicate()[0]}", end="")
    return int(not passed or types.returncode != 0)


def run(steps: Iterable[str], *, quiet: bool = False) -> bool:
    """Run steps up to the first that fails.

    Args:
        steps: Modules with their arguments.
        quiet: Whether only the output of a step that fails is printed.

    Returns:
        Whether all have passed.
    """
    # Tests start `noizu-mcp` by name: the scripts of this environment come first.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "PATH": path}
    # Tests start hundreds of processes that import the package; each would compile it.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for step in steps:
        print(f"$ python -m {step}", flush=True)
        done = subprocess.run(
            command(step),
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE if quiet else None,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            print(done.stdout or "", end="")
            print(f"failed: python -m {step}", file=sys.stderr)
            return False
    return True


def command(step: str) -> list[str]:
    """Make the command line of a step."""
    return [sys.executable, "-m", *shlex.split(step)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
