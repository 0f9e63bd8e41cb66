"""What a client does when its server speaks first."""

from collections.abc import Mapping
from typing import Any


class ClientHandler:
    """Subclass it and override what the client can do; overriding is what advertises it."""

    async def handle_notification(self, method: str, params: Mapping[str, Any]) -> None:
        """Take a notification: log messages, list changes, updated resources.

        Notifications come one at a time, in order. Progress goes to the call that asked for it.

        Args:
            method: `notifications/message`, `notifications/tools/list_changed`, …
            params: As sent; empty when there are none.
        """
