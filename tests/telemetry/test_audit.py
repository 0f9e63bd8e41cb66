"""Audits: the record of a decision is stored before its call is answered."""

import errno
import json
import os
import signal
import sqlite3
import sys
import threading
from contextlib import suppress

import pytest
import trio
import trio.testing

from noizu_mcp import ConnectionClosed, McpError, Server, Stdio, Tool, connect
from noizu_mcp.events import Event, Listener
from noizu_mcp.policies import AllowTools, AuditLog, AuditTable, DenyTools
from noizu_mcp.types import Principal

ADA = Principal(subject="ada")


class Echo(Tool):
    async def call(self, text: str = "") -> str:
        return text


class Shell(Tool):
    async def call(self) -> str:
        return "ran"


def served(*listeners, policies=None):
    class Audited(Server, name="audited", version="1"):
        tools = [Echo, Shell]

    server = Audited()
    server.policies.replace([DenyTools("shell")] if policies is None else policies)
    for listener in listeners:
        server.telemetry.add(listener)
    return server


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows(path):
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in database.execute("SELECT * FROM decisions ORDER BY rowid")]
    finally:
        database.close()


KINDS = {"log": (AuditLog, lines), "table": (AuditTable, rows)}
both = pytest.mark.parametrize(("kind", "read"), KINDS.values(), ids=KINDS)


@both
@pytest.mark.parametrize("fsync", [False, True])
async def test_each_decision_is_a_record(tmp_path, kind, read, fsync):
    """Allowed and denied calls have the documented members, in order."""
    path = tmp_path / "audit"
    audit = kind(path, fsync=fsync)
    async with connect(served(audit), principal=ADA) as client:
        await client.call_tool("echo")
        await client.call_tool("shell")
    audit.close()
    audit.close()
    allowed, denied = read(path)
    assert list(allowed) == [
        *("time", "name", "principal", "transport", "decision", "policy", "reason")
    ]
    assert allowed.pop("time") <= denied.pop("time")
    assert allowed == {
        "name": "echo",
        "principal": ADA.key,
        "transport": "memory",
        "decision": "allow",
        "policy": None,
        "reason": None,
    }
    assert denied == {
        "name": "shell",
        "principal": ADA.key,
        "transport": "memory",
        "decision": "deny",
        "policy": "DenyTools",
        "reason": "tool 'shell' is blocked by the pattern 'shell'",
    }
    assert path.stat().st_mode & 0o777 == 0o600 or kind is AuditTable
    assert repr(audit) == f"{kind.__name__}({str(path)!r})"


@both
async def test_calls_that_come_together_are_written_together(tmp_path, kind, read):
    """Concurrent calls are written in batches, each once."""
    path = tmp_path / "audit"
    audit = kind(path)
    async with connect(served(audit)) as client, trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(client.call_tool, "echo")
    audit.close()
    assert [record["name"] for record in read(path)] == ["echo"] * 50


@both
async def test_a_file_that_was_moved_is_made_again(tmp_path, kind, read):
    """Log rotation and removal need no notice to the server."""
    path, moved = tmp_path / "audit", tmp_path / "audit.1"
    audit = kind(path)
    async with connect(served(audit)) as client:
        await client.call_tool("echo")
        path.rename(moved)
        for extra in ("-wal", "-shm"):
            old = tmp_path / f"audit{extra}"
            if old.exists():
                old.rename(tmp_path / f"audit.1{extra}")
        await client.call_tool("shell")
        await client.call_tool("shell")
    audit.close()
    assert [record["name"] for record in read(moved)] == ["echo"]
    assert [record["name"] for record in read(path)] == ["shell", "shell"]


async def test_two_processes_may_write_to_one_file(tmp_path):
    """Two writers of one file do not mix their lines."""
    path = tmp_path / "audit"
    audits = [AuditLog(path), AuditLog(path)]
    for audit in audits:
        async with connect(served(audit)) as client:
            await client.call_tool("echo")
        audit.close()
    assert len(lines(path)) == 2


async def test_a_line_that_was_cut_off_is_not_continued(tmp_path):
    """After a partial line, as a full disk may leave it, the next record begins a new line."""
    path = tmp_path / "audit"
    path.write_text('{"time": "2026')
    audit = AuditLog(path)
    async with connect(served(audit)) as client:
        await client.call_tool("echo")
    audit.close()
    cut, whole = path.read_text().splitlines()
    assert (cut, json.loads(whole)["name"]) == ('{"time": "2026', "echo")


@both
async def test_a_name_may_hold_any_character(tmp_path, kind, read):
    """Names and URIs of clients are recorded; half of a surrogate pair is replaced."""
    path = tmp_path / "audit"

    class Any(Server, name="any", version="1"):
        policies = [AllowTools("*")]

        async def call_tool(self, name, args, ctx):
            return "called"

    audit = kind(path)
    server = Any()
    events = []
    server.telemetry.add(audit)
    server.telemetry.add(events.append)
    async with connect(server) as client:
        await client.call_tool('a\n"b"\x00 ü 😀')
    # Half of a surrogate pair, which other clients may send, has no UTF-8.
    (event,) = (each for each in events if each.kind == "decision")
    await audit.confirm(event._replace(name="\ud800"))
    audit.close()
    first, second = (record["name"] for record in read(path))
    assert first == 'a\n"b"\x00 ü 😀'
    assert second in ("\ud800", "?")


# Failures


@both
async def test_what_cannot_be_kept_is_denied(tmp_path, kind, read, caplog):
    """The handler does not run; a denial remains one; it recovers with the disk."""
    path = tmp_path / "missing" / "audit"
    audit = kind(path)
    events = []
    async with connect(served(audit, events.append)) as client:
        assert (await client.call_tool("echo")).text == "Denied: audit failed"
        assert "blocked by the pattern" in (await client.call_tool("shell")).text
        assert "failed" in caplog.text
        path.parent.mkdir()
        assert not (await client.call_tool("echo")).is_error
    audit.close()
    assert [record["decision"] for record in read(path)] == ["allow"]
    decisions = [(e.decision, e.policy, e.reason) for e in events if e.kind == "decision"]
    assert decisions[:2] == [("allow", None, None), ("deny", "audit", "audit failed")]


@both
async def test_another_audit_hears_that_one_has_failed(tmp_path, kind, read):
    """It records that the call was allowed, and then that it was denied."""
    path = tmp_path / "audit"
    good, bad = kind(path), kind(tmp_path / "missing" / "audit")
    async with connect(served(good, bad)) as client:
        assert (await client.call_tool("echo")).text == "Denied: audit failed"
    good.close()
    assert [(r["decision"], r["policy"]) for r in read(path)] == [
        ("allow", None),
        ("deny", "audit"),
    ]


async def test_a_full_disk_denies_and_leaves_whole_lines(tmp_path, monkeypatch):
    """After a partial line the next record begins a new one."""
    path = tmp_path / "audit"
    audit = AuditLog(path)
    write, full = os.write, [True]

    def failing(file, data):
        if full and len(data) > 1:
            write(file, bytes(data)[:5])
            full.pop()
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, bytes(data)[:20])  # the system may write a part

    async with connect(served(audit)) as client:
        monkeypatch.setattr(os, "write", failing)
        assert (await client.call_tool("echo")).text == "Denied: audit failed"
        assert not (await client.call_tool("echo")).is_error
        monkeypatch.undo()
    audit.close()
    # The denial of the first call is stored, too.
    cut, *whole = path.read_text().splitlines()
    assert cut == '{"tim'
    assert [json.loads(line)["decision"] for line in whole] == ["deny", "allow"]


async def test_a_disk_that_hangs_denies_in_bounded_time(tmp_path, monkeypatch, autojump_clock):
    """A call waits for a limited time, and the number of waiting records is limited."""
    monkeypatch.setattr("noizu_mcp.telemetry._audit.MAX_WAITING", 2)
    audit = AuditLog(tmp_path / "audit", patience=3)
    hung, release = threading.Event(), threading.Event()

    def hang(records):
        hung.set()
        release.wait()

    monkeypatch.setattr(audit, "_write", hang)
    async with connect(served(audit)) as client:
        before = trio.current_time()
        try:
            results = []

            async def call():
                results.append((await client.call_tool("echo")).text)

            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(call)
        finally:
            release.set()
        assert results == ["Denied: audit failed"] * 5
        # Twice: the denial is written, too.
        assert trio.current_time() - before == pytest.approx(6, abs=0.5)
        assert not audit._queue


async def test_a_pipe_is_no_file(tmp_path):
    """A pipe is refused, since its replacement could not be detected."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    audit = AuditLog(path)
    async with connect(served(audit)) as client:
        assert (await client.call_tool("echo")).text == "Denied: audit failed"
    audit.close()


async def test_a_file_that_is_no_database_denies(tmp_path):
    """The file is not changed."""
    path = tmp_path / "audit"
    path.write_text("no database " * 100)
    audit = AuditTable(path)
    async with connect(served(audit)) as client:
        assert (await client.call_tool("echo")).text == "Denied: audit failed"
    audit.close()
    assert path.read_text() == "no database " * 100


async def test_a_loop_that_has_ended_is_not_notified(tmp_path):
    """A record may be written after its call was cancelled with its loop."""
    audit = AuditLog(tmp_path / "audit")
    event = Event("decision", 1, "tools/call", "memory", name="echo", decision="allow")
    began, release, written = threading.Event(), threading.Event(), trio.Event()
    token = trio.lowlevel.current_trio_token()
    write = audit._write

    def late(records):
        began.set()
        release.wait()
        write(records)
        token.run_sync_soon(written.set)

    audit._write = late

    async def confirm():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(audit.confirm, event)
            await trio.to_thread.run_sync(began.wait)
            nursery.cancel_scope.cancel()

    def run():
        trio.run(confirm)
        release.set()

    await trio.to_thread.run_sync(run)
    with trio.fail_after(60):
        await written.wait()
    audit.close()
    assert [record["name"] for record in lines(tmp_path / "audit")] == ["echo"]


async def test_a_listener_that_fails_to_confirm_denies(caplog):
    """Each listener that confirms decisions must succeed; others do not matter."""

    class Broken(Listener):
        async def confirm(self, event):
            raise ZeroDivisionError

    server = served(Listener(), Broken())
    async with connect(server) as client:
        assert (await client.call_tool("echo")).text == "Denied: audit failed"
        with pytest.raises(McpError):
            await client.read_resource("page://one")


# The end of the process

APP = """
import time
from noizu_mcp import Server, mcp
from noizu_mcp.policies import AuditLog, AuditTable, DenyTools

@mcp
async def echo(text: str) -> str:
    return text

class SlowDisk({kind}):
    def _write(self, records):
        time.sleep(0.02)
        super()._write(records)

class App(Server, name="app", version="1"):
    tools = [echo]
    policies = [DenyTools("shell")]
    telemetry = [SlowDisk({path!r})]

App().run()
"""


@pytest.mark.slow
@both
async def test_no_answered_call_is_missing_after_a_kill(tmp_path, kind, read):
    """If the process is killed during calls, each answered call has its record.

    Its disk is slow, so that an answer which does not wait would precede its record.
    """
    path = tmp_path / "audit"
    app = tmp_path / "app.py"
    pid_file = tmp_path / "pid"
    note = f"import os; open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
    app.write_text(note + APP.format(kind=kind.__name__, path=str(path)))
    answered = 0

    async def call(client, enough):
        nonlocal answered
        while True:
            await client.call_tool("echo", {"text": "x"})
            answered += 1
            if answered == 100:
                os.kill(int(pid_file.read_text()), signal.SIGKILL)
                enough.set()
                return

    with trio.fail_after(60), suppress(ConnectionClosed):
        command = Stdio(sys.executable, str(app))
        async with connect(command) as client, trio.open_nursery() as nursery:
            enough = trio.Event()
            for _ in range(10):
                nursery.start_soon(call, client, enough)
            await enough.wait()
            nursery.cancel_scope.cancel()
    records = read(path)
    assert len(records) >= answered >= 100
    assert {record["name"] for record in records} == {"echo"}
