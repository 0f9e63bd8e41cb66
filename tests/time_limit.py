"""A time limit for each test, its fixtures included, and one for the whole run.

Theory of operation. A thread of each process that runs tests looks at the clock. When a test is
over its limit, the thread writes to stderr what the process does (`stacks.py`), and sends SIGALRM.
The handler of SIGALRM, which runs in the main thread, does what Ctrl-C does there: trio cancels its
main task, asyncio its own, and other code is left by KeyboardInterrupt. The test fails, and the
next one runs.

A test that goes on nevertheless ends its process `GRACE` seconds later. pytest-xdist reports this
test as failed, and gives the others to a new worker. If C code holds the
interpreter lock, the thread cannot run; then the timer of faulthandler ends the process.

A run over its limit ends each of its workers in the same way, after they have written what they do,
and then itself.
"""

import faulthandler
import os
import signal
import threading
from collections.abc import Generator
from contextlib import suppress

# By name: a test that patches the clock patches the module `time`.
from time import monotonic, time

import pytest

from .stacks import child_processes, what_runs

#: Seconds for a test with its fixtures.
LIMIT = 120.0
#: Seconds from the interruption of a test to the end of its process.
GRACE = 30.0
#: Seconds that the workers have at the end of a run, before the process that started them ends.
HEAD_START = 5.0
#: Seconds between two checks.
TICK = 0.25
NEVER = float("inf")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two limits."""
    group = parser.getgroup("time limits")
    group.addoption(
        "--time-limit",
        type=float,
        default=LIMIT,
        metavar="SECONDS",
        help=f"for each test, its fixtures included; 0 for none ({LIMIT:g})",
    )
    group.addoption(
        "--run-limit",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="for all tests together; 0 for none (0)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set SIGINT to its default, and begin to watch.

    A job in the background of a shell has SIGINT ignored, and so would have the programs that tests
    start and end with SIGINT.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "time_limit(seconds): another limit than --time-limit")
    # A debugger waits for input.
    if not config.option.usepdb:
        config.pluginmanager.register(TimeLimits(config), "time limits")


class TimeLimits:
    """The watch over the tests of one process."""

    def __init__(self, config: pytest.Config) -> None:
        """Begin to watch."""
        self.default = config.option.time_limit
        self.grace = GRACE
        given = getattr(config, "workerinput", None)
        self.is_worker = given is not None
        limit = config.option.run_limit
        # The clock that all processes share.
        self.run_end = given["run_end"] if given else time() + limit if limit else NEVER
        # Capturing has not begun.
        self.stderr = os.dup(2)
        self.test = ""
        self.limit = 0.0
        self.test_end = NEVER
        #: True while KeyboardInterrupt may be raised, since code of a test runs.
        self.interruptible = False
        self.is_over = False
        self.is_reported = False
        self.is_run_over = False
        # Held while one thread changes the running test, or another one ends it.
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.main_thread = threading.get_ident()
        signal.signal(signal.SIGALRM, self.interrupt)
        threading.Thread(target=self.watch, name="time limits", daemon=True).start()

    # The thread

    def watch(self) -> None:
        """Check the clock until the session ends."""
        while not self.stopped.wait(TICK):
            if time() >= self.run_end:
                self.end_run()
            with self.lock:
                if monotonic() >= self.test_end:
                    self.end_test()

    def end_test(self) -> None:
        """Interrupt a test that is over its limit; end the process if that has had no effect."""
        if self.is_over:
            self.exit(f"{self.test} cannot be interrupted: its process ends")
        self.is_over = True
        self.test_end = monotonic() + self.grace
        self.describe(f"{self.test} is over its time limit of {self.limit:g} s")
        signal.pthread_kill(self.main_thread, signal.SIGALRM)

    def end_run(self) -> None:
        """End the process that is over the limit of the run."""
        doing = self.test or "no test"
        if not self.is_worker:
            # First its workers describe what they do, and end.
            self.stopped.wait(HEAD_START)
        self.describe(f"The run is over its time limit, in {doing}")
        if self.is_worker or self.is_run_over:
            self.exit("The process ends")
        self.is_run_over = True
        self.run_end = time() + self.grace
        signal.pthread_kill(self.main_thread, signal.SIGALRM)

    def describe(self, title: str) -> None:
        """Write the state of the process."""
        try:
            text = what_runs()
        except Exception as error:  # The tasks run while they are read.
            text = f"what runs cannot be read: {error!r}"
        self.say(f"\n{title}\n{text}\n{title}")

    def exit(self, reason: str) -> None:
        """End the process, and those that it has started."""
        self.say(reason)
        for pid, _ in child_processes():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        os._exit(1)

    def say(self, text: str) -> None:
        """Write to stderr in one piece, so that texts of two workers do not mix."""
        os.write(self.stderr, f"{text}\n".encode(errors="replace"))

    # The main thread

    def interrupt(self, number: int, frame: object) -> None:
        """Do what Ctrl-C does to the code that runs."""
        if self.is_run_over:
            raise KeyboardInterrupt
        if self.interruptible and self.is_over:
            handler = signal.getsignal(signal.SIGINT)
            if not callable(handler):
                raise KeyboardInterrupt
            handler(signal.SIGINT, frame)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Watch a test with its fixtures."""
        marker = item.get_closest_marker("time_limit")
        limit = marker.args[0] if marker else self.default
        with self.lock:
            self.test, self.limit = item.nodeid, limit
            self.test_end = monotonic() + limit if limit else NEVER
            self.is_over = self.is_reported = False
        if limit:
            last = limit + 2 * self.grace
            faulthandler.dump_traceback_later(last, exit=True, file=self.stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()
            with self.lock:
                self.test, self.test_end = "", NEVER

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        """Let the fixtures of a test be interrupted."""
        return (yield from self.phase())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Let the test be interrupted."""
        return (yield from self.phase())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Let the end of one of the fixtures be interrupted."""
        try:
            return (yield from self.phase())
        finally:
            if self.is_over:
                # KeyboardInterrupt skips the other fixtures, which the next test would find.
                item.session._setupstate.teardown_exact(nextitem)

    def phase(self) -> Generator[None, object, object]:
        """Raise the failure of a test that was interrupted."""
        try:
            self.interruptible = True
            try:
                return (yield)
            finally:
                self.interruptible = False
        except KeyboardInterrupt:
            if not self.is_over:
                raise
            self.fail()

    def fail(self) -> None:
        """Raise what fails a test that is over its limit."""
        pytest.fail(f"over its time limit of {self.limit:g} s", pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Report a test as over its limit, however the interruption ended it."""
        report = yield
        if self.is_over and not self.is_reported:
            self.is_reported = True
            report.outcome = "failed"
            vars(report).pop("wasxfail", None)
            try:
                self.fail()
            except pytest.fail.Exception:
                report.longrepr = item.repr_failure(pytest.ExceptionInfo.from_current())
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node) -> None:
        """Pass the end of the run to a worker."""
        node.workerinput["run_end"] = self.run_end

    def pytest_unconfigure(self) -> None:
        """End the watch."""
        self.stopped.set()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
