"""Rounds, medians and tables: what every benchmark shares."""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from ._peers import ERAS, Peer

#: What one measurement gives: numbers by the key of their column.
Sample = dict[str, float]


@dataclass(frozen=True)
class Column:
    """One figure of a table. Every figure is a cost: less is better.

    Attributes:
        key: Its name in samples and in the JSON report.
        title: Its heading, with the unit.
        ranged: Whether the least and the greatest of the rounds are shown.
        compared: Whether the ratio against the base is shown.
    """

    key: str
    title: str
    ranged: bool = False
    compared: bool = True


@dataclass(frozen=True)
class Table:
    """A thing to measure for several peers, each in the same way.

    Attributes:
        name: Short and unique; the key in the JSON report.
        title: What is measured.
        columns: The figures.
        base: The row that the others are compared with.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    base: str = "mcp"


@dataclass(frozen=True)
class Case:
    """One row of one table: `measure` starts a fresh process and returns its figures."""

    table: Table
    row: str
    measure: Callable[[], Sample]


@dataclass(frozen=True)
class Target:
    """A promise about the figures.

    Attributes:
        text: What is promised.
        limit: The number that it is about.
        measure: Takes the figures from the results; None if they are not there.
        least: Whether the limit is the least that is wanted; else it is the most.
    """

    text: str
    limit: float
    measure: Callable[["Results"], float | None]
    least: bool = False


@dataclass(frozen=True)
class Settings:
    """Length of a measurement, and the peers to measure.

    Attributes:
        peers: Those asked for, by name.
        seconds: Length of one measurement; the warm-up before it takes two thirds of that.
    """

    peers: Mapping[str, Peer]
    seconds: float

    def among(self, names: Iterable[str]) -> Iterator[Peer]:
        """Iterate over the peers that were asked for."""
        return (self.peers[name] for name in names if name in self.peers)

    @property
    def warm_up(self) -> float:
        """Seconds before anything counts: caches, specialised bytecode, the JIT of Node."""
        return self.seconds * 2 / 3


@dataclass(frozen=True)
class Benchmark:
    """One of the benchmarks.

    Attributes:
        name: For `--only`.
        cases: Makes its cases.
        targets: What is promised about it.
    """

    name: str
    cases: Callable[[Settings], Iterable[Case]]
    targets: tuple[Target, ...] = ()


@dataclass
class Results:
    """The figures of all rounds.

    Attributes:
        tables: The tables, in order, by name.
        rows: Table → row → key → one figure per round; a round that failed has none.
        notes: What could not be measured: table, row → why.
        loads: The load of the machine, before each round and at the end; what is measured adds to
            it.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    rows: dict[str, dict[str, dict[str, dict[int, float]]]] = field(default_factory=dict)
    notes: dict[tuple[str, str], str] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)

    def add(self, case: Case, number: int, sample: Sample) -> None:
        """Keep the figures of one round."""
        row = self.rows.setdefault(case.table.name, {}).setdefault(case.row, {})
        for key, value in sample.items():
            row.setdefault(key, {})[number] = value

    def figures(self, table: str, row: str, key: str) -> dict[int, float]:
        """Return the figures of a row by round; empty if it was not measured."""
        return self.rows.get(table, {}).get(row, {}).get(key, {})

    def median(self, table: str, row: str, key: str) -> float | None:
        """Return the median over the rounds, or None if there is no figure."""
        figures = self.figures(table, row, key)
        return statistics.median(figures.values()) if figures else None

    def ratio(self, table: str, row: str, key: str, base: str | None = None) -> float | None:
        """Return how many times less than the base a row costs.

        Both are measured within moments of each other in every round, so the ratio is taken round
        by round: what slows the machine for a while slows both. Returned is the median of these.
        """
        of_base = self.figures(table, base or self.tables[table].base, key)
        of_row = self.figures(table, row, key)
        ratios = [of_base[n] / value for n, value in of_row.items() if n in of_base and value]
        return statistics.median(ratios) if ratios else None


def run(benchmarks: Sequence[Benchmark], settings: Settings, rounds: int) -> Results:
    """Run every case once per round, the rows of one table right after each other.

    Args:
        benchmarks: What to run.
        settings: How.
        rounds: How often.

    Returns:
        The figures. A case that fails is noted and the others go on.
    """
    results = Results()
    cases = [case for benchmark in benchmarks for case in benchmark.cases(settings)]
    for case in cases:
        results.tables.setdefault(case.table.name, case.table)
    for number in range(rounds):
        results.loads.append(os.getloadavg()[0])
        for case in cases:
            if (case.table.name, case.row) in results.notes:
                continue
            _progress(f"round {number + 1}/{rounds}  {case.table.name}  {case.row}")
            try:
                results.add(case, number, case.measure())
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                results.notes[case.table.name, case.row] = str(error)
    results.loads.append(os.getloadavg()[0])
    _progress("")
    return results


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def render(results: Results) -> str:
    """Write the tables in Markdown."""
    return "\n\n".join(_render_table(results, table) for table in results.tables.values())


def _render_table(results: Results, table: Table) -> str:
    heads = [""]
    for column in table.columns:
        heads.append(column.title)
        heads += ["min–max"] if column.ranged else []
        heads += ["ratio"] if column.compared else []
    lines = [f"### {table.title}", "", _line(heads), _line(["---"] + ["---:"] * (len(heads) - 1))]
    lines += [_line(_cells(results, table, row)) for row in results.rows.get(table.name, {})]
    notes = [f"{row}: {why}" for (name, row), why in results.notes.items() if name == table.name]
    return "\n".join([*lines, "", *notes] if notes else lines)


def _cells(results: Results, table: Table, row: str) -> list[str]:
    cells = [row]
    for column in table.columns:
        figures = results.figures(table.name, row, column.key).values()
        cells.append(number(results.median(table.name, row, column.key)))
        if column.ranged:
            cells.append(f"{number(min(figures))}–{number(max(figures))}" if figures else "–")
        if column.compared:
            ratio = results.ratio(table.name, row, column.key)
            cells.append("–" if ratio is None else f"{number(ratio)}×")
    return cells


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def number(value: float | None) -> str:
    """Write a figure with three significant digits, or a dash."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def by_era(
    name: str, title: str, columns: tuple[Column, ...], base: str = "mcp"
) -> dict[str, Table]:
    """Return a table for each of the two revisions that are measured, by revision."""
    return {era: Table(f"{name} {era}", f"{title}, {era}", columns, base) for era in ERAS}


def median_of(table: str, row: str, key: str) -> Callable[[Results], float | None]:
    """Return what takes one median from the results."""
    return lambda results: results.median(table, row, key)


def ratio_of(table: str, row: str, key: str) -> Callable[[Results], float | None]:
    """Return what takes one ratio from the results."""
    return lambda results: results.ratio(table, row, key)


def check_targets(benchmarks: Sequence[Benchmark], results: Results) -> list[tuple[str, str, str]]:
    """Return each target that could be measured: what is promised, what came, and if it holds."""
    found = []
    for target in (target for benchmark in benchmarks for target in benchmark.targets):
        got = target.measure(results)
        if got is not None:
            holds = got >= target.limit if target.least else got <= target.limit
            found.append((target.text, number(got), "holds" if holds else "falls short"))
    return found


def positive(text: str) -> float:
    """Read a positive number of an option."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, not {text!r}")
    return value
