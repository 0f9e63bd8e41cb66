"""The small parts of the engine: the log, failures, eager tasks and open requests."""

import json
import logging
import math

import pytest
import trio
import trio.testing

from noizu_mcp.engine import (
    InboundRequest,
    InFlight,
    TaskScope,
    ThrottledLog,
    is_crash,
    run_eager,
    single_failure,
    split_cancellation,
    unwrap_single,
)
from noizu_mcp.jsonrpc import Request

MORE = "%s: more of these are counted, not shown, for up to a minute"


def said(caplog):
    """Return the log entries, and clear them."""
    records = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return records


def test_entries_of_a_kind_are_shown_and_then_counted(caplog):
    """Kinds do not hide each other; the number is logged with the first entry after the minute."""
    now = [0.0]
    throttled_log = ThrottledLog(lambda: now[0], shown=2)
    for number in range(6):
        throttled_log.warning("a", "a %d", number)
    throttled_log.entry(logging.ERROR, "b", "b")
    assert said(caplog) == [
        ("WARNING", "a 0"),
        ("WARNING", "a 1"),
        ("WARNING", MORE % "a 2"),
        ("ERROR", "b"),
    ]
    now[0] = 59
    throttled_log.warning("a", "a 6")
    assert said(caplog) == []
    now[0] = 60
    throttled_log.warning("c", "c")
    assert said(caplog) == [("WARNING", "a 2: 5 more within a minute"), ("WARNING", "c")]
    throttled_log.warning("a", "a again")
    assert said(caplog) == [("WARNING", "a again")]


def test_a_peer_cannot_fill_the_log(caplog):
    """The number of distinct entries is bounded in each period."""
    now = [0.0]
    throttled_log = ThrottledLog(lambda: now[0], most=20)
    for number in range(40):
        throttled_log.warning(number, "%d", number)
    shown = [("WARNING", str(number)) for number in range(21)]
    assert [*shown, ("WARNING", MORE % "other entries")] == said(caplog)
    now[0] = 60
    throttled_log.warning("x", "again")
    more = "other entries: 19 more within a minute"
    assert [("WARNING", more), ("WARNING", "again")] == said(caplog)


def test_a_long_entry_is_not_repeated_whole(caplog):
    """The line with the number repeats only the beginning of the entry."""
    throttled_log = ThrottledLog(shown=2)
    for _ in range(3):
        throttled_log.warning("a", "it says %s", "x" * 10_000)
    assert [("WARNING", MORE % f"it says {'x' * 192}")] == said(caplog)[2:]


def test_one_entry_may_be_enough(caplog):
    """Then only the number of suppressed entries follows."""
    now = [0.0]
    throttled_log = ThrottledLog(lambda: now[0])
    for about in ("a", "b", "a", "a"):
        throttled_log.warning(about, "it is %s", about)
    assert said(caplog) == [("WARNING", "it is a"), ("WARNING", "it is b")]
    now[0] = 60
    throttled_log.warning("a", "it is a again")
    more = "it is a: 2 more within a minute"
    assert [("WARNING", more), ("WARNING", "it is a again")] == said(caplog)


def raised(function, error):
    """Let a function raise; return the exception with its traceback."""
    try:
        function(error)
    except BaseException as caught:
        return caught


def one(error):
    raise error


def wrapped(error):
    one(error)


def other(error):
    raise error


def test_crashes_are_told_apart_by_where_and_what(caplog):
    """A place that fails for ever hides no other place, and no other type of exception."""
    throttled_log = ThrottledLog()
    for _ in range(50):
        for function in (one, wrapped, other):
            for error in (ValueError("a"), KeyError("b")):
                throttled_log.crash("tool", "it failed", error=raised(function, error))
        throttled_log.crash("tool", "never raised", error=OSError())
    shown = [record for record in caplog.records if record.exc_info]
    assert shown == caplog.records
    assert len(shown) == 7


def test_a_lone_exception_leaves_its_groups():
    """A single exception is unwrapped, with its own cause; several remain a group."""
    cause = KeyError("cause")
    error = ValueError("inside")
    error.__cause__ = cause
    with pytest.raises(ValueError, match="inside") as caught, single_failure():
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [error])])
    assert caught.value.__cause__ is cause
    with pytest.raises(ExceptionGroup), single_failure():
        raise ExceptionGroup("two", [ValueError(), KeyError()])
    with pytest.raises(OSError, match="alone"), single_failure():
        raise OSError("alone")
    assert unwrap_single(error) is error


def test_a_consequence_is_left_out_beside_its_cause():
    """Alone it is the failure; beside another exception it is dropped."""
    with pytest.raises(OSError, match="cause"), single_failure(KeyError):
        raise ExceptionGroup("g", [KeyError(), ExceptionGroup("h", [OSError("cause")])])
    with pytest.raises(KeyError), single_failure(KeyError):
        raise ExceptionGroup("g", [KeyError()])
    with pytest.raises(KeyError, match="first"), single_failure(KeyError):
        raise ExceptionGroup("g", [KeyError("first"), KeyError("second")])
    with pytest.raises(ExceptionGroup) as caught, single_failure(KeyError):
        raise ExceptionGroup("g", [KeyError(), OSError(), ValueError()])
    assert [type(each) for each in caught.value.exceptions] == [OSError, ValueError]


def test_failures_are_taken_apart():
    """A group is split into failures and what must propagate; each part keeps its groups."""
    crash, interrupt = ValueError(), KeyboardInterrupt()
    assert split_cancellation(crash) == (crash, None)
    assert split_cancellation(interrupt) == (None, interrupt)
    group = ExceptionGroup("g", [crash])
    failed, going_on = split_cancellation(group)
    assert (unwrap_single(failed), going_on) == (crash, None)
    failed, going_on = split_cancellation(BaseExceptionGroup("g", [interrupt, group]))
    assert unwrap_single(failed) is crash
    assert unwrap_single(going_on) is interrupt


async def test_what_is_a_crash_and_what_must_go_on():
    """Exceptions and SystemExit are crashes; cancellation and Ctrl-C propagate, also in groups."""
    assert is_crash(ValueError())
    assert is_crash(SystemExit())
    assert is_crash(BaseExceptionGroup("g", [SystemExit(), ValueError()]))
    assert not is_crash(KeyboardInterrupt())
    assert not is_crash(BaseExceptionGroup("g", [ValueError(), KeyboardInterrupt()]))
    passed = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except BaseException as error:
            passed.append(is_crash(error))
            raise
    assert passed == [False]


class Trap:
    """Yields to the driver of the coroutine, as a trap of the scheduler does."""

    def __await__(self):
        return (yield "trap")


def test_the_leader_passes_on_what_it_is_sent_and_thrown():
    """A handler under the leader sees the same values and exceptions as in its own task."""
    log = []

    async def work():
        log.append(await Trap())
        try:
            await Trap()
        except KeyError as error:
            log.append(error.args)
        raise OSError("out")

    driver = run_eager(work(), lambda: log.append("blocked"))
    assert driver.send(None) == "trap"
    assert log == ["blocked"]
    assert driver.send("value") == "trap"
    with pytest.raises(OSError, match="out"):
        driver.throw(KeyError("thrown"))
    assert log == ["blocked", "value", ("thrown",)]


def test_a_handler_that_never_waits_needs_no_task():
    """`on_block` is not called; the handler sees the context variables, and leaks none."""
    import contextvars

    variable = contextvars.ContextVar("variable")
    variable.set(0)

    async def work():
        assert variable.get() == 0
        variable.set(1)

    driver = run_eager(work(), lambda: pytest.fail("it waited"))
    with pytest.raises(StopIteration):
        driver.send(None)
    assert variable.get() == 0


def test_a_closed_leader_closes_its_handler():
    """Closing the driver closes the handler's coroutine."""
    closed = []

    async def work():
        try:
            await Trap()
        finally:
            closed.append(True)

    driver = run_eager(work(), lambda: None)
    driver.send(None)
    driver.close()
    assert closed == [True]


async def test_a_scope_that_was_cancelled_is_not_kept():
    """A scope stays entered for the next work of its task, unless it was cancelled."""
    scopes = TaskScope(keeps=True)
    with scopes:
        first = scopes.enter()
    with scopes:
        assert scopes.enter() is first
        first.cancel()
    with scopes:
        assert scopes.enter() is not first
        await trio.lowlevel.checkpoint()
        scopes.keeps = False
    assert scopes.scope is None


class Requests(InFlight):
    """Requests in flight without a connection."""

    def spawn(self, work):
        raise AssertionError

    def observe_sent(self, method, size):
        raise AssertionError


class Channel:
    """Records what a request sends."""

    has_room = True

    def __init__(self, room=1000):
        self.sent = []
        self.left = room

    def reserve(self, size):
        self.left -= size
        return self.left >= 0

    def answer(self, message, code=None):
        self.sent.append(message)

    def offer(self, message):
        self.sent.append(json.loads(message)["method"])

    def abandon(self):
        self.sent.append("nothing")

    async def room(self):
        """Return at once, since there is room."""


def inbound():
    return InboundRequest(Requests(), Request("id", "tools/list", {}), None, Channel())


def test_an_answer_without_room_is_an_error():
    """An error replaces the result, and says what to do."""
    one = InboundRequest(Requests(), Request("id", "tools/list", {}), None, Channel(room=10))
    one.send_result({"x": "y" * 100})
    (sent,) = one.channel.sent
    assert json.loads(sent)["error"]["code"] == -32603
    assert b"ask for less" in sent


def test_a_request_is_answered_once():
    """The first answer is sent; later answers and notices are dropped."""
    one = inbound()
    one.send_notice("notifications/progress", {})
    one.send_result({"x": 1})
    one.send_result({"x": 2})
    one.send_error(1, "late")
    one.send_notice("notifications/progress", {})
    assert one.channel.sent == [
        "notifications/progress",
        b'{"jsonrpc":"2.0","id":"id","result":{"x":1}}',
    ]


def test_a_deadline_moves_with_its_scope():
    """It can be moved before and after the work has a scope."""
    one = inbound()
    one.expire_at(5)
    one.scope = trio.CancelScope()
    assert one.deadline == 5
    one.expire_at(7)
    assert (one.deadline, one.scope.deadline) == (7, 7)


def test_after_a_cancellation_there_is_no_answer():
    """Nothing is sent for the id of a cancelled request."""
    one = inbound()
    one.withdraw()
    one.send_result({"x": 1})
    one.send_notice("notifications/progress", {})
    assert one.channel.sent == ["nothing"]


def test_a_result_that_is_no_json_is_an_internal_error(caplog):
    """The request is answered with it."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    for value in (object(), float("nan")):
        one = inbound()
        one.send_result({"x": value})
        assert b'"code":-32603,"message":"Result is not JSON"' in one.channel.sent[0]
    cycle = {}
    cycle["x"] = cycle
    one = inbound()
    one.send_result(cycle)
    assert b"Result is not JSON" in one.channel.sent[0]


def test_the_deadline_of_a_request():
    """It moves with the scope of the work; `stop` cancels the work, also before it has a scope."""
    one = inbound()
    one.scope = trio.CancelScope()
    one.expire_at(10)
    assert (one.deadline, one.scope.deadline) == (10, 10)
    one.stop()
    assert one.scope.cancel_called
    endless = inbound()
    assert endless.deadline == math.inf
    endless.stop()
    assert endless.deadline == -math.inf  # it has not waited yet, and ends when it does


async def test_a_cancellation_where_nothing_is_cancelled_is_a_crash():
    """A `Cancelled` that was kept from another scope counts as a crash."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as error:
            kept = error
            assert not is_crash(BaseExceptionGroup("g", [kept, ValueError()]))
            assert split_cancellation(kept) == (None, kept)
    assert is_crash(kept)
    assert is_crash(BaseExceptionGroup("g", [kept, ValueError()]))
    assert split_cancellation(kept) == (kept, None)
    group = BaseExceptionGroup("g", [kept, KeyboardInterrupt()])
    assert not is_crash(group)
    failed, going_on = split_cancellation(group)
    assert unwrap_single(failed) is kept
    assert isinstance(unwrap_single(going_on), KeyboardInterrupt)
