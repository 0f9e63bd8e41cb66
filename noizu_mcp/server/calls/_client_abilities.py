"""Questions in the wire format of a revision, and the client capabilities that they need."""

from collections.abc import Mapping
from typing import Final

import attrs

from ... import schema
from ..._errors import McpError, ToolError
from ..._value import JSONMapping
from ...components import read_by_hand
from ...jsonrpc import INVALID_REQUEST, MISSING_CLIENT_CAPABILITY
from ...protocol import Envelope
from ...types import ROOTS, SAMPLE, InputRequest, InputRequired

_FORM: Final = "requestedSchema"


def prepare_question(envelope: Envelope, method: str, request: InputRequest) -> InputRequest:
    """Convert a question to the wire format of a revision, and check the client's capabilities.

    Args:
        envelope: The metadata of the request whose handler asks.
        method: Its method.
        request: The question, in the form of the newest revision.

    Raises:
        McpError: The client does not support the question; see `_check_ability`.
        ToolError: The client does not support the question; see `_check_ability`.
    """
    _check_ability(envelope, method, _needed_by(request))
    form = request.params.get(_FORM)
    if envelope.revision.modes or form is None:
        return request
    form = schema.older_form(form)
    if form is None:
        text = "it has no form field for a choice of several values"
        raise _refusal(method, f"Not supported by revision {envelope.revision.name}: {text}")
    return InputRequest(request.method, {**request.params, _FORM: form})


def prepare_questions(envelope: Envelope, method: str, required: InputRequired) -> InputRequired:
    """Convert the questions that a handler returned, as `prepare_question` does.

    Raises:
        McpError: The client does not support a question; see `_check_ability`.
        ToolError: The client does not support a question; see `_check_ability`.
    """
    asked = required.requests
    if not envelope.revision.modes:  # its forms use other keywords
        asked = {key: read_by_hand(each) for key, each in asked.items()}
    asked = {key: prepare_question(envelope, method, each) for key, each in asked.items()}
    return attrs.evolve(required, requests=asked)


def _needed_by(request: InputRequest) -> JSONMapping:
    """Return the capability that a question needs, in the shape of `ClientCapabilities`."""
    if request.method == ROOTS:
        return {"roots": {}}
    if request.method == SAMPLE:
        # client/sampling, 2025-11-25: tools only for a client that declares `sampling.tools`.
        with_tools = "tools" in request.params or "toolChoice" in request.params
        return {"sampling": {"tools": {}} if with_tools else {}}
    # client/elicitation, 2025-11-25: a server sends only the modes that the client declares; an
    # empty declaration stands for forms.
    return {"elicitation": {"url": {}} if request.params.get("mode") == "url" else {}}


def _check_ability(envelope: Envelope, method: str, needs: JSONMapping) -> None:
    """Check that the client has the capabilities for a question. Nothing has been sent yet.

    Raises:
        McpError: A capability is missing: -32021 on 2026-07-28 (`basic/index`, error codes).
        ToolError: A capability is missing for a tool call of an earlier revision.
    """
    if all(_has_ability(envelope, *need) for need in needs.items()):
        return
    if envelope.revision.stateless:
        data = {"requiredCapabilities": dict(needs)}
        text = "Missing required client capability"
        raise McpError(MISSING_CLIENT_CAPABILITY, text, data)
    names = ", ".join(".".join((name, *parts)) for name, parts in needs.items())
    raise _refusal(method, f"Capability not supported by the client: {names}")


def _refusal(method: str, text: str) -> McpError | ToolError:
    if method == "tools/call":
        return ToolError(text)
    return McpError(INVALID_REQUEST, text)


def _has_ability(envelope: Envelope, name: str, parts: JSONMapping) -> bool:
    """Compare by presence; an empty elicitation capability means forms (client/elicitation)."""
    offered = envelope.client_capabilities.get(name)
    if not isinstance(offered, Mapping):
        return False
    revision = envelope.revision
    if name == "elicitation" and not parts:
        # 2025-03-26 has no elicitation, whatever the client declares.
        return revision.elicitation and (not offered or "form" in offered)
    return (not parts or revision.modes) and all(part in offered for part in parts)
