"""The dialogue that lets a person answer one elicitation (2025-11-25 `client/elicitation`).

The person sees who asks and for what, may decline at once, fills in the fields in order, and
reviews the answers before they are sent. Ctrl-D cancels at any point. A URL is shown, but not
opened.
"""

import os
import termios
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TextIO
from urllib.parse import urlsplit

import trio

from ..._printable import printable
from ..._value import JSON
from ...types import Accept, Cancel, Decline
from ._form import FormField, read_fields, without_none

#: Maximum bytes of one line; the terminal itself limits lines further.
_LINE: Final = 4096

NegativeAnswer = Decline | Cancel
PersonAnswer = Accept[Any] | NegativeAnswer

_WORDS: Final[Mapping[str, NegativeAnswer]] = {"decline": Decline(), "cancel": Cancel()}
_CONSENT: Final[Mapping[str, NegativeAnswer | None]] = {
    "yes": None,
    "no": Decline(),
    "cancel": Cancel(),
}
_TURN: Final = trio.lowlevel.RunVar[trio.Lock]("noizu_mcp.terminal")


def one_at_a_time() -> AbstractAsyncContextManager[None]:
    """Return the lock of the terminal, so that the lines of two questions do not mix."""
    # Per loop, not per handler: a program may have several connections, but has one terminal.
    try:
        return _TURN.get()
    except LookupError:
        lock = trio.Lock()
        _TURN.set(lock)
        return lock


class Terminal:
    """Shows and asks.

    Args:
        fd: The terminal, to read from.
        out: The stream that shows questions: stderr, since stdout is for the program's output.
    """

    def __init__(self, fd: int, out: TextIO) -> None:
        self._fd = fd
        self._out = out

    def say(self, text: str = "") -> None:
        """Print one line of a server's text, without control characters."""
        print(printable(text, self._out), file=self._out, flush=True)

    def say_with_emphasis(self, text: str, part: str) -> None:
        """Print a text, and highlight a part of it."""
        safe, part = (printable(each, self._out) for each in (text, part))
        # Bold and reversed: clients highlight the domain, since a subdomain may look like another
        # site (2025-11-25 `client/elicitation`).
        print(safe.replace(part, f"\x1b[1;7m{part}\x1b[0m"), file=self._out, flush=True)

    def discard_typed(self) -> None:
        """Discard input that was typed before the question: it must not be taken for the answer."""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    async def ask(self, prompt: str) -> str:
        """Ask for one line. Other tasks run meanwhile, and a cancellation loses no line.

        Raises:
            EOFError: The person ended the input.
        """
        print(printable(prompt, self._out), end=" ", file=self._out, flush=True)
        # No thread: an abandoned thread would read the answer to the next question.
        await trio.lowlevel.wait_readable(self._fd)
        line = os.read(self._fd, _LINE)
        if not line:
            self.say()
            raise EOFError
        return line.decode(errors="replace").strip()


class Dialogue:
    """Shows questions of one server, and lets a person answer them.

    Args:
        terminal: The terminal of the person.
        asker: The display name of the server.
    """

    def __init__(self, terminal: Terminal, asker: str) -> None:
        self._terminal = terminal
        self._asker = asker

    async def answer(self, params: Mapping[str, object]) -> PersonAnswer:
        """Show a question, and read the answer.

        Args:
            params: The params of `elicitation/create`.
        """
        try:
            return await self._ask(params)
        except EOFError:
            # Ctrl-D dismisses the question, which is no choice (`client/elicitation`).
            return Cancel()
        except trio.Cancelled:
            self._terminal.say()
            self._terminal.say("(the question is no longer asked)")
            raise

    async def _ask(self, params: Mapping[str, object]) -> PersonAnswer:
        terminal = self._terminal
        terminal.discard_typed()
        terminal.say()
        terminal.say(f"{self._asker} asks:")
        # Each line is marked: a server's message must not look like output of this program.
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
        content = without_none({field.name: await self._fill_in(field) for field in fields})
        # Answers can be reviewed before they are sent (2025-11-25 `client/elicitation`).
        refusal = await self._consent("Send it?", "yes") if fields else None
        return Accept(content) if refusal is None else refusal

    async def _ask_yes_or_no(self, field: FormField) -> PersonAnswer:
        """Ask for the only value of a form together with the consent: no review is needed."""
        default = f" [{field.shown_default}]" if field.shown_default else ""
        question = f"{field.label.rstrip('?')}? yes, no, decline, cancel{default}:"
        while True:
            text = await self._terminal.ask(question)
            for answer, outcome in _WORDS.items():
                if text and answer.startswith(text.lower()):
                    return outcome
            try:
                return Accept(without_none({field.name: field.read(text)}))
            except ValueError as error:
                self._terminal.say(f"    {error}; once more, or Ctrl-D to cancel")

    async def _fill_in(self, field: FormField) -> JSON:
        terminal = self._terminal
        for number, choice in enumerate(field.choices, 1):
            terminal.say(f"    {number}) {choice.title}")
        default = f" [{field.shown_default}]" if field.shown_default else ""
        while True:
            try:
                return field.read(await terminal.ask(f"  {field.label}{default}:"))
            except ValueError as error:
                terminal.say(f"    {error}; once more, or Ctrl-D to cancel")

    async def _ask_to_open(self, url: str) -> PersonAnswer:
        """Show a URL and ask for consent; nothing opens it here (client/elicitation)."""
        terminal = self._terminal
        host = host_of(url)
        if host is None:
            terminal.say(f"  {url}")
            terminal.say("  This is no web address: declined.")
            return Decline()
        terminal.say_with_emphasis(f"  {url}", host)
        terminal.say_with_emphasis(f"  It leads to {host}.", host)
        # Letters of another script can look like a known name (client/elicitation requires
        # a warning).
        if not host.isascii() or "xn--" in host:
            terminal.say("  Its letters are not what they seem to be: look twice.")
        refusal = await self._consent("Will you open it, in a browser of yours?", "no")
        return Accept(None) if refusal is None else refusal

    async def _consent(self, question: str, default: str) -> NegativeAnswer | None:
        """Ask for yes, no or cancel; None means yes."""
        while True:
            text = await self._terminal.ask(f"{question} yes, no, cancel [{default}]:")
            word = (text or default).lower()
            for answer, outcome in _CONSENT.items():
                if answer.startswith(word):
                    return outcome


def host_of(url: str) -> str | None:
    """Return the host of a web address; None if it is not a web address.

    Valid addresses have no invisible letters, or letters that change the text direction.
    """
    if " " in url or not url.isprintable():
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in ("http", "https") else None
