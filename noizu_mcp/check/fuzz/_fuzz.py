"""`fuzz` calls everything that a server offers; `replay` repeats the steps of a finding."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import Final

import trio

from ..._errors import TransportError
from ..._value import JSON
from ...engine import single_failure
from ...transports import Http, Stdio
from ._case import Finding, Listed
from ._checks import CHECKS
from ._fuzzed_server import FuzzedServer, FuzzTarget, Reached
from ._probes import discover, find
from ._report import Report

#: Seconds for a whole run, and for one answer.
BUDGET: Final = 30.0
TIMEOUT: Final = 5.0
#: Valid values with which each component is called.
EXAMPLES: Final = 100


def read_target(target: FuzzTarget) -> Reached:
    """Return the command or the URL that a text names; other targets unchanged.

    Args:
        target: `module:Server`, `path/to/file.py:Server`, a URL, or a command. A text that names a
            Python server becomes a command, whose process may crash or hang.
    """
    if not isinstance(target, str):
        return target
    if "://" in target:
        return Http(target)
    words = (sys.executable, "-m", __name__.partition(".")[0], "run", target)
    # With the variables of this program.
    return Stdio(*words, env=dict(os.environ))


async def fuzz(
    target: FuzzTarget,
    *,
    seed: int = 0,
    budget: float = BUDGET,
    timeout: float = TIMEOUT,
    examples: int = EXAMPLES,
    destructive: bool = False,
    on_progress: Callable[[float, str], None] | None = None,
) -> Report:
    """Call everything that a server offers, and report faults.

    Args:
        target: The server: `module:Server`, `path/to/file.py:Server`, a URL, or a command. A server
            given by a text runs in another process, which may crash or hang. A `Server`, or its
            class, runs in this process, which is faster; if it hangs or exits, the run ends.
        seed: The seed of all values. The same seed makes the same calls.
        budget: Seconds for the run, counted once the server has started.
        timeout: Seconds for one answer.
        examples: Valid values for each component; there are about as many wrong ones.
        destructive: True to call tools whose annotations say that they may destroy something.
        on_progress: Called with the share of the elapsed time, and the name of the work.

    Returns:
        The report. A server that is a command has ended.

    Raises:
        TransportError: The server cannot be started, or supports neither era.
        ImportError: Hypothesis is not installed.
    """
    try:
        from ._run import FuzzRun
    except ImportError:
        text = "the fuzzer needs hypothesis: pip install 'noizu-mcp[testing]'"
        raise ImportError(text) from None
    report = Report(target, seed)
    with single_failure():
        async with trio.open_nursery() as nursery:
            server = FuzzedServer(read_target(target), timeout, nursery)
            run = FuzzRun(server, report, budget, examples, on_progress)
            try:
                await run.start()
                with trio.move_on_after(budget):
                    await run.work(destructive=destructive)
                    report.is_complete = True
            finally:
                run.sum_up()
                await server.aclose()
    return report


async def replay(target: FuzzTarget, finding: Finding | Mapping[str, JSON]) -> None:
    """Repeat the steps of a finding.

    Args:
        target: The server; see `fuzz`.
        finding: The finding, or its JSON.

    Raises:
        AssertionError: The check failed again: the fault still exists.
        TransportError: The server cannot be started, or does not support the era.
        ValueError: It is not a finding.
    """
    known = finding if isinstance(finding, Finding) else Finding.from_json(finding)
    seen: str | None = None
    with single_failure():
        async with trio.open_nursery() as nursery:
            server = FuzzedServer(read_target(target), TIMEOUT, nursery)
            try:
                if await server.connect(stateless=known.case.stateless) is None:
                    raise TransportError("the server does not speak the era of the finding")
                component = await _component_of(server, known)
                # The lists were read on this connection: the steps get a new one.
                seen = await find(server, known.check, component, known.case)
            finally:
                await server.aclose()
    if seen is not None:
        check = CHECKS[known.check]
        raise AssertionError(f"{known.kind} {known.name}: {check.sentence} It shows: {seen}")


async def _component_of(server: FuzzedServer, finding: Finding) -> Listed:
    """Find the component of a finding; a removed one gets a schema that allows anything."""
    listed, _ = await discover(server, stateless=finding.case.stateless)
    same = [each for each in listed if (each.kind, each.name) == (finding.kind, finding.name)]
    return same[0] if same else Listed(finding.kind, finding.name, {}, {})
