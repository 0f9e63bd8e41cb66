"""A cancellation that is raised outside of its scope."""

import trio


async def keep():
    """Make a `Cancelled` whose scope has ended."""
    kept = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as error:
            kept.append(error)
            raise
    return kept[0]


async def stray():
    """Raise a cancellation that belongs to no scope."""
    raise await keep()
