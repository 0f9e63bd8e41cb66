"""`Progress`: a progress notification of a running call."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ..engine import OnProgress


@attrs.frozen
class Progress:
    """A progress notification of a running call.

    Attributes:
        progress: The progress so far; it increases with each notification.
        total: The progress at the end; None if unknown.
        message: A description of the current step, or None.
    """

    progress: float
    total: float | None = None
    message: str | None = None


def reporter(progress: Callable[[Progress], object]) -> OnProgress:
    """Wrap a function that takes `Progress`, so that it takes the params of a notification."""

    def report(params: Mapping[str, Any]) -> None:
        progress(Progress(params["progress"], params.get("total"), params.get("message")))

    return report
