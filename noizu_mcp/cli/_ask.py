"""Answers to the questions of a server during a command, from a person or a script.

A person is shown the question on stderr and answers on stdin, one question at a time. A script is
the JSON of `--answers`. Without both, every question is declined.
"""

import math
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

import trio

from .._errors import McpError
from .._util import Returned
from .._value import JSON
from ..client import Client, ClientHandler, Progress
from ..client.terminal import (
    Dialogue,
    PersonAnswer,
    Terminal,
    one_at_a_time,
    read_fields,
    without_none,
)
from ..types import Accept, Cancel, Decline
from ._arguments import read_json
from ._display import Display
from ._errors import USAGE, CommandError
from ._say import note

_WORDS: Final[Mapping[str, PersonAnswer]] = {"decline": Decline(), "cancel": Cancel()}


@contextmanager
def respondent(answers: str | None, timeout: float, display: Display) -> Iterator["Respondent"]:
    """Choose the respondent: a script, a person, or `NoRespondent`.

    Args:
        answers: The JSON of `--answers`, or None.
        timeout: Seconds for the server, without the time of a person.
        display: Shows what the server reports meanwhile.

    Raises:
        CommandError: The answers are malformed.
    """
    if answers is not None:
        yield AnswerFile(_read_answers(answers), display)
    elif sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield NoRespondent(display)
    else:
        # A server in this process takes descriptor 0 away.
        fd = os.dup(sys.stdin.fileno())
        try:
            yield Person(Terminal(fd, sys.stderr), timeout, display)
        finally:
            os.close(fd)


class Respondent(ClientHandler):
    """Answers questions for as long as one command runs.

    Args:
        display: Shows what the server reports meanwhile.
    """

    def __init__(self, display: Display) -> None:
        self.display = display
        self._scope = trio.CancelScope()
        self._failure = CommandError("")

    @property
    def asker(self) -> str:
        """The name of the server."""
        info = self.client.server_info
        return info.title or info.name

    async def during(self, client: Client, work: Callable[[], Awaitable[Returned]]) -> Returned:
        """Do the work of the command.

        Raises:
            CommandError: A question could not be answered.
        """
        try:
            with self._scope:
                if self.display.active and client.capabilities.has("logging"):
                    # Log messages are not essential: the command works without them.
                    with suppress(McpError):
                        await client.set_log_level(self.display.level)
                return await work()
        finally:
            self.display.clear()
        raise self._failure

    def report(self, progress: Progress) -> None:
        """Show the progress of a call."""
        self.display.report(progress)

    async def _fail(self, error: CommandError) -> NoReturn:
        """End the command: the server gets no answer at all."""
        self._failure = error
        self._scope.cancel()
        await trio.sleep_forever()


class NoRespondent(Respondent):
    """Declines every question, and prints it."""

    async def handle_elicitation(self, params: Mapping[str, JSON]) -> PersonAnswer:
        """Decline."""
        self.display.clear()
        message = params.get("message", "")
        note(f"{self.asker} asks: {message} (declined: no terminal, and no --answers)")
        return Decline()


class AnswerFile(Respondent):
    """Gives the answers of `--answers`.

    Args:
        answers: A list has one answer for each question, in order; any other value answers
            every question. An answer is a mapping with values by the names of fields, or
            one of the words accept, decline, cancel.
        display: See `Respondent`.
    """

    def __init__(self, answers: JSON, display: Display) -> None:
        super().__init__(display)
        self._answers = answers

    async def handle_elicitation(self, params: Mapping[str, JSON]) -> PersonAnswer:
        """Give the next answer of the script."""
        answer = self._answers
        # A list is used up: the same answer for a second question would be an accident.
        if isinstance(answer, list):
            if not answer:
                text = f"--answers has no answer left for: {params.get('message', '')}"
                await self._fail(CommandError(text, USAGE))
            answer = answer.pop(0)
        if isinstance(answer, str) and answer in _WORDS:
            return _WORDS[answer]
        given = answer if isinstance(answer, dict) else {}
        fields = read_fields(params.get("requestedSchema"))
        try:
            return Accept(without_none({field.name: field.take(given) for field in fields}))
        except ValueError as error:
            await self._fail(CommandError(f"--answers: {error}", USAGE))


def _read_answers(text: str) -> JSON:
    answers = read_json(text, "--answers")
    for answer in answers if isinstance(answers, list) else [answers]:
        if not isinstance(answer, dict) and answer not in ("accept", "decline", "cancel"):
            words = '"accept", "decline", "cancel"'
            raise CommandError(f"an answer of --answers is an object or one of {words}", USAGE)
    return answers


class Person(Respondent):
    """Shows every question and lets a person answer it, one question at a time.

    Args:
        terminal: The terminal of the person.
        timeout: Seconds for the server, without the time of the person.
        display: See `Respondent`.
    """

    def __init__(self, terminal: Terminal, timeout: float, display: Display) -> None:
        super().__init__(display)
        self._terminal = terminal
        self._timeout = timeout
        self._waiting = 0

    async def during(self, client: Client, work: Callable[[], Awaitable[Returned]]) -> Returned:
        """Do the work of the command; its time limit does not run during questions."""
        # The timeout of the client would include the time of the person: a scope has it instead.
        client.timeout = math.inf
        self._failure = CommandError(f"the server did not answer within {self._timeout:g} s")
        self._scope.deadline = trio.current_time() + self._timeout
        return await super().during(client, work)

    def report(self, progress: Progress) -> None:
        """Show the progress of a call, and start its time limit again, as a client does."""
        super().report(progress)
        if not self._waiting:
            self._scope.deadline = trio.current_time() + self._timeout

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        # Several questions may be open at once; the time runs again after the last one.
        self._waiting += 1
        self._scope.deadline = math.inf
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._scope.deadline = trio.current_time() + self._timeout

    async def handle_elicitation(self, params: Mapping[str, JSON]) -> PersonAnswer:
        """Show the question and read the answer."""
        with self._clock_stopped():
            async with one_at_a_time():
                with self.display.paused():
                    return await Dialogue(self._terminal, self.asker).answer(params)
