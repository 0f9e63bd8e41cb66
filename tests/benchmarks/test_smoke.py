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


def test_composition_measures_every_row(measured):
    """The tool alone, behind policies, mounted and remote."""
    report = measured("compose", "noizu")

    rows = ["noizu", "noizu, five policies", "noizu, Mount", "noizu, Remote"]
    assert report["notes"] == {}
    assert {table: list(found) for table, found in report["tables"].items()} == dict.fromkeys(
        [f"compose {era}" for era in ERAS], rows
    )


OURS = ["noizu", "noizu, asgi() on hypercorn", "raw ASGI on the same host"]
RAW = "raw ASGI on hypercorn"


@pytest.mark.parametrize(
    ("name", "peers", "tables", "rows"),
    [
        (
            "http",
            ["noizu", "trio"],
            ["http start", *(f"{name} {era}" for name in ("http", "http list") for era in ERAS)],
            [*OURS, RAW],
        ),
        ("asgi", ["noizu", "trio"], [f"asgi {era}" for era in ERAS], ["noizu", "raw ASGI"]),
        ("sessions", ["noizu"], ["sessions"], OURS),
        ("fanout", ["noizu"], [f"fanout {era}" for era in ERAS], OURS),
    ],
)
def test_a_benchmark_over_http_measures_every_set_up(measured, name, peers, tables, rows):
    """Our host, our application on stock hypercorn, and the yardsticks that were asked for."""
    report = measured(name, *peers)

    assert report["notes"] == {}
    assert {table: list(found) for table, found in report["tables"].items()} == dict.fromkeys(
        tables, rows
    )
    figures = {
        (table, row, key): column["median"]
        for table, found in report["tables"].items()
        for row, columns in found.items()
        for key, column in columns.items()
    }
    # An application without sessions keeps nothing for one.
    figures.pop(("sessions", "raw ASGI on the same host", "session_kib"), None)
    assert {place: figure for place, figure in figures.items() if figure <= 0} == {}


def test_the_official_package_is_measured_over_http(measured):
    """Its server is there in its default set-up; the fastest is noted where uvloop is missing."""
    pytest.importorskip("mcp.server.mcpserver")
    report = measured("asgi", "mcp")

    assert all("mcp" in rows for rows in report["tables"].values())
    assert all(why.startswith(("uvloop", "httptools")) for why in report["notes"].values())


def test_clients_are_measured(measured):
    """The ways to use our client call one server over both transports."""
    report = measured("client", "noizu")

    rows = ["noizu", "noizu, aio", "noizu, SyncClient"]
    assert report["notes"] == {}
    assert {table: list(found) for table, found in report["tables"].items()} == {
        f"client {transport} {era}": rows for transport in ("stdio", "http") for era in ERAS
    }


def test_questions_are_asked_both_ways(measured):
    """A plain `ctx.elicit` and a returned `InputRequired` both are asked, in both eras."""
    report = measured("ask", "noizu")

    assert report["notes"] == {}
    assert sorted(report["tables"]) == [f"ask {era}" for era in ERAS]
    for rows in report["tables"].values():
        assert sorted(rows) == ["noizu", "noizu, InputRequired"]


def test_the_official_package_is_measured_too(measured):
    """The server in the official package offers the same: every figure of its rows is there."""
    pytest.importorskip("mcp.server.mcpserver")
    report = measured("read", "mcp")

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


def test_a_missing_part_of_a_peer_is_noted(benchmarks, tmp_path):
    """The package that serves over HTTP is named, if that is what is missing."""
    arguments = ["--only", "sessions", "--rounds", "1", "--peers", "ts2"]
    done = benchmarks(*arguments, NOIZU_MCP_NODE_MODULES=str(tmp_path))

    assert done.returncode == 0, done.stderr
    assert "ts2: " in done.stdout
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
