"""Answers to the questions of a server during a command: from a person, a script, or nobody.

A person is shown the question on stderr and answers on stdin, one question at a time. A script is
the JSON of `--answers`. Without both, every question is declined.
"""

import math
import os
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn, TextIO, TypeVar
from urllib.parse import urlsplit

import trio

from .._errors import McpError
from .._value import JSON, JSONObject
from ..client import Client, ClientHandler, Progress
from ..types import Accept, Cancel, Decline
from ._arguments import read_json
from ._display import Display
from ._errors import USAGE, CommandError
from ._form import Field, read_fields
from ._output import printable

#: Bytes of one line; the terminal itself ends lines sooner.
_LINE: Final = 4096


class Terminal:
    """Shows and asks.

    Args:
        fd: The terminal, to read from.
        out: The stream that shows questions: stderr, since stdout has the answer of the command.
    """

    def __init__(self, fd: int, out: TextIO) -> None:
        self._fd = fd
        self._out = out

    def say(self, text: str = "") -> None:
        """Print one line of a server's text, without control characters."""
        print(printable(text, self._out, ""), file=self._out, flush=True)

    def say_with_emphasis(self, text: str, part: str) -> None:
        """Print a text, and let a part of it stand out."""
        safe, part = (printable(each, self._out, "") for each in (text, part))
        # Bold and reversed: clients highlight the domain, since a subdomain may look like another
        # site (2025-11-25 `client/elicitation`).
        print(safe.replace(part, f"\x1b[1;7m{part}\x1b[0m"), file=self._out, flush=True)

    def discard_typed(self) -> None:
        """Discard input that was typed before the question: it must not be taken for the answer."""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    async def ask(self, prompt: str) -> str:
        """Ask for one line; other tasks run meanwhile, and cancelling loses no line.

        Raises:
            EOFError: The person ended the input instead.
        """
        print(printable(prompt, self._out, ""), end=" ", file=self._out, flush=True)
        # No thread: one that is abandoned would take the line that answers the next question.
        await trio.lowlevel.wait_readable(self._fd)
        line = os.read(self._fd, _LINE)
        if not line:
            self.say()
            raise EOFError
        return line.decode(errors="replace").strip()


Result = TypeVar("Result")
Refusal = Decline | Cancel
Outcome = Accept[Any] | Refusal

_WORDS: Final[Mapping[str, Refusal]] = {"decline": Decline(), "cancel": Cancel()}
_CONSENT: Final[Mapping[str, Refusal | None]] = {"yes": None, "no": Decline(), "cancel": Cancel()}


@contextmanager
def respondent(answers: str | None, timeout: float, display: Display) -> Iterator["Respondent"]:
    """Choose the respondent: a script, a person, or nobody.

    Args:
        answers: The JSON of `--answers`, or None.
        timeout: Seconds that a server gets; the time of a person is not its own.
        display: Shows what the server reports meanwhile.

    Raises:
        CommandError: The answers are malformed.
    """
    if answers is not None:
        yield Script(_read_answers(answers), display)
    elif sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield Nobody(display)
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
        self.asker = ""
        self.display = display
        self._scope = trio.CancelScope()
        self._failure = CommandError("")

    async def during(self, client: Client, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the work of the command.

        Raises:
            CommandError: A question could not be answered.
        """
        info = client.server_info
        self.asker = printable(info.title or info.name, sys.stderr, "")
        try:
            with self._scope:
                if self.display.active and client.capabilities.has("logging"):
                    # Worth a wish, not a failure: the command does without.
                    with suppress(McpError):
                        await client.set_log_level(self.display.level)
                return await work()
        finally:
            self.display.clear()
        raise self._failure

    def report(self, progress: Progress) -> None:
        """Take the progress of a call."""
        self.display.report(progress)

    async def _fail(self, error: CommandError) -> NoReturn:
        """End the command: the server gets no answer at all."""
        self._failure = error
        self._scope.cancel()
        await trio.sleep_forever()


class Nobody(Respondent):
    """Declines, and says so."""

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Outcome:
        """Decline."""
        self.display.clear()
        message = printable(str(params.get("message", "")), sys.stderr, "")
        text = f"{self.asker} asks: {message} (declined: no terminal, and no --answers)"
        print(f"noizu-mcp: {text}", file=sys.stderr)
        return Decline()


class Script(Respondent):
    """Gives answers that were written down before.

    Args:
        answers: A list answers a question each, in the order in which they come; anything else
            answers every question. An answer is a mapping with values by the names of fields, or
            one of the words accept, decline, cancel.
        display: See `Respondent`.
    """

    def __init__(self, answers: JSON, display: Display) -> None:
        super().__init__(display)
        self._answers = answers

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Outcome:
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
            return Accept(_without_none({field.name: field.take(given) for field in fields}))
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
        terminal: Where the person is.
        timeout: Seconds that the server gets beside the time of the person.
        display: See `Respondent`.
    """

    def __init__(self, terminal: Terminal, timeout: float, display: Display) -> None:
        super().__init__(display)
        self._terminal = terminal
        self._timeout = timeout
        self._waiting = 0
        self._busy = trio.Lock()

    async def during(self, client: Client, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the work of the command; its time limit stands still during questions."""
        # The client would count the time of the person as well: the scope counts instead.
        client.timeout = math.inf
        self._failure = CommandError(f"the server did not answer within {self._timeout:g} s")
        self._scope.deadline = trio.current_time() + self._timeout
        return await super().during(client, work)

    def report(self, progress: Progress) -> None:
        """Take the progress of a call: its time limit starts again, as that of a client does."""
        super().report(progress)
        if not self._waiting:
            self._scope.deadline = trio.current_time() + self._timeout

    @contextmanager
    def _unhurried(self) -> Iterator[None]:
        # Several questions may be open at once; the clock of the server runs again after the last.
        self._waiting += 1
        self._scope.deadline = math.inf
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._scope.deadline = trio.current_time() + self._timeout

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Outcome:
        """Show the question and read the answer."""
        with self._unhurried():
            # One at a time: the lines of two forms would mix.
            async with self._busy:
                with self.display.paused():
                    return await self._converse(params)

    async def _converse(self, params: Mapping[str, Any]) -> Outcome:
        try:
            return await self._ask(params)
        except EOFError:
            # Ctrl-D dismisses the question, which is no choice (`client/elicitation`).
            return Cancel()
        except trio.Cancelled:
            self._terminal.say()
            self._terminal.say("(the question is no longer asked)")
            raise

    async def _ask(self, params: Mapping[str, Any]) -> Outcome:
        terminal = self._terminal
        terminal.discard_typed()
        terminal.say()
        terminal.say(f"{self.asker} asks:")
        # Each line is marked: a message of the server must not look like lines of this program.
        for line in str(params.get("message", "")).splitlines():
            terminal.say(f"  | {line}")
        if params.get("mode") == "url":
            return await self._ask_to_open(str(params.get("url")))
        fields = read_fields(params.get("requestedSchema"))
        for field in fields:
            terminal.say(f"  {field.label}: {field.explanation}")
        if len(fields) == 1 and fields[0].is_yes_or_no:
            return await self._ask_yes_or_no(fields[0])
        refusal = await self._consent("Answer?", "yes")
        if refusal is not None:
            return refusal
        content = _without_none({field.name: await self._fill_in(field) for field in fields})
        # Answers can be reviewed before they are sent (2025-11-25 `client/elicitation`).
        refusal = await self._consent("Send it?", "yes") if fields else None
        return Accept(content) if refusal is None else refusal

    async def _ask_yes_or_no(self, field: Field) -> Outcome:
        """Ask for the only value of a form together with the consent: it is reviewed as typed."""
        default = f" [{field.shown_default}]" if field.shown_default else ""
        question = f"{field.label.rstrip('?')}? yes, no, decline, cancel{default}:"
        while True:
            text = await self._terminal.ask(question)
            for answer, outcome in _WORDS.items():
                if text and answer.startswith(text.lower()):
                    return outcome
            try:
                return Accept(_without_none({field.name: field.read(text)}))
            except ValueError as error:
                self._terminal.say(f"    {error}; once more, or Ctrl-D to cancel")

    async def _fill_in(self, field: Field) -> JSON:
        terminal = self._terminal
        for number, choice in enumerate(field.choices, 1):
            terminal.say(f"    {number}) {choice.title}")
        default = f" [{field.shown_default}]" if field.shown_default else ""
        while True:
            try:
                return field.read(await terminal.ask(f"  {field.label}{default}:"))
            except ValueError as error:
                terminal.say(f"    {error}; once more, or Ctrl-D to cancel")

    async def _ask_to_open(self, url: str) -> Outcome:
        """Show a URL and ask for consent; nothing opens it here (client/elicitation)."""
        terminal = self._terminal
        host = host_of(url)
        if host is None:
            terminal.say(f"  {url}")
            terminal.say("  This is no web address: declined.")
            return Decline()
        terminal.say_with_emphasis(f"  {url}", host)
        terminal.say_with_emphasis(f"  It leads to {host}.", host)
        # Letters of another script can look like those of a known name (client/elicitation asks to
        # warn of such hosts).
        if not host.isascii() or "xn--" in host:
            terminal.say("  Its letters are not what they seem to be: look twice.")
        refusal = await self._consent("Will you open it, in a browser of yours?", "no")
        return Accept(None) if refusal is None else refusal

    async def _consent(self, question: str, default: str) -> Refusal | None:
        """Ask for yes, no or cancel; None is yes."""
        while True:
            text = await self._terminal.ask(f"{question} yes, no, cancel [{default}]:")
            word = (text or default).lower()
            for answer, outcome in _CONSENT.items():
                if answer.startswith(word):
                    return outcome


def host_of(url: str) -> str | None:
    """Find the host that a web address leads to; None if it is no web address.

    Letters that show nothing, or turn others around, are in no address that means well.
    """
    if " " in url or not url.isprintable():
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in ("http", "https") else None


def _without_none(values: JSONObject) -> JSONObject:
    """Leave out the fields that were left out."""
    return {name: value for name, value in values.items() if value is not None}
