"""The official conformance suite against the everything server and the client: a table of all legs.

    (cd tests/conformance && npm install --no-package-lock --ignore-scripts)
    python tests/conformance/suite.py [--server hypercorn] [--only server|client]

Exit status: 0 everything passed, 1 something failed or was warned of, 2 the suite is not there.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SERVER = ROOT / "docs" / "examples" / "everything.py"
GATEWAY = HERE / "gateway.py"
CLIENT = HERE / "client.py"
#: Modules that the client imports, at once or when needed.
CLIENT_MODULES = (
    "httpx2",
    "noizu_mcp.client",
    "noizu_mcp.transports.http.client._stream",
    *(f"noizu_mcp.auth.client.{name}" for name in ("_oauth", "_machines", "_signing", "_redirect")),
)
STARTER = ROOT / "tests" / "starter.py"
#: Older versions of Node.js cannot run the suite: they lack `fs.globSync`.
NODE = 22
#: Seconds that one leg may take; the slowest takes about 40.
PATIENCE = 300
#: The legs: which line of the suite runs which scenarios.
LEGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "2025-03-26": ("conformance", ("--suite", "all", "--spec-version", "2025-03-26")),
    "2025-06-18": ("conformance", ("--suite", "all", "--spec-version", "2025-06-18")),
    "2025-11-25": ("conformance", ("--suite", "all", "--spec-version", "2025-11-25")),
    "2026-07-28": ("conformance", ("--suite", "all", "--spec-version", "2026-07-28")),
    "required 2025-11-25": ("conformance", ("--requirements", "2025-11-25")),
    "required 2026-07-28": ("conformance", ("--requirements", "2026-07-28")),
    "all": ("conformance", ("--suite", "all")),
    "0.1.16": ("conformance-stable", ("--suite", "all")),
}
#: A leg of a revision's scenarios → the leg that runs all of these on that revision, and more.
CONTAINED = {revision: f"required {revision}" for revision in ("2025-11-25", "2026-07-28")}
#: Minimum number of scenarios of each leg: fewer would pass trivially.
LEAST = {
    "2025-03-26": 1,
    "2025-06-18": 27,
    "2025-11-25": 33,
    "2026-07-28": 40,
    "required 2025-11-25": 33,
    "required 2026-07-28": 50,
    "all": 65,
    "0.1.16": 32,
}
CLIENT_LEAST = {
    "2025-03-26": 2,
    "2025-06-18": 5,
    "2025-11-25": 19,
    "2026-07-28": 33,
    "required 2025-11-25": 25,
    "required 2026-07-28": 39,
    "all": 48,
    "0.1.16": 26,
}
#: Milliseconds for one start of the client. The suite starts all scenarios of a leg at once.
CLIENT_PATIENCE = 90_000
#: Number of scenarios of a leg that may be repeated, each alone, and of repetitions.
FEW, ATTEMPTS = 8, 3
#: Scenarios in which the server breaks a rule, and the exception that the client must end with. The
#: suite checks messages only; a client that crashed for another reason would pass.
ENDS = {
    "resource-mismatch": "AuthError",
    "metadata-issuer-mismatch": "AuthError",
    "iss-supported-missing": "AuthError",
    "iss-wrong-issuer": "AuthError",
    "iss-unexpected": "AuthError",
    "iss-normalized": "AuthError",
    "scope-retry-limit": "AuthError",
    "sep-2640-client-verify-digest": "SkillError",
    "sep-2640-client-verify-frontmatter": "SkillError",
    "sep-2640-client-verify-size": "SkillError",
}
BAD = ("FAILURE", "WARNING")
#: The servers of `noizu-mcp run --http`, the default first.
SERVERS = ("noizu", "hypercorn")


class Missing(Exception):
    """The suite, or a Node.js that can run it, is not installed."""


class Outcome(NamedTuple):
    """The result of one leg."""

    side: str
    leg: str
    scenarios: int
    checks: Counter[str]
    problems: list[str]
    skipped: list[str]

    @property
    def passed(self) -> bool:
        least = CLIENT_LEAST if self.side == "client" else LEAST
        return not self.problems and self.scenarios >= least[self.leg]


def find_node() -> str:
    """Find a recent Node.js: the system's, or one from npm."""
    candidates = [shutil.which("node"), *map(str, HERE.glob("node_modules/node-*/bin/node"))]
    for node in filter(None, candidates):
        command = [node, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        version = re.match(r"v(\d+)", done.stdout)
        if version and int(version[1]) >= NODE:
            return node
    raise Missing(f"Node.js {NODE} or newer is not installed")


def find_suite(name: str) -> Path:
    """Find one line of the suite."""
    path = HERE / "node_modules" / name / "dist" / "index.js"
    if not path.is_file():
        raise Missing(f"npm package {name} is not installed in {HERE}")
    return path


def list_scenarios(leg: str) -> set[str]:
    """List the scenarios of a leg of one revision, for servers and clients."""
    package, chosen = LEGS[leg]
    command = [find_node(), str(find_suite(package)), "list", "--server", "--client", *chosen[-2:]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(re.findall(r"^ +- (\S+)", done.stdout, re.MULTILINE))


@contextmanager
def served(on: str, behind: str | None = None) -> Iterator[str]:
    """Serve the everything server on one of `SERVERS` and a free port, as users do.

    With `behind` a gateway is served, and the everything server behind it on that revision.
    """
    program = SERVER if behind is None else GATEWAY
    words = ["run", str(program), "--http", "--port", "0", "--server", on]
    command = [sys.executable, "-m", "noizu_mcp", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NOIZU_MCP_BEHIND": behind or ""}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        try:
            first = server.stderr.readline()
            url = re.search(r"http://\S+", first)
            assert url, f"the server did not start: {first}{server.stderr.read()}"
            # Exits when its stdin ends.
            with subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL):
                try:
                    yield url[0].replace("127.0.0.1", "localhost")
                finally:
                    server.terminate()
                    server.wait(15)
        finally:
            server.kill()


def run_leg(leg: str, url: str) -> Outcome:
    """Run one leg against a server."""
    package, chosen = LEGS[leg]
    return _run("server", leg, package, ["--url", url, *chosen])


@contextmanager
def started_clients() -> Iterator[str]:
    """Prepare the client; return the command that starts it for one scenario."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        with subprocess.Popen(
            [sys.executable, str(STARTER), "serve", path, str(CLIENT), *CLIENT_MODULES],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        ) as starter:
            assert starter.stdout is not None
            try:
                assert starter.stdout.readline() == b"ready\n"
                # Without `site`, which takes most of the time of such a start.
                yield f"{sys.executable} -I -S {STARTER} ask {path}"
            finally:
                os.killpg(starter.pid, signal.SIGKILL)


def run_client_leg(leg: str, command: str) -> Outcome:
    """Run one leg of the client, which the suite starts for each scenario.

    All scenarios of a leg run at once, in dozens of processes with time limits. So a few that fail
    are repeated, each alone.
    """
    words = ["--command", command, "--timeout", str(CLIENT_PATIENCE)]
    package, chosen = LEGS[leg]
    outcome = _run("client", leg, package, [*words, *chosen])
    failed = {problem.partition(": ")[0] for problem in outcome.problems}
    if len(failed) > FEW:
        return outcome
    version = ("--spec-version", chosen[-1]) if chosen[-1][:1] == "2" else ()
    problems: list[str] = []
    for scenario in sorted(failed):
        for _ in range(ATTEMPTS):
            again = _run("client", leg, package, [*words, *version, "--scenario", scenario])
            if not again.scenarios:  # it belongs to no revision
                again = _run("client", leg, package, [*words, "--scenario", scenario])
            left = again.problems if again.scenarios else [f"{scenario}: it does not run alone"]
            if not left:
                break
        problems += left
    return outcome._replace(problems=problems)


def _run(side: str, leg: str, package: str, words: Sequence[str]) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        command = [find_node(), str(find_suite(package)), side, *words, "-o", folder]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        found = sorted(Path(folder).rglob("checks.json"))
        results = [json.loads(path.read_text()) for path in found]
        # Folders of folders: `auth/basic-cimd-2026-07-28T…`.
        names = [_scenario(path.parent.relative_to(folder).as_posix()) for path in found]
        ends = [] if side == "server" else [*filter(None, map(_wrong_end, names, found))]
    said = [
        (check["status"], f"{name}: {check['id']}: {check['status']}: {check.get('errorMessage')}")
        for name, checks in zip(names, results, strict=True)
        for check in checks
    ]
    problems = [*(text for status, text in said if status in BAD), *ends]
    skipped = [text for status, text in said if status == "SKIPPED"]
    if done.returncode and not problems:
        problems.append(f"exit status {done.returncode}: {done.stderr[-500:]}")
    counted = Counter(check["status"] for checks in results for check in checks)
    return Outcome(side, leg, len(results), counted, problems, skipped)


def _scenario(folder: str) -> str:
    """Return the name of a scenario from its folder, which ends in a time."""
    return re.sub(r"-\d{4}-\d\d-\d\dT.*", "", folder)


def _wrong_end(scenario: str, checks: Path) -> str | None:
    """Compare the result of one start of the client with the expected one; None if equal."""
    printed = checks.with_name("stdout.txt").read_text().splitlines()
    end = printed[-1] if printed else "nothing printed"
    if end.partition(":")[0] == ENDS.get(scenario.rpartition("/")[2], "done"):
        return None
    errors = checks.with_name("stderr.txt").read_text()
    return f"{scenario}: the client ended with {end} {errors[-500:]}"


def main() -> int:
    """Run every leg and print the table."""
    parser = argparse.ArgumentParser(description="Run the official conformance suite.")
    parser.add_argument("--server", choices=SERVERS, default=SERVERS[0])
    parser.add_argument("--only", choices=("server", "client"))
    chosen = parser.parse_args()
    try:
        find_node()
        for package, _ in LEGS.values():
            find_suite(package)
    except Missing as error:
        print(f"{error}; see the docstring of {__file__}", file=sys.stderr)
        return 2
    outcomes = []
    if chosen.only != "client":
        with served(chosen.server) as url:
            outcomes += [run_leg(leg, url) for leg in LEGS]
    if chosen.only != "server":
        with started_clients() as command:
            outcomes += [run_client_leg(leg, command) for leg in LEGS]
    print("| side | leg | scenarios | checks passed | skipped | failed or warned |")
    print("|---|---|--:|--:|--:|--:|")
    for side, leg, scenarios, checks, problems, skipped in outcomes:
        passed = checks["SUCCESS"] + checks["INFO"]
        print(f"| {side} | {leg} | {scenarios} | {passed} | {len(skipped)} | {len(problems)} |")
    for outcome in outcomes:
        for text in (*outcome.problems, *outcome.skipped):
            print(f"{outcome.side} {outcome.leg}: {text}", file=sys.stderr)
    return int(not all(outcome.passed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
