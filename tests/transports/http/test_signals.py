"""Signals of a third-party host: handled in addition to its own handler, and restored."""

import signal
import threading

import pytest
import trio

from noizu_mcp.transports.http import HttpApp, HttpLimits, HttpOptions

from ...kit.messages import call
from .shop import Shop
from .wire import Wire, settled


@pytest.fixture
def handled():
    """Handle both signals as a host does; return the handler and its calls."""
    seen = []

    def handler(number, _frame):
        seen.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number in numbers}
    yield handler, seen
    for number, each in before.items():
        signal.signal(number, each)


def application():
    """Make an application that handles signals."""
    return HttpApp(Shop(), HttpOptions(), handle_signals=True)


async def test_the_host_hears_every_signal(handled):
    """Its handler is called while the application runs, and afterwards it is alone."""
    handler, seen = handled
    async with application().lifespan():
        assert signal.getsignal(signal.SIGINT) is not handler
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            signal.raise_signal(number)
    assert seen == [signal.SIGTERM, signal.SIGINT, signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is handler


async def test_a_handler_that_came_later_stays(handled):
    """A handler that the host installs later is not replaced."""

    def later(*_):
        raise AssertionError

    async with application().lifespan():
        signal.signal(signal.SIGINT, later)
    assert signal.getsignal(signal.SIGINT) is later


async def test_default_actions_are_left_alone(handled, caplog):
    """A signal with the default action, or an ignored one, is left alone; the log says so."""
    handler, _ = handled
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    async with application().lifespan():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is not handler
    assert caplog.messages == []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    async with application().lifespan():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert "handle_signals does nothing: the host handles no signals" in caplog.text


def test_signals_belong_to_the_main_thread(handled, caplog):
    """In another thread the application runs without them, and logs it."""
    handler, _ = handled
    found = []

    async def main():
        async with application().lifespan():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=trio.run, args=[main])
    thread.start()
    thread.join()
    assert found == [handler]
    assert "handle_signals does nothing: the lifespan is not in the main thread" in caplog.text


def test_after_the_loop_the_host_hears_signals_alone(handled):
    """A host that kept the handler of an application whose loop has ended may still call it."""
    kept = []

    async def main():
        async with application().lifespan():
            kept.append(signal.getsignal(signal.SIGTERM))

    trio.run(main)
    kept[0](signal.SIGTERM, None)
    assert handled[1] == [signal.SIGTERM]


async def test_a_signal_begins_the_end(handled, autojump_clock):
    """Running requests get one grace period: the end of the lifespan does not begin another."""
    options = HttpOptions(health=True, limits=HttpLimits(grace=5))
    app = HttpApp(Shop(), options, handle_signals=True)
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        async with app.lifespan():
            wire = Wire(app, nursery)
            running = wire.modern(call("wait", {"seconds": 60}))
            await settled()
            signal.raise_signal(signal.SIGTERM)
            await settled()
            assert (await wire.send("GET", path="/readyz")).status == 503
            assert (await wire.send_modern(call("echo"))).status == 503
        assert trio.current_time() - start == pytest.approx(5)
    assert b"The server is shutting down" in running.body
    assert handled[1] == [signal.SIGTERM]


async def test_signals_are_left_alone_unless_asked_for(handled):
    """Hosts may do everything themselves."""
    async with HttpApp(Shop(), HttpOptions()).lifespan():
        assert signal.getsignal(signal.SIGTERM) is handled[0]
