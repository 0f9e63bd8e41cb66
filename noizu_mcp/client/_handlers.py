"""What a client does when its server speaks first, or asks."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from .._errors import McpError
from ..jsonrpc import METHOD_NOT_FOUND
from ..protocol import Revision
from ..types import Accept, Cancel, Decline, Root, SamplingResult


class ClientHandler:
    """Subclass it and override what the client can do; overriding is what advertises it.

    The same methods answer live requests (up to 2025-11-25) and the input requests of 2026-07-28.
    Each question runs in a task of its own, so a slow person delays nothing else; when the server
    no longer wants an answer, the task is cancelled.

    Attributes:
        elicitation_modes: What `handle_elicitation` can do: `form`, `url`, or both.
        sampling_tools: True if `handle_sampling` can offer tools to its model.
    """

    elicitation_modes: ClassVar[Sequence[str]] = ("form", "url")
    sampling_tools: ClassVar[bool] = False

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[Any] | Decline | Cancel:
        """Ask the user; show who asks, and let the user decline.

        Args:
            params: `message`, and `requestedSchema` for a form or `url` for a URL.

        Returns:
            `Accept` with a mapping or an instance with the fields of the form, `Decline`, or
            `Cancel`.
        """
        raise McpError(METHOD_NOT_FOUND, "Method not found: elicitation/create")

    async def handle_sampling(self, params: Mapping[str, Any]) -> SamplingResult:
        """Ask the model, with the consent of the user.

        Args:
            params: `messages`, `maxTokens` and what else the server wants.

        Raises:
            McpError: To refuse; -1 means that the user rejected it.
        """
        raise McpError(METHOD_NOT_FOUND, "Method not found: sampling/createMessage")

    async def list_roots(self) -> Sequence[Root | str]:
        """List where the server may work: roots, or `file://` URIs."""
        raise McpError(METHOD_NOT_FOUND, "Method not found: roots/list")

    async def handle_notification(self, method: str, params: Mapping[str, Any]) -> None:
        """Take a notification: log messages, list changes, updated resources.

        Notifications come one at a time, in order. Progress goes to the call that asked for it.
        After a new session has begun in place of one that the server had ended, those of every list
        and of every resource that is watched come by themselves: nobody told what was missed.

        Args:
            method: `notifications/message`, `notifications/tools/list_changed`, …
            params: As sent; empty when there are none.
        """


def abilities(handler: ClientHandler, *, roots: bool) -> dict[str, Any]:
    """Say what a handler can do, in the shape of `ClientCapabilities` of 2026-07-28.

    Args:
        handler: The handler.
        roots: The client has roots, whatever the handler does.
    """
    found: dict[str, Any] = {}
    if roots or _overrides(handler, "list_roots"):
        found["roots"] = {}
    if _overrides(handler, "handle_sampling"):
        found["sampling"] = {"tools": {}} if handler.sampling_tools else {}
    if _overrides(handler, "handle_elicitation"):
        found["elicitation"] = {mode: {} for mode in handler.elicitation_modes}
    return found


def _overrides(handler: ClientHandler, name: str) -> bool:
    return getattr(type(handler), name) is not getattr(ClientHandler, name)


def adapt_abilities(capabilities: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Say the same to a server of a revision with a handshake."""
    adapted = dict(capabilities)
    adapted.pop("extensions", None)
    if "roots" in adapted:
        adapted["roots"] = {"listChanged": True}
    if not revision.elicitation:
        adapted.pop("elicitation", None)
    if not revision.modes:
        for name in ("elicitation", "sampling"):
            if name in adapted:
                adapted[name] = {}
    return adapted
