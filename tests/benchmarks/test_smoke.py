"""Each benchmark runs, for this package and the reference; no figure has to be small."""

import json
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="they measure through /proc")

BOTH = ("noizu", "trio")
OURS = {"noizu", "noizu, asgi() on hypercorn", "raw ASGI on the same host"}
SCHEMAS = {f"schema {size}" for size in ("large", "medium", "small", "union")}


@pytest.mark.parametrize(
    ("name", "peers", "kinds", "rows"),
    [
        ("import", BOTH, {"import", "start"}, {*BOTH}),
        ("memory", ["noizu"], {"memory"}, {"noizu"}),
        ("stdio", BOTH, {"stdio"}, {*BOTH}),
        ("list", BOTH, {"list"}, {*BOTH}),
        ("read", ["noizu"], {"read", "prompt"}, {"noizu"}),
        ("notify", ["noizu"], {"notify"}, {"noizu"}),
        ("ask", ["noizu"], {"ask"}, {"noizu", "noizu, InputRequired"}),
        (
            "compose",
            ["noizu"],
            {"compose"},
            {"noizu", "noizu, five policies", "noizu, Mount", "noizu, Remote"},
        ),
        (
            "client",
            ["noizu"],
            {"client stdio", "client http"},
            {"noizu", "noizu, aio", "noizu, SyncClient"},
        ),
        ("http", BOTH, {"http start", "http", "http list"}, {*OURS, "raw ASGI on hypercorn"}),
        ("asgi", BOTH, {"asgi"}, {"noizu", "raw ASGI"}),
        ("sessions", ["noizu"], {"sessions"}, OURS),
        ("fanout", ["noizu"], {"fanout"}, OURS),
    ],
)
def test_a_benchmark_measures_every_row(measured, name, peers, kinds, rows):
    """Every selected set-up has a figure in every column, and nothing failed."""
    cases, results = measured(name, *peers)

    assert results.notes == {}
    assert {case.table.name.partition(" 20")[0] for case in cases} == kinds
    assert {case.row for case in cases} == rows
    for case in cases:
        for column in case.table.columns:
            figure = results.median(case.table.name, case.row, column.key)
            # An application without sessions keeps no memory for one.
            is_nothing = (case.row, column.key) == ("raw ASGI on the same host", "session_kib")
            assert figure is not None, (case.table.name, case.row, column.key)
            assert figure > 0 or is_nothing, (case.table.name, case.row, column.key)


@pytest.mark.parametrize("name", ["asgi", "read"])
def test_the_official_package_is_measured_too(measured, name):
    """Its server offers the same; without uvloop the fastest set-up has a note."""
    pytest.importorskip("mcp.server.mcpserver")
    _, results = measured(name, "mcp")

    assert any("mcp" in rows for rows in results.rows.values())
    assert all(why.startswith(("uvloop", "httptools")) for why in results.notes.values())


def test_the_schemas_are_accepted_and_refused(measured):
    """Both engines convert a value to an instance, and its faulty copy to a text."""
    cases, results = measured("schema", "noizu")

    assert {case.table.name for case in cases} == SCHEMAS
    assert {"noizu, native", "noizu, Python"} <= {case.row for case in cases}
    for rows in results.rows.values():
        for columns in rows.values():
            assert columns.keys() == {"accept_us", "report_us"}


def test_a_missing_peer_is_noted(benchmarks, tmp_path):
    """A peer that is not installed has a note with the missing package; others are measured."""
    arguments = ["--only", "list", "--rounds", "1", "--seconds", "0.01", "--peers", "trio", "ts1"]
    done = benchmarks(*arguments, NOIZU_MCP_NODE_MODULES=str(tmp_path))

    assert done.returncode == 0, done.stderr
    assert "| trio | " in done.stdout
    assert "ts1: " in done.stdout
    assert "not installed" in done.stdout


def test_a_missing_part_of_a_peer_is_noted(benchmarks, tmp_path):
    """If the package for HTTP is missing, the note names it."""
    arguments = ["--only", "sessions", "--rounds", "1", "--peers", "ts2", "--json"]
    done = benchmarks(*arguments, NOIZU_MCP_NODE_MODULES=str(tmp_path))

    assert done.returncode == 0, done.stderr
    (why,) = json.loads(done.stdout)["notes"].values()
    assert "not installed" in why


def test_an_unknown_benchmark_is_refused(benchmarks):
    """The error for a wrong name lists the right ones."""
    done = benchmarks("--only", "stdoi")

    assert done.returncode == 2
    assert "'memory', 'stdio'" in done.stderr


def test_rounds_must_be_positive(benchmarks):
    """Zero rounds have no median, and are refused."""
    done = benchmarks("--rounds", "0")

    assert done.returncode == 2
    assert "must be a positive number, not '0'" in done.stderr
