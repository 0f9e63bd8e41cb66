"""Serving over HTTP as the main job of a process, which ends in time whatever its handlers do."""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import attrs
import trio

from ...._util import in_main_thread
from ....engine import logger, single_failure
from ....jsonrpc import Request
from ....server import KEYS_VARIABLE, Server
from ..._process_end import do_nothing, ending_on_signals, ending_within, parent_exit
from ...host import HostOptions
from ._app import HttpApp
from ._http_options import HttpOptions, backend_of
from ._serve_http import MARGIN, Serving, SignalScope, make_app, no_signals, serve_app

if TYPE_CHECKING:
    from ._worker import Worker

#: Seconds added to the sum of all timeouts at the end, for a busy machine.
_SLACK: Final = 0.5
#: Maximum number of requests that the log names when they keep a process from ending.
MAX_NAMED: Final = 10


class _Serve(Protocol):
    async def __call__(self, *, task_status: trio.TaskStatus[Serving]) -> None: ...


def run_process(
    server: Server,
    host: str,
    port: int,
    options: HttpOptions,
    host_options: HostOptions,
    *,
    server_name: str,
    parent: int | None = None,
    worker: "Worker | None" = None,
) -> None:
    """Serve until a signal arrives; see `run_http` in `_serving.py`, which loads this late."""
    if worker is not None:
        if backend_of(options, server) is None:
            options = attrs.evolve(options, backend=worker.backend())
        elif os.environ.get(KEYS_VARIABLE) == worker.secret:
            # The key of this supervisor: processes on other machines do not have it.
            del os.environ[KEYS_VARIABLE]
    # Of several workers one says what is wrong with the options.
    app = make_app(server, options, host, warns=worker is None or worker.is_first)
    seconds = longest_end(options, host_options)
    # Around the loop, in a thread: a handler that blocks the loop would block every timeout in it.
    with ending_within(seconds, partial(say_overdue, app, seconds)) as due:
        serve = partial(
            serve_app,
            app,
            host,
            port,
            host_options,
            signals=_signals(worker, due) if in_main_thread() else no_signals,
            server=server_name,
            shared=None if worker is None else worker.sockets,
        )
        trio.run(_announced, serve, app, parent, worker)


def _signals(worker: "Worker | None", due: Callable[[], None]) -> SignalScope:
    if worker is None:
        return partial(ending_on_signals, at_once=due)

    def at_once() -> None:
        worker.note_signal()
        due()

    # A signal that is sent to all processes of a service comes a second time from the supervisor.
    # Its own end, which a second signal causes, ends the worker at once.
    return partial(ending_on_signals, at_once=at_once, again=do_nothing)


async def _announced(
    serve: _Serve, app: HttpApp, parent: int | None, worker: "Worker | None"
) -> None:
    with single_failure():
        async with trio.open_nursery() as watchers:
            if parent is not None:
                # In a separate nursery: it must end when serving ends, and not the other way round.
                watchers.start_soon(_end_with, parent)
            async with trio.open_nursery() as nursery:
                host = await nursery.start(serve)
                if worker is None:
                    where = ", ".join(f"{url}{app.options.path}" for url in host.urls)
                    sys.stderr.write(f"noizu-mcp: {app.server.options.name} serves at {where}\n")
                else:
                    watchers.start_soon(worker.attend, app, host)
            watchers.cancel_scope.cancel()


async def _end_with(parent: int) -> None:
    await parent_exit(parent)
    # Like every other end: graceful, with its grace, and with the watchdog.
    signal.raise_signal(signal.SIGTERM)


def longest_end(options: HttpOptions, host_options: HostOptions) -> float:
    """Return the maximum seconds of a graceful end."""
    end = host_options.drain_timeout + host_options.lifespan_timeout
    return host_options.lead + options.limits.grace + MARGIN + end + _SLACK


def say_overdue(app: HttpApp, seconds: float) -> None:
    """Log the requests that keep a server from ending."""
    working = [describe(each) for each in app.working]
    named, left = working[:MAX_NAMED], len(working) - MAX_NAMED
    logger.error(
        "%r has not ended within %g s, and is ended now; still at work: %s",
        app.server,
        seconds,
        ", ".join([*named, *([f"{left} more"] if left > 0 else [])]) or "no request",
    )


def describe(request: Request) -> str:
    """Describe a request for the log: `tools/call 'search'`."""
    name = (request.params or {}).get("name")
    return f"{request.method} {name[:100]!a}" if isinstance(name, str) else request.method
