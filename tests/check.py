"""The checks of the project: format, lint, types, tests and their coverage.

`python tests/check.py` runs all of them, as the CI does:

1. format and lint,
2. the quick tests, under coverage: they must reach every line and every branch,
3. the tests that are marked `slow`, without coverage: they show no other line, and tracing them
   and the processes that they start would take minutes,
4. types, beside the tests.

With `--quick` it leaves out the slow tests, and coverage. At the end it prints the seconds of each
step; all of them together end after 40 minutes.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A mistake that is found in a second is reported before the tests take minutes.
STATIC = ("ruff format --check", "ruff check --output-format concise")
# Runs beside the tests: it has one thread, and they often wait.
TYPES = "mypy"
# Compiles the tests. In a new clone every worker would do that, under coverage, which takes five
# times as long together.
COLLECT = "pytest --collect-only -qq"
# One worker more than there are cores, since many tests wait for a process or a timeout. Each
# begins with an equal part of the tests, so that fixtures of a module are made once, and a worker
# that has finished takes over tests of another one.
CORES = os.cpu_count() or 1
TESTS = "--dist worksteal --durations 10 --run-limit {seconds}"
QUICK = f'pytest -n {CORES + 1} {TESTS} -m "not slow"'
# The slow ones wait more, since they start programs.
SLOW = f"pytest -n {CORES + 2} {TESTS} -m slow"
COVERED = ("coverage erase", f"coverage run -m {QUICK}", "coverage combine -q", "coverage report")
USAGE = "usage: python tests/check.py [--quick]"
#: Seconds for all steps together; four times what an idle machine with two cores needs.
LIMIT = 40 * 60
#: Seconds for a pytest session over the limit to describe its state, and to end.
GRACE = 90
START = time.monotonic()


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
    # A background job of a shell ignores SIGINT, and so would its child processes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seconds: dict[str, float] = {}
    if not run(STATIC, seconds):
        return 1
    with subprocess.Popen(command(TYPES), cwd=ROOT, stdout=subprocess.PIPE, text=True) as types:
        try:
            if arguments:
                passed = run((QUICK,), seconds)
            else:
                passed = run((COLLECT,), seconds, quiet=True) and run((*COVERED, SLOW), seconds)
            print(f"$ python -m {TYPES}\n{types.communicate(timeout=left() + GRACE)[0]}", end="")
        except subprocess.TimeoutExpired:
            print(f"over its time limit: python -m {TYPES}", file=sys.stderr)
            passed = False
        finally:
            types.kill()
    print("\nseconds of each step:")
    for step, spent in {**seconds, "all": time.monotonic() - START}.items():
        print(f"{spent:7.1f}  {step}")
    return int(not passed or types.returncode != 0)


def left() -> float:
    """Return the seconds until the time limit."""
    return max(1.0, START + LIMIT - time.monotonic())


def run(steps: Iterable[str], seconds: dict[str, float], *, quiet: bool = False) -> bool:
    """Run steps up to the first that fails.

    Args:
        steps: Modules with their arguments.
        seconds: Where the time of each step is noted.
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
        words = step.format(seconds=round(left()))
        print(f"$ python -m {words}", flush=True)
        begun = time.monotonic()
        output = ""
        try:
            done = subprocess.run(
                command(words),
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE if quiet else None,
                text=True,
                check=False,
                timeout=left() + GRACE,
            )
            passed, output = done.returncode == 0, done.stdout or ""
        except subprocess.TimeoutExpired:
            print(f"over its time limit: python -m {words}", file=sys.stderr)
            passed = False
        seconds[words] = time.monotonic() - begun
        if not passed:
            print(output, end="")
            print(f"failed: python -m {words}", file=sys.stderr)
            return False
    return True


def command(step: str) -> list[str]:
    """Make the command line of a step."""
    return [sys.executable, "-m", *shlex.split(step)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
