"""The supervisor of workers: opens the sockets, starts the workers, and replaces those that end.

Theory of operation. The supervisor imports no code of the author: a worker is a new process that
runs the same command, and finds in its environment that it is one (`Worker`). Each *place*, from 1
to N, has one worker, and one task that starts another one when it has ended. The first worker
starts alone, so that a program that cannot start says so once.

SIGHUP replaces the workers place by place: the new one is ready before the old one gets the word to
retire. A place changes under its lock, so the two ways to start a worker do not meet. SIGTERM and
SIGINT end the tasks of the places first, so that nothing else starts, and then the workers. A
second signal ends the supervisor at once, as it ends every server of this package; the workers see
the end of their controls, and follow.
"""

import os
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from typing import Final

import attrs
import trio

from ..._groups import single_failure
from ..._util import growing_pause
from ...backends import Memory
from ...transports import calling_on_hangup, ending_on_signals
from ...transports.host import HostOptions, open_listeners, serve_asgi
from ...workers import open_balance
from .._errors import FAILED, OK
from ._health import Health
from ._process import Program, WorkerProcess, tell

#: Seconds for the end of a worker in addition to its grace; it ends in less, unless it is stopped.
PATIENCE: Final = 6.0
#: Connections to the health port at a time.
PROBES: Final = 32
#: The longest pause before a worker is started again, in seconds.
LONGEST_PAUSE: Final = 30.0
#: Seconds that a worker must live for the pauses to begin anew.
STEADY: Final = 60.0


@attrs.frozen(kw_only=True)
class WorkerOptions:
    """The options of a supervisor and its workers.

    Attributes:
        words: The words of the command, with which each worker is started.
        count: The number of workers.
        host: The address to listen at.
        port: The port.
        path: The path of the protocol, to announce.
        options: The options of the host.
        grace: Seconds of a worker for its running requests.
    """

    words: Sequence[str]
    count: int
    host: str
    port: int
    path: str
    options: HostOptions
    grace: float


@attrs.define(eq=False)
class Place:
    """A place for one worker.

    Attributes:
        worker: The newest worker in it, unless that did not replace the former one.
        changing: Held while another worker is started in it.
    """

    worker: WorkerProcess
    changing: trio.Lock = attrs.field(factory=trio.Lock)


async def supervise(options: WorkerOptions) -> int:
    """Serve with several processes until SIGINT or SIGTERM comes.

    Args:
        options: What is served, and how.

    Returns:
        The exit status.

    Raises:
        ListenError: It cannot listen.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(single_failure())
        # First of all: a port that is in use must not start anything.
        listeners = await open_listeners(options.host, options.port, options.options)
        for each in listeners:
            stack.callback(each.close)
        program = Program(
            command=[sys.executable, "-m", "noizu_mcp", *options.words],
            listeners=[each.fileno() for each in listeners],
            balance=stack.enter_context(open_balance(options.count)).fileno(),
            secret=secrets.token_urlsafe(32),
            backend_of=cache(lambda _name: Memory()),
            patience=options.grace + options.options.lead + PATIENCE,
        )
        supervisor = Supervisor(program, options.count)
        nursery = await stack.enter_async_context(trio.open_nursery())
        await _serve_health(options, supervisor.health, nursery)
        where = ", ".join(f"{each.url}{options.path}" for each in listeners)
        status = await supervisor.run(where)
        nursery.cancel_scope.cancel()
    return status


async def _serve_health(options: WorkerOptions, health: Health, nursery: trio.Nursery) -> None:
    port = options.options.health_port
    if port is not None:
        where = options.options.health_host or options.host
        config = HostOptions(max_connections=PROBES)
        await nursery.start(partial(serve_asgi, health, host=where, port=port, config=config))


class Supervisor:
    """Keeps a number of workers.

    Args:
        program: What the workers run.
        count: Their number.

    Attributes:
        health: What its health port answers.
    """

    def __init__(self, program: Program, count: int) -> None:
        self.health: Final = Health(lambda: [each.worker for each in self._places])
        self._program: Final = program
        self._count: Final = count
        self._places: list[Place] = []
        self._running: set[WorkerProcess] = set()
        self._serving: Final = trio.CancelScope()
        self._hangup = trio.Event()
        self._terminals = [each for each in range(3) if os.isatty(each)]
        self._processes: trio.Nursery

    async def run(self, where: str) -> int:
        """Run the workers until a signal comes.

        Args:
            where: The URLs, to announce.

        Returns:
            The exit status: of the first worker, if it does not start; else 0 if all workers have
            ended in order.
        """
        status: int | None = None
        with calling_on_hangup(self._note_hangup), ending_on_signals(self._end):
            async with trio.open_nursery() as self._processes:
                with self._serving:
                    status = await self._serve(where)
                workers = list(self._running)
                for each in workers:
                    each.end()
        if status is not None:
            return status
        # A worker that does not serve yet ends by the signal.
        orderly = (None, 0, -signal.SIGTERM)
        return OK if all(each.status in orderly for each in workers) else FAILED

    async def _serve(self, where: str) -> int:
        first = self._add_place(1)
        await first.settled.wait()
        if not first.is_ready:
            return first.status if first.status is not None and first.status > 0 else FAILED
        others = [self._add_place(number) for number in range(2, self._count + 1)]
        with trio.move_on_after(self._program.start):
            for each in others:
                await each.settled.wait()
        counted = "1 worker" if self._count == 1 else f"{self._count} workers"
        tell(f"{first.name} serves at {where} with {counted}")
        async with trio.open_nursery() as nursery:
            for place in self._places:
                nursery.start_soon(self._keep, place)
            while True:
                await self._hangup.wait()
                self._hangup = trio.Event()
                await self._replace_all()

    def _note_hangup(self) -> None:
        if all(map(os.isatty, self._terminals)):
            self._hangup.set()
        else:  # the system sends the signal, too, when a terminal is closed
            self._end()

    def _end(self) -> None:
        self.health.is_ending = True
        self._serving.cancel()

    def _add_place(self, number: int) -> WorkerProcess:
        worker = self._start(number)
        self._places.append(Place(worker))
        return worker

    def _start(self, number: int) -> WorkerProcess:
        worker = WorkerProcess(self._program, number)
        self._running.add(worker)
        self._processes.start_soon(self._run, worker)
        return worker

    async def _run(self, worker: WorkerProcess) -> None:
        await worker.run()
        self._running.remove(worker)

    async def _keep(self, place: Place) -> None:
        """Start another worker whenever one has ended that was not replaced."""
        failures = 0
        while True:
            worker = place.worker
            await worker.ended.wait()
            if place.worker is not worker:
                failures = 0
                continue
            lived = trio.current_time() - worker.begun
            failures = 1 if lived > STEADY else failures + 1
            tell(f"worker {worker.number} has ended with status {worker.status}; it is replaced")
            pause = growing_pause(failures, first=self._program.first_pause, longest=LONGEST_PAUSE)
            await trio.sleep(pause)
            async with place.changing:
                if place.worker is worker:
                    place.worker = self._start(worker.number)
                    await self._settle(place.worker)
                    if place.worker.is_ready:
                        tell(f"worker {worker.number} serves again")

    async def _replace_all(self) -> None:
        tell("the workers are replaced one after the other")
        for place in self._places:
            async with place.changing:
                worker = self._start(place.worker.number)
                await self._settle(worker)
                if not worker.is_ready:
                    tell(f"worker {worker.number} has not started: the workers before it go on")
                    return
                former, place.worker = place.worker, worker
            former.retire()
        tell("all workers are replaced")

    async def _settle(self, worker: WorkerProcess) -> None:
        """Wait until a worker serves, or end it."""
        with trio.move_on_after(self._program.start):
            await worker.settled.wait()
        if not worker.is_ready:
            worker.end()
