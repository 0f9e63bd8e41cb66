"""Programs that measure something inside one process and print it."""

import json
import subprocess
from collections.abc import Sequence

from ._harness import Sample
from ._peers import ROOT, SERVERS, environment

#: Seconds until a program is given up.
PATIENCE = 300


def output(command: Sequence[str]) -> str:
    """Run a program and return what it printed; raises RuntimeError with its last words."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=environment(),
        cwd=ROOT,
    )
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it said nothing"])[-1])
    return done.stdout


def sample(python: str, script: str, *arguments: object) -> Sample:
    """Run one of the programs in `servers` and return the figures that it printed."""
    figures: Sample = json.loads(output([python, str(SERVERS / script), *map(str, arguments)]))
    return figures
