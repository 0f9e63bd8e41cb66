"""Rounds, medians, ratios and tables."""

import pytest


@pytest.fixture
def table(harness):
    columns = (
        harness.Column("us", "µs", ranged=True),
        harness.Column("mib", "MiB", compared=False),
    )
    return harness.Table("calls", "Calls", columns)


@pytest.fixture
def results(harness, table):
    """Return the figures of two rounds, the second on a slow machine, and a third without mcp."""
    found = harness.Results({"calls": table})
    figures = {"noizu": [(0, 10), (1, 40), (2, 11)], "mcp": [(0, 80), (1, 240)]}
    for row, rounds in figures.items():
        for number, us in rounds:
            found.add(harness.Case(table, row, dict), number, {"us": us, "mib": 20.25})
    return found


def test_ratios_are_taken_round_by_round(results):
    """A slow round affects both sides: the ratio is the median of 8 and 6."""
    assert results.median("calls", "noizu", "us") == 11
    assert results.ratio("calls", "noizu", "us") == 7
    assert results.ratio("calls", "mcp", "us") == 1


def test_what_was_not_measured_has_no_figure(results):
    """A missing row is None, not an error."""
    assert results.median("calls", "fastmcp", "us") is None
    assert results.ratio("calls", "noizu", "us", base="fastmcp") is None


def test_the_table_shows_what_its_columns_say(harness, results):
    """Range and ratio follow the columns that have them; notes are below."""
    results.notes["calls", "ts1"] = "node is not installed"

    assert harness.render(results).splitlines() == [
        "### Calls",
        "",
        "|  | µs | min–max | ratio | MiB |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| noizu | 11.0 | 10.0–40.0 | 7.00× | 20.2 |",
        "| mcp | 160 | 80.0–240 | 1.00× | 20.2 |",
        "",
        "ts1: node is not installed",
    ]


def test_peers_are_interleaved_and_failures_noted(harness, table):
    """Each round runs every row once; a failure is not repeated, and stops nothing else."""
    order = []

    def measure(row):
        order.append(row)
        if row == "mcp":
            raise RuntimeError("the server ended")
        return {"us": 1.0}

    rows = ("noizu", "mcp", "trio")
    cases = [harness.Case(table, row, lambda row=row: measure(row)) for row in rows]
    benchmark = harness.Benchmark("calls", lambda settings: cases)
    results = harness.run([benchmark], harness.Settings({}, 1.0), 2)

    assert order == ["noizu", "mcp", "trio", "noizu", "trio"]
    assert results.notes == {("calls", "mcp"): "the server ended"}
    assert results.figures("calls", "trio", "us") == {0: 1.0, 1: 1.0}


def test_targets_hold_or_fall_short(harness, results):
    """A target is a minimum or a maximum; one without figures is left out."""
    targets = (
        harness.Target("≥ 7 × mcp", 7, harness.ratio_of("calls", "noizu", "us"), least=True),
        harness.Target("≤ 10 µs", 10, harness.median_of("calls", "noizu", "us")),
        harness.Target("≤ 10 µs", 10, harness.median_of("calls", "fastmcp", "us")),
    )

    assert harness.check_targets([harness.Benchmark("calls", list, targets)], results) == [
        ("≥ 7 × mcp", "7.00", "holds"),
        ("≤ 10 µs", "11.0", "falls short"),
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.456, "0.46"), (45.64, "45.6"), (4564.2, "4,564")]
)
def test_numbers_have_three_digits(harness, value, text):
    """Figures are written with as many digits as they can bear."""
    assert harness.number(value) == text
