"""Progress and log messages of a call: only on a terminal."""

import io
import os
import pty
import threading
from functools import partial
from math import inf

import pytest
import trio

from noizu_mcp import Server, connect
from noizu_mcp.cli import main
from noizu_mcp.cli._ask import Person
from noizu_mcp.cli._display import Display, bar_of
from noizu_mcp.cli._errors import CommandError
from noizu_mcp.client import Progress
from noizu_mcp.client.terminal import Terminal

SERVER = r"""
from noizu_mcp import Context, Server, Toolkit, mcp

class Kit(Toolkit):
    @mcp
    async def work(self, n: int, ctx: Context) -> str:
        for step in range(n):
            await ctx.report_progress(step + 1, n, f"step {step}\x1b[2J")
            await ctx.info({"at": step}, logger="kit")
            await ctx.warning("two\nlines")
            await ctx.debug("not shown")
        return "done"

    @mcp
    async def ask(self, ctx: Context) -> str:
        await ctx.report_progress(1, 2)
        answer = await ctx.elicit("Sure?", {"type": "object", "properties": {}})
        await ctx.info("answered")
        return answer.action

class Working(Server, name="working", version="1"):
    tools = [Kit]
"""
ERAS = ("2025-11-25", "2026-07-28")


@pytest.fixture
def on_terminal(folder, capfd, monkeypatch):
    """Run a command whose stderr, and on request stdin, is a terminal."""
    (folder / "working.py").write_text(SERVER)

    def run(*words, typed=None):
        master, slave = pty.openpty()
        shown, waiting = [], [typed] if typed else []

        def read():
            while True:
                try:
                    shown.append(os.read(master, 4096))
                except OSError:
                    return
                if waiting and waiting[0][0] in b"".join(shown):
                    os.write(master, waiting.pop()[1])

        reader = threading.Thread(target=read)
        reader.start()
        with (
            os.fdopen(slave, "w") as stderr,
            os.fdopen(os.dup(slave)) as stdin,
            monkeypatch.context() as patch,
        ):
            patch.setattr("sys.stderr", stderr)
            patch.setattr("sys.stdin", stdin if typed else io.StringIO())
            status = main(words)
        reader.join(20)
        os.close(master)
        return status, capfd.readouterr().out, b"".join(shown).decode()

    return run


@pytest.mark.parametrize("version", ERAS)
def test_a_call_on_a_terminal(on_terminal, version):
    """The bar is drawn and erased; log messages from "info" on are separate lines."""
    words = ("call", "working.py", "work", "n=2", "--protocol", version)
    status, out, shown = on_terminal(*words)
    assert (status, out) == (0, "done\n")
    assert "[############------------]  50%  step 0\\u{1B}[2J" in shown
    assert "[########################] 100%" in shown
    assert '[info] kit: {"at": 0}' in shown
    assert "[warning] two lines" in shown
    assert "not shown" not in shown
    assert "\x1b" not in shown
    # The last output erases the bar.
    assert shown.endswith(" \r")


@pytest.mark.parametrize("more", [["--json"], ["--trace"]])
def test_a_call_that_others_read(on_terminal, more):
    """With `--json` there is no bar and no log line, and a trace has the raw messages."""
    _, _, shown = on_terminal("call", "working.py", "work", "n=2", *more)
    assert "[info]" not in shown
    if more == ["--json"]:
        assert shown == ""


def test_a_call_into_a_pipe(folder, run):
    """Nothing is printed if stderr is not a terminal."""
    (folder / "working.py").write_text(SERVER)
    assert run("call", "working.py", "work", "n=2") == (0, "done\n", "")


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_log_messages_that_are_asked_for(folder, run, version, more):
    """`--log-level` prints messages from that level on, also into a file, without a bar."""
    (folder / "working.py").write_text(SERVER)
    words = ("call", "working.py", "work", "n=1", "--protocol", version, *more)
    status, _, err = run(*words, "--log-level", "warning")
    assert (status, err) == (0, "[warning] two lines\n")
    assert "[debug] not shown\n" in run(*words, "--log-level", "debug")[2]


def test_a_question_pauses_the_display(on_terminal):
    """The bar is erased before a question, and log messages wait for the answer."""
    words = ("call", "working.py", "ask", "--protocol", ERAS[0])
    status, out, shown = on_terminal(*words, typed=(b"Answer?", b"yes\n"))
    assert (status, out) == (0, "accept\n")
    bar, question, log = (shown.index(part) for part in ("50%", "Sure?", "[info] answered"))
    assert bar < question < log
    assert "50%" not in shown[question:]


async def test_progress_keeps_a_call_alive(autojump_clock):
    """Each report restarts the timeout of the server, also without a terminal."""

    class Quiet(Server, name="quiet", version="1"):
        pass

    person = Person(Terminal(0, io.StringIO()), 1.0, Display(None))

    async def work(reports):
        for number in range(5):
            await trio.sleep(0.9)
            if reports:
                person.report(Progress(number))
        return "there"

    with person._clock_stopped():  # the clock is paused during a question
        person.report(Progress(1))
        assert person._scope.deadline == inf
    async with connect(Quiet) as client:
        assert await person.during(client, partial(work, True)) == "there"
        person = Person(Terminal(0, io.StringIO()), 1.0, Display(None))
        with pytest.raises(CommandError, match="the server did not answer within 1 s"):
            await person.during(client, partial(work, False))


class Screen(io.StringIO):
    """A terminal without a descriptor, so its width is unknown."""

    encoding = "utf-8"

    def isatty(self):
        return True


def test_a_change_alone_is_drawn():
    """A thousand equal reports are drawn once."""
    screen = Screen()
    display = Display(screen)
    for number in range(1000):
        display.report(Progress(number, 10**9))
    assert screen.getvalue().count("\r") == 1


def test_nothing_is_shown_during_a_question():
    """No bar is drawn, and the newest hundred log messages follow afterwards."""
    screen = Screen()
    display = Display(screen)
    note = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%d}}'
    with display.paused():
        display.report(Progress(1, 2))
        for number in range(150):
            display.tap("received", (note % number).encode())
        assert screen.getvalue() == ""
    lines = screen.getvalue().splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("[log] 50", "[log] 149", 100)


def test_a_long_message_is_cut():
    """The bar stays on one line; a shorter one erases the rest of it."""
    screen = Screen()
    display = Display(screen)
    display.report(Progress(1, 2, "x" * 10**6))
    display.report(Progress(2, 2))
    first, second = screen.getvalue().split("\r")[1:]
    assert len(first) == len(second) == 79
    assert first.endswith("x…")
    display.clear()
    assert screen.getvalue().endswith("\r" + " " * 31 + "\r")


def test_batches_and_what_is_no_log_message():
    """Log messages are found in batches, too; other messages are left to the client."""
    screen = Screen()
    display = Display(screen)
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}'
    display.tap("received", b"[%b,%b]" % (note, b'{"jsonrpc":"2.0","method":"x"}'))
    display.tap("received", b'{"notifications/message": ' + b"[" * 10)
    display.tap("received", note.replace(b',"params"', b',"other"'))
    display.tap("sent", note)
    assert screen.getvalue() == "[error] 1\n[log] null\n"
    Display(None).tap("received", note)
    Display(None).report(Progress(1))


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        (Progress(3), "3"),
        (Progress(2.5, None, "so far"), "2.5  so far"),
        (Progress(10**400), "1" + "0" * 11),
        (Progress(10**400, 1), f"[{'#' * 24}] 100%"),
        (Progress(-(10**400), 1), f"[{'-' * 24}]   0%"),
        (Progress(1, 10**400), f"[{'-' * 24}]   0%"),
        (Progress(1, 0), "1"),
    ],
)
def test_bars(progress, shown):
    """With a total there is a bar; any number from a server is formatted."""
    assert bar_of(progress) == shown
