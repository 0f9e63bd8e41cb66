"""`python -m benchmarks`: run, then print tables, ratios and which targets hold."""

import argparse
import json
import os
import platform
import sys
from math import ceil
from pathlib import Path
from typing import Any

from . import (
    bench_asgi,
    bench_ask,
    bench_client,
    bench_fanout,
    bench_http,
    bench_import,
    bench_list,
    bench_memory,
    bench_mount,
    bench_notify,
    bench_read,
    bench_schema,
    bench_sessions,
    bench_stdio,
)
from ._harness import Benchmark, Results, Settings, check_targets, positive, render, run
from ._peers import PEERS, Unavailable, node_version

BENCHMARKS = {
    module.BENCHMARK.name: module.BENCHMARK
    for module in (
        bench_import,
        bench_memory,
        bench_stdio,
        bench_list,
        bench_read,
        bench_ask,
        bench_notify,
        bench_http,
        bench_asgi,
        bench_client,
        bench_mount,
        bench_sessions,
        bench_fanout,
        bench_schema,
    )
}


def main() -> int:
    """Run what the command line asks for.

    Returns:
        0; a peer that is missing is noted, it is no failure.
    """
    options = _parser().parse_args()
    if sys.platform != "linux":
        sys.exit("the benchmarks read /proc and the clocks of other processes: they need Linux")
    seconds = options.seconds or (0.3 if options.quick else 1.5)
    rounds = options.rounds or (1 if options.quick else 5)
    peers = {name: PEERS[name] for name in PEERS if name in (options.peers or PEERS)}
    chosen = [BENCHMARKS[name] for name in options.only or BENCHMARKS]
    results = run(chosen, Settings(peers, seconds), rounds)
    about = {**_machine(list(peers)), "load": ", ".join(f"{load:.1f}" for load in results.loads)}
    about["method"] = f"medians of {rounds} round(s), {seconds:g} s a measurement"
    print(_as_json(chosen, results, about) if options.json else _as_text(chosen, results, about))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it runs")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, help="may be repeated")
    parser.add_argument("--peers", nargs="+", choices=PEERS, metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--rounds", type=lambda text: ceil(positive(text)), help="default 5")
    parser.add_argument("--seconds", type=positive, help="of one measurement; default 1.5")
    parser.add_argument("--json", action="store_true", help="print JSON, with every round")
    return parser


def _machine(peers: list[str]) -> dict[str, str]:
    versions = {name: PEERS[name].version for name in peers} | {"node": node_version}
    found = {}
    for name, version in versions.items():
        try:
            found[name] = version().strip()
        except Unavailable:
            found[name] = "–"
    return {
        "machine": f"{os.cpu_count()} × {_processor()}, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {version}" for name, version in found.items()),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _as_text(chosen: list[Benchmark], results: Results, about: dict[str, str]) -> str:
    lines = [f"{name}: {text}" for name, text in about.items()]
    lines += ["", render(results)]
    targets = check_targets(chosen, results)
    if targets:
        lines += ["", "### Targets", "", "| target | measured | |", "| --- | ---: | --- |"]
        lines += [f"| {' | '.join(target)} |" for target in targets]
    return "\n".join(lines)


def _as_json(chosen: list[Benchmark], results: Results, about: dict[str, str]) -> str:
    tables: dict[str, Any] = {}
    for table, rows in results.rows.items():
        for row, columns in rows.items():
            tables.setdefault(table, {})[row] = {
                key: {
                    "median": results.median(table, row, key),
                    "ratio": results.ratio(table, row, key),
                    "rounds": list(figures.values()),
                }
                for key, figures in columns.items()
            }
    report = {
        **about,
        "tables": tables,
        "notes": {f"{table}, {row}": why for (table, row), why in results.notes.items()},
        "targets": [
            {"target": text, "measured": got, "verdict": verdict}
            for text, got, verdict in check_targets(chosen, results)
        ],
    }
    return json.dumps(report, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
