"""`TerminalHandler`: a handler that asks the person at the terminal."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from ...engine import logger
from ...types import Decline
from .._handlers import ClientHandler, Sampled, run_on_trio
from ._dialogue import Dialogue, PersonAnswer, Terminal, one_at_a_time


class TerminalHandler(ClientHandler):
    """Asks the person at the terminal: `connect(target, handler=TerminalHandler())`.

    Questions are shown on stderr and answered on stdin, one at a time. A form is filled in field by
    field, with defaults, choices and checks, and can be reviewed, declined or cancelled. A URL is
    shown for consent; it is not opened. If stdin or stderr is not a terminal, nothing is read: each
    question is declined, and this is logged.

    Args:
        sampling: A method like `ClientHandler.handle_sampling`, called with the params; plain or
            async. None to not offer sampling.
    """

    def __init__(
        self,
        *,
        sampling: Callable[[Mapping[str, object]], Awaitable[Sampled] | Sampled] | None = None,
    ) -> None:
        if sampling is not None:
            vars(self)["handle_sampling"] = sampling

    async def handle_elicitation(self, params: Mapping[str, object]) -> PersonAnswer:
        """Show the question, and read the answer; see `ClientHandler`."""
        # Also under asyncio, whose loops cannot wait for every terminal.
        return await run_on_trio(partial(self._ask, params))

    async def _ask(self, params: Mapping[str, object]) -> PersonAnswer:
        info = self.client.server_info
        asker = info.title or info.name
        terminal = _find_terminal()
        if terminal is None:
            text = "declined a question of %s, since there is no terminal: %s"
            logger.warning(text, asker, params.get("message"))
            return Decline()
        async with one_at_a_time():
            return await Dialogue(terminal, asker).answer(params)


def _find_terminal() -> Terminal | None:
    """Return the program's terminal; None if a person could not see or answer a question."""
    for stream in (sys.stdin, sys.stderr):
        if stream is None or stream.closed or not stream.isatty():
            return None
    return Terminal(sys.stdin.fileno(), sys.stderr)
