"""One worker as its supervisor sees it: a process with a control, and with a way to the hub."""

import json
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import attrs
import trio

from ...backends import Backend
from ...workers import (
    METRICS,
    MOST,
    READY,
    RETIRE,
    VARIABLE,
    Balance,
    FrameStream,
    Place,
    serve_hub,
)
from .._say import note


def tell(text: str) -> None:
    """Print one line for the operator. A service goes on without a reader of them."""
    with suppress(OSError):
        note(text)


@attrs.frozen(kw_only=True)
class Program:
    """The program that all workers run, and what they inherit.

    Attributes:
        command: Starts one of them.
        listeners: Descriptors of the sockets that they accept from.
        balance: A descriptor of the memory in which they note their connections.
        secret: A secret that they share.
        backend_of: Returns what they share, by the name of their server.
        patience: Seconds for the end of a worker, before it is killed.
        start: Seconds in which a new worker must be ready, except the very first one.
        first_pause: Seconds before a worker is started again. They double with each time that it
            has ended within a minute.
        answers: Seconds for an answer of a worker, by the word that asks for it. Metrics get longer
            than a handler should block its loop; a probe waits a second.
    """

    command: Sequence[str]
    listeners: Sequence[int]
    balance: int
    secret: str = attrs.field(repr=False)
    backend_of: Callable[[str], Backend]
    patience: float
    start: float = 30.0
    first_pause: float = 0.1
    answers: Mapping[bytes, float] = {READY: 0.5, METRICS: 2.0}

    def place(self, number: int, control: socket.socket, hub: socket.socket) -> Place:
        """Return what a worker inherits.

        Args:
            number: Its number, from 1.
            control: Its end of its control.
            hub: Its end of the way to the hub.
        """
        return Place(
            number=number,
            control=control.fileno(),
            hub=hub.fileno(),
            balance=self.balance,
            listeners=self.listeners,
            secret=self.secret,
        )


@attrs.define(eq=False)
class _Question:
    is_open: bool = False
    answered: trio.Event = attrs.field(factory=trio.Event)
    answer: bytes = b""

    def close(self, answer: bytes) -> None:
        self.is_open = False
        self.answer = answer
        self.answered.set()
        self.answered = trio.Event()


class WorkerProcess:
    """A worker, from its start to its end.

    Args:
        program: What it runs.
        number: Its place, from 1.

    Attributes:
        number: See Args.
        name: The name of its server, once it serves; until then empty.
        settled: Set once it serves, or has ended.
        ended: Set once it has ended.
        begun: When it was started, on trio's clock.
        status: Its exit status, negative for a signal; None while it runs, or if it never did.
    """

    def __init__(self, program: Program, number: int) -> None:
        self.number: Final = number
        self.name = ""
        self.settled: Final = trio.Event()
        self.ended: Final = trio.Event()
        self.begun: Final = trio.current_time()
        self.status: int | None = None
        self._program: Final = program
        self._process: trio.Process | None = None
        self._patience = trio.CancelScope()
        self._ending = False
        self._questions: Final = {word: _Question() for word in program.answers}
        # `RETIRE` is sent once, and each other word again when it was answered.
        self._words, self._unsent = trio.open_memory_channel[bytes](1 + len(program.answers))

    def __str__(self) -> str:
        pid = "none" if self._process is None else self._process.pid
        return f"worker {self.number}: pid {pid}, {self._state}"

    @property
    def is_ready(self) -> bool:
        """True while it serves."""
        return self._state == "ready"

    @property
    def _state(self) -> str:
        if self.ended.is_set():
            return "ended"
        if self._ending:
            return "ending"
        return "ready" if self.settled.is_set() else "starting"

    async def run(self) -> None:
        """Start the process, and wait for its end. If this is cancelled, it is killed."""
        control, its_control = socket.socketpair()
        hub, its_hub = socket.socketpair()
        with control, hub:
            try:
                with its_control, its_hub:
                    place = self._program.place(self.number, its_control, its_hub)
                    self._process = process = await self._open(place)
            except OSError as error:
                tell(f"worker {self.number} cannot be started: {error.strerror}")
            else:
                await self._accompany(process, control, hub)
        Balance(self._program.balance, self.number - 1).leave()
        self.settled.set()
        self.ended.set()

    async def _open(self, place: Place) -> trio.Process:
        return await trio.lowlevel.open_process(
            self._program.command,
            stdin=subprocess.DEVNULL,
            env={**os.environ, VARIABLE: json.dumps(attrs.asdict(place))},
            pass_fds=[place.control, place.hub, place.balance, *place.listeners],
            # Ctrl-C on a terminal is for the supervisor alone, which ends its workers in order.
            process_group=0,
        )

    async def _accompany(
        self, process: trio.Process, control: socket.socket, hub: socket.socket
    ) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve_hub, self._program.backend_of, hub)
                nursery.start_soon(self._attend, control)
                if self._ending:  # while it was started
                    process.terminate()
                with self._patience:
                    await process.wait()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                self.status = await process.wait()

    def end(self) -> None:
        """End it: gracefully if it serves, else at once."""
        if self._process is not None:
            self._process.terminate()
        self._begin_end()

    def retire(self) -> None:
        """Let it answer what is on its way, and end it then: another one has taken its place."""
        self._words.send_nowait(RETIRE)
        self._begin_end()

    def _begin_end(self) -> None:
        self._ending = True
        self._patience.deadline = trio.current_time() + self._program.patience

    async def ask(self, word: bytes) -> bytes:
        """Ask for a text.

        Args:
            word: `READY` or `METRICS`.

        Returns:
            The text; the last one if the worker does not answer in time, and empty without one.
        """
        question = self._questions[word]
        if not question.is_open:
            question.is_open = True
            self._words.send_nowait(word)
        with trio.move_on_after(self._program.answers[word]):
            await question.answered.wait()
        return question.answer

    async def _attend(self, control: socket.socket) -> None:
        """Hear that it is ready, and its answers; tell it what is wanted."""
        control.setblocking(False)
        frames = FrameStream(trio.SocketStream(trio.socket.from_stdlib_socket(control)), MOST)
        name = await frames.receive()
        if name is None:
            return
        self.name = name.decode()
        self.settled.set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tell, frames)
            while (text := await frames.receive()) is not None:
                word, _, answer = text.partition(b"\n")
                self._questions[word].close(answer)
            nursery.cancel_scope.cancel()

    async def _tell(self, frames: FrameStream) -> None:
        with suppress(trio.BrokenResourceError):  # it has ended
            async for word in self._unsent:
                await frames.send(word)
