"""The way into the loop for code that runs in other threads."""

import threading
from collections.abc import Callable
from typing import TypeVar

import trio

Result = TypeVar("Result")


class Portal:
    """Runs functions in the thread of the trio loop in which it was made, from any thread."""

    def __init__(self) -> None:
        # Made in the loop, once: a worker thread has no running loop to ask for a token.
        self._thread = threading.get_ident()
        self._token = trio.lowlevel.current_trio_token()

    def run(self, function: Callable[[], Result]) -> Result:
        """Run a function in the loop's thread, and wait for its return value.

        Raises:
            trio.RunFinishedError: The loop has ended.
        """
        # trio refuses `from_thread` in its own thread: the loop would wait for itself.
        if threading.get_ident() == self._thread:
            return function()
        return trio.from_thread.run_sync(function, trio_token=self._token)

    def run_soon(self, function: Callable[[], object]) -> None:
        """Run a function in the loop's thread, at once if this is it; does not wait.

        After the end of the loop nothing happens: nobody is left to be told.
        """
        if threading.get_ident() == self._thread:
            function()
            return
        try:
            # Not `from_thread.run_sync`: its caller would wait for the loop, and may hold a lock
            # that a task of the loop wants.
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return
