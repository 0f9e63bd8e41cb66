"""The door into the loop for code that runs in other threads."""

import threading
from collections.abc import Callable
from typing import TypeVar

import trio

Result = TypeVar("Result")


class LoopGate:
    """Runs functions in the thread of a trio loop, from whatever thread they are asked for.

    Made in the loop that it leads to.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._token = trio.lowlevel.current_trio_token()

    def run(self, function: Callable[[], Result]) -> Result:
        """Run a function in the loop's thread and wait for what it returns.

        Raises:
            trio.RunFinishedError: The loop has ended.
        """
        if threading.get_ident() == self._thread:
            return function()
        return trio.from_thread.run_sync(function, trio_token=self._token)

    def run_soon(self, function: Callable[[], object]) -> None:
        """Run a function in the loop's thread, at once if this is it; waits for nothing.

        A loop that has ended runs it never: then nobody is left to be told.
        """
        if threading.get_ident() == self._thread:
            function()
            return
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return
