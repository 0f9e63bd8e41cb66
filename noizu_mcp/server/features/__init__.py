"""What a server offers, feature by feature: the table from method to what serves it."""

from collections.abc import Mapping
from typing import Final

from .._connection import Route
from ._lifecycle import discover, initialize, ping
from ._logging import set_level
from ._subscriptions import listen
from ._tools import call_tool, list_tools

ROUTES: Final[Mapping[str, Route]] = {
    "initialize": initialize,
    "ping": ping,
    "server/discover": discover,
    "subscriptions/listen": listen,
    "tools/list": list_tools,
    "tools/call": call_tool,
    "logging/setLevel": set_level,
}
