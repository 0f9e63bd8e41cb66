"""One failure is one exception."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_failure() -> Iterator[None]:
    """Take a lone exception out of the groups that nurseries put around it.

    Raises:
        BaseException: The one exception inside; a group only where several things failed.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if error is group:
            raise
        # The groups say nothing that the traceback of the exception itself does not.
        raise error from error.__cause__
