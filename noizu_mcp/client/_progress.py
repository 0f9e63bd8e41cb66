"""`Progress`: a progress notice of a running call."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ..engine import OnProgress


@attrs.frozen
class Progress:
    """A progress notice of a running call.

    Attributes:
        progress: The progress so far; it increases with each notice.
        total: The progress at the end; None if it is unknown.
        message: A description of the current step, or None.
    """

    progress: float
    total: float | None = None
    message: str | None = None


def reporter(progress: Callable[[Progress], object]) -> OnProgress:
    """Make a function that calls a function with `Progress`, from the params of a notice."""

    def report(params: Mapping[str, Any]) -> None:
        progress(Progress(params["progress"], params.get("total"), params.get("message")))

    return report
