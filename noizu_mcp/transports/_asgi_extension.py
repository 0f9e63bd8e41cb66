"""An extension of ASGI by our own host; other hosts are sent the usual messages."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

#: Writes a part of the body of an answer at once, in the loop's thread. Else a task would have to
#: be woken for each stream that is told of a change, which costs twice as much.
#:
#: Returns how many bytes are left; they are written before the next part that is sent in the usual
#: way, which may be empty. None: it cannot be written now, and nothing was.
WriteNowait = Callable[[bytes], int | None]
#: Its name as an attribute of `send`. Middleware that changes messages has a `send` of its own
#: without the attribute, and so is not bypassed.
WRITE_NOWAIT: Final = "write_nowait"


class QuickSend(partial[Awaitable[None]]):
    """A `send` of ASGI that can write at once.

    Attributes:
        write_nowait: Does it.
    """

    write_nowait: WriteNowait
