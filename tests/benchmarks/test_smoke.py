"""Each benchmark runs, for this package and the yardstick; no figure is asked to be small."""

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="they measure through /proc")

ERAS = ("2025-11-25", "2026-07-28")


@pytest.mark.parametrize(
    ("name", "tables", "peers"),
    [
        ("import", ["import", "start"], ["noizu", "trio"]),
        ("memory", [f"memory {era}" for era in ERAS], ["noizu"]),
        ("stdio", [f"stdio {era}" for era in ERAS], ["noizu", "trio"]),
        ("list", [f"list {era}" for era in ERAS], ["noizu", "trio"]),
        ("read", [f"{name} {era}" for name in ("read", "prompt") for era in ERAS], ["noizu"]),
        ("notify", [f"notify {era}" for era in ERAS], ["noizu"]),
    ],
)
def test_a_benchmark_measures_every_row(measured, name, tables, peers):
    """Every peer that was asked for has a figure in every column, and nothing failed."""
    report = measured(name, *peers)

    assert report["notes"] == {}
    assert {table: sorted(rows) for table, rows in report["tables"].items()} == dict.fromkeys(
        tables, peers
    )
    for rows in report["tables"].values():
        for columns in rows.values():
            assert columns
            assert all(column["median"] > 0 for column in columns.values())


def test_questions_are_asked_both_ways(measured):
    """A plain `ctx.elicit` and a returned `InputRequired` both are asked, in both eras."""
    report = measured("ask", "noizu")

    assert report["notes"] == {}
    assert sorted(report["tables"]) == [f"ask {era}" for era in ERAS]
    for rows in report["tables"].values():
        assert sorted(rows) == ["noizu", "noizu, InputRequired"]


@pytest.mark.parametrize("name", ["read", "ask", "notify"])
def test_the_official_package_is_measured_too(measured, name):
    """The server in the official package offers the same: every figure of its rows is there."""
    pytest.importorskip("mcp.server.mcpserver")
    report = measured(name, "mcp")

    assert report["notes"] == {}
    assert all("mcp" in rows for rows in report["tables"].values())


def test_the_schemas_are_accepted_and_refused(measured):
    """Both engines turn every value into an instance, and its faulty copy into a text."""
    report = measured("schema", "noizu")

    assert sorted(report["tables"]) == [
        f"schema {s}" for s in ("large", "medium", "small", "union")
    ]
    for rows in report["tables"].values():
        assert {"noizu, native", "noizu, Python"} <= rows.keys()
        for columns in rows.values():
            assert columns.keys() == {"accept_us", "report_us"}


def test_a_missing_peer_is_noted(benchmarks, tmp_path):
    """A peer that is not installed is named with what is missing; the others are measured."""
    arguments = ["--only", "list", "--rounds", "1", "--seconds", "0.01", "--peers", "trio", "ts1"]
    done = benchmarks(*arguments, NOIZU_MCP_NODE_MODULES=str(tmp_path))

    assert done.returncode == 0, done.stderr
    assert "| trio | " in done.stdout
    assert "ts1: " in done.stdout
    assert "not installed" in done.stdout


def test_an_unknown_benchmark_is_refused(benchmarks):
    """A wrong name is an error that lists the right ones."""
    done = benchmarks("--only", "stdoi")

    assert done.returncode == 2
    assert "'memory', 'stdio'" in done.stderr


def test_rounds_must_be_positive(benchmarks):
    """No rounds means no medians: it is refused."""
    done = benchmarks("--rounds", "0")

    assert done.returncode == 2
    assert "must be a positive number, not '0'" in done.stderr
