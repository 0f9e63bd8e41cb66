"""The examples that also exist for FastMCP: equal results, and no more code."""

import ast
import importlib.util
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from noizu_mcp import Client, Stdio, connect

from . import scenarios

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "docs" / "examples"
THEIRS = ROOT / "benchmarks" / "comparison"
PAIRS = sorted(path.stem.removesuffix("_fastmcp") for path in THEIRS.glob("*_fastmcp.py"))
SESSION, LATEST = "2025-11-25", "2026-07-28"
has_fastmcp = pytest.mark.skipif(
    importlib.util.find_spec("fastmcp") is None, reason="fastmcp is not installed"
)
Run = Callable[[Client, scenarios.Reader], Awaitable[dict[str, Any]]]


@asynccontextmanager
async def hosted(file: Path) -> AsyncIterator[str]:
    """Serve an application with uvicorn; yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Requests wait in the queue of the socket until uvicorn accepts them.
        folder, application = str(file.parent), f"{file.stem}:app"
        options = ["--fd", str(listener.fileno()), "--log-level", "error", "--lifespan", "on"]
        command = [sys.executable, "-m", "uvicorn", "--app-dir", folder, application, *options]
        async with trio.open_nursery() as nursery:
            run = partial(trio.run_process, command, pass_fds=[listener.fileno()])
            nursery.start_soon(run)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def started(file: Path, version: str, **env: str) -> AsyncIterator[tuple[Client, Any]]:
    """Start a server as a process, or an application under uvicorn, and connect to it."""
    handler = scenarios.Reader()
    if file.stem.startswith("fastapi_app"):
        with trio.fail_after(60):
            async with (
                hosted(file) as handler.site,
                connect(f"{handler.site}/mcp", version=version, handler=handler) as client,
            ):
                yield client, handler
        return
    ours = ["-m", "noizu_mcp", "run"] if file.parent == OURS else []
    command = Stdio(
        sys.executable, *ours, str(file), env={"FASTMCP_SHOW_SERVER_BANNER": "0", **env}
    )
    with trio.fail_after(60):
        async with connect(command, version=version, handler=handler) as client:
            yield client, handler


async def report_of(file: Path, version: str) -> dict[str, Any]:
    """Run the scenarios of an example, and return the report."""
    name = file.stem.removesuffix("_fastmcp")
    run: Run = getattr(scenarios, name)
    async with scenarios.open_tracker() as (tracker, url):
        env = {"TRACKER_URL": url, "TRACKER_TOKEN": "secret"}
        async with started(file, version, **env) as (client, handler):
            report = await run(client, handler)
        report["upstream"] = tracker.comments, tracker.tokens, len(tracker.connections)
    return report


BOOKS = [
    {"id": 3, "title": "Twenty Thousand Leagues Under the Seas", "author": "Jules Verne"},
    {"id": 1, "title": "The Sea-Wolf", "author": "Jack London"},
]
BOOKS = [{**book, "year": year} for book, year in zip(BOOKS, (1870, 1904), strict=True)]
WALDEN = "Delete Walden, Henry David Thoreau?"


@pytest.mark.parametrize("version", [SESSION, LATEST])
async def test_library(version: str) -> None:
    """Searches, an export with progress, a deletion with a question, rows and a prompt."""
    report = await report_of(OURS / "library.py", version)

    assert report["search 10"] == BOOKS
    assert report["search 1"] == BOOKS[:1]
    assert report["too short"] is True
    assert report["export"] == "1,Ada\r\n2,Grace\r\n"
    assert report["progress"] == [(1, 2), (2, 2)]
    assert report["wrong table"] is True
    assert report["delete 9 True"] == "error: No book 9; search shows the numbers"
    assert report["delete 2 False"] == "Walden was kept"
    assert report["delete 2 True"] == "Walden was deleted"
    assert report["asked"] == [WALDEN, WALDEN]
    assert report["library://books/1"] == BOOKS[1]
    assert report["library://members/2"] == {"id": 2, "name": "Grace"}
    assert report["library://books/2"] == "not found"
    assert "recommend 2 books for a reader who feels calm" in report["prompt"]


@pytest.mark.parametrize("version", [SESSION, LATEST])
async def test_upstream(version: str) -> None:
    """Responses of an HTTP API over one connection, and clear errors for its failures."""
    report = await report_of(OURS / "upstream.py", version)
    crash = {"number": 7, "title": "Crash", "state": "open", "body": "It fell."}

    assert [each["number"] for each in report["list_issues {}"]] == [8, 7]
    assert [each["number"] for each in report["list_issues {'state': 'closed'}"]] == [5]
    assert len(report["list_issues {'limit': 1}"]) == 1
    assert report["list_issues {'limit': 0}"] == "refused"
    assert report["read_issue {'number': 7}"] == crash
    assert "no such issue" in report["read_issue {'number': 6}"]
    assert "again in a minute" in report["read_issue {'number': 429}"]
    assert report["read_issue {'number': 500}"] == "error: The tracker failed with status 500"
    said = report["comment {'number': 7, 'text': 'It works.'}"]
    assert said == "The comment stands under issue 7"
    assert report["upstream"] == ([(7, "It works.")], {"Bearer secret"}, 1)


@pytest.mark.parametrize("version", [SESSION, LATEST])
async def test_pydantic_shop(version: str) -> None:
    """Coercion, both ways to pay, a declined form, and four invalid orders."""
    report = await report_of(OURS / "pydantic_shop.py", version)
    tea = {"sku": "TEA-1", "name": "Green tea", "price": "4.50"}
    receipt = {
        "lines": [{"sku": "TEA-1", "quantity": 2}, {"sku": "MUG-1", "quantity": 1}],
        "total": "21.00",
        "delivery": {"name": "Ada", "gift": False},
        "summary": "3 items for Ada",
    }

    assert len(report["find {}"]) == 3
    assert report["find {'text': 'tea', 'limit': 1}"] == [tea]
    assert len(report["find {'text': 'TEA', 'limit': '2'}"]) == 2
    assert report["too many"] is True
    card = {"method": "card", "number": "**********"}
    assert report["card True"] == {**receipt, "paid_by": card}
    invoice = {"method": "invoice", "due": "2026-01-15"}
    assert report["invoice True"] == {**receipt, "paid_by": invoice}
    declined = "error: The customer did not say who gets it; nothing was ordered"
    assert report["invoice False"] == declined
    assert report["unknown"] == "error: No product X; there are: TEA-1, TEA-2, MUG-1"
    assert report["asked"] == ["Who gets the parcel?"] * 3
    wrong = [report[f"wrong {place}"] for place in range(4)]
    assert wrong == [(True, False), (True, False), (True, False), (True, True)]


async def test_fastapi_app() -> None:
    """Routes and tools share one queue and one database, in turns and concurrently."""
    report = await report_of(OURS / "fastapi_app.py", SESSION)

    assert report["route"] == (200, 1)
    assert report["order tea"] == "order 2"
    assert report["log"] == "0 orders are before yours"
    assert report["second route"] == 3
    assert report["no route"] == 404
    assert report["nothing"] is True
    assert report["orders"] == ["milk", "tea", "salt"]
    assert report["cups"] == [*range(4, 24)]


async def test_a_tracker_that_is_away() -> None:
    """An API that is down is an error for the model, not a crash."""
    file = OURS / "upstream.py"
    async with started(file, LATEST, TRACKER_URL="http://127.0.0.1:9/") as (client, _):
        result = await client.call_tool("read_issue", {"number": 7})

    assert (result.is_error, result.content[0].text) == (
        True,
        "The tracker gives no usable answer; try again later",
    )


@has_fastmcp
@pytest.mark.parametrize("name", PAIRS)
async def test_outcomes_are_equal(name: str) -> None:
    """Both programs have equal results in every scenario; FastMCP asks on 2025-11-25 only."""
    ours = await report_of(OURS / f"{name}.py", SESSION)

    assert await report_of(THEIRS / f"{name}_fastmcp.py", SESSION) == ours


@has_fastmcp
async def test_a_question_on_the_latest_version() -> None:
    """`ctx.elicit` of FastMCP cannot reach the client on 2026-07-28."""
    async with started(THEIRS / "library_fastmcp.py", LATEST) as (client, _):
        result = await client.call_tool("delete_book", {"number": 2})

    assert result.is_error
    assert "2026-07-28" in result.content[0].text


def code_lines(file: Path) -> int:
    """Count the statements, heads of blocks and decorators of a program, without docstrings.

    A statement counts once, however many lines the formatter breaks it into.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    count = 0
    for node in ast.walk(tree):
        count += isinstance(node, ast.stmt) + len(getattr(node, "decorator_list", []))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            count -= ast.get_docstring(node) is not None
    return count


@pytest.mark.parametrize("name", PAIRS)
def test_code_is_not_longer(name: str) -> None:
    """Each example has at most as many lines of code as its counterpart."""
    assert code_lines(OURS / f"{name}.py") <= code_lines(THEIRS / f"{name}_fastmcp.py")
