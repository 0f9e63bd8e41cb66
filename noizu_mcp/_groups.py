"""Groups of exceptions: one failure is one exception."""

from collections.abc import Iterator
from contextlib import contextmanager


def unwrap_single(error: BaseException) -> BaseException:
    """Unwrap a lone exception from the groups that nurseries put around it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@contextmanager
def single_failure(*consequences: type[BaseException]) -> Iterator[None]:
    """Let a lone exception leave the block without the groups around it.

    Args:
        consequences: Exceptions to leave out where something else failed too: the other failure
            led to them.

    Raises:
        BaseException: The one exception inside; a group only where several things failed.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        left_out, causes = group.split(consequences)
        # With nothing but consequences, one of them is the failure, and the first says enough.
        error = unwrap_single(causes) if causes else next(leaves(group))
        # Several failures, and none was left out: the group keeps its own traceback.
        if error is causes and left_out is None:
            raise
        # The groups say nothing that the traceback of the exception itself does not.
        raise error from error.__cause__


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Iterate over the exceptions in a group, at any depth, or over a lone exception."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    else:
        yield error
