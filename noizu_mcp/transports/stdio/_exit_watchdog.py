"""A thread that ends the process if its server does not end in time.

No timeout in the loop could do that: a handler that blocks the loop blocks its timeouts as well.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

#: The status of a process that had to be ended.
OVERDUE: Final = 1
#: Seconds for the last log entry: the reader of the log may have stopped, which would be the very
#: reason why the server hangs.
LAST_WORDS: Final = 1.0


@contextmanager
def ending_within(seconds: float, tell: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """End the process if the block does not end in time.

    Args:
        seconds: The time, from the call of the function that the block is given.
        tell: Logs the reason, in a thread of its own, within `LAST_WORDS`.

    Yields:
        A function that starts the time, once. A signal handler may call it.
    """
    # `put` of this queue is reentrant; a lock or an event could be in use where a signal comes.
    news: SimpleQueue[bool] = SimpleQueue()
    watch = partial(_watch, news, min(seconds, threading.TIMEOUT_MAX), tell)
    # Started now: the time begins in a signal handler, which must not start threads.
    thread = threading.Thread(target=watch, name="noizu-mcp deadline", daemon=True)
    thread.start()
    try:
        yield partial(news.put, True)
    finally:
        news.put(False)
        thread.join()


def _watch(news: "SimpleQueue[bool]", seconds: float, tell: Callable[[], object]) -> None:
    if not news.get():
        return
    try:
        news.get(timeout=seconds)
    except Empty:
        telling = threading.Thread(target=tell, name="noizu-mcp last words", daemon=True)
        telling.start()
        telling.join(LAST_WORDS)
        os._exit(OVERDUE)  # nothing else ends a process with a thread that does not return
