"""The application that is served, in the words of ASGI, and the log of its failures."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ...engine import MOST_CRASHES, SHOWN, Seldom

#: A client as ASGI names it.
Endpoint = tuple[str, int] | None
#: What an application is called with.
Application = Callable[[Any, Any, Any], Awaitable[None]]

logger: Final = logging.getLogger("noizu_mcp.http")
#: Failures of applications: so many a minute of each.
failures: Final = Seldom(log=logger, shown=SHOWN, most=MOST_CRASHES)
