"""The one logger: what no peer may see goes here."""

import logging
from typing import Final

logger: Final = logging.getLogger("noizu_mcp")
