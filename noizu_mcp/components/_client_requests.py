"""Questions to the client as they go over the wire, and answers as handlers get them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from .. import schema, types
from .._errors import DefinitionError, ProtocolError
from .._util import is_uri, is_whole
from .._value import JSON, JSONObject
from ..schema import Shape, to_problems
from ..types import (
    ELICIT,
    ROOTS,
    SAMPLE,
    Accept,
    Cancel,
    Content,
    Decline,
    InputRequest,
    ToolDefinition,
    camel_case,
)

if TYPE_CHECKING:
    from ..types import Root

#: Seconds that a person gets to answer, unless the handler says otherwise.
ELICIT_TIMEOUT: Final = 300.0
#: Seconds that a model gets to answer, unless the handler says otherwise.
SAMPLE_TIMEOUT: Final = 60.0
#: Seconds that a client gets to list its roots: it has them at hand.
ROOTS_TIMEOUT: Final = 30.0
#: The time of each method, for handlers that ask by hand.
TIMEOUTS: Final[Mapping[str, float]] = {
    ELICIT: ELICIT_TIMEOUT,
    SAMPLE: SAMPLE_TIMEOUT,
    ROOTS: ROOTS_TIMEOUT,
}
_FORM: Final = "requestedSchema"


def form_shape(model: object) -> Shape:
    """Read the schema of a form.

    Args:
        model: A class with fields, fields as data, or a raw JSON Schema; flat in any case.

    Raises:
        DefinitionError: It cannot be asked for in a form (client/elicitation, Requested Schema).
    """
    shape, faults = schema.flat_shape(model)
    if shape is None:
        raise DefinitionError(to_problems(faults, getattr(model, "__name__", "elicit")))
    return shape


def elicit_request(message: str, model: object) -> tuple[InputRequest, Shape]:
    """Ask the user to fill in a form, in the words of the newest revision.

    Returns:
        The request, and the shape of its answer.

    Raises:
        DefinitionError: The model cannot be asked for in a form.
        TypeError: The message is no text.
    """
    params = {"message": _text(message)}
    shape = form_shape(model)
    return InputRequest(ELICIT, {**params, _FORM: shape.schema}), shape


def read_by_hand(request: InputRequest) -> InputRequest:
    """Read a question that a handler wrote by hand; its form is made flat, as `elicit` does.

    Raises:
        DefinitionError: A form cannot express the schema.
    """
    form = request.params.get(_FORM)
    if form is None:  # a URL, or a question to the model or for roots
        return request
    return InputRequest(request.method, {**request.params, _FORM: form_shape(form).schema})


def elicit_url_request(message: str, url: str) -> InputRequest:
    """Ask the user to open a URL; since 2025-11-25.

    Raises:
        TypeError: The message is no text.
        ValueError: The URL is not valid.
    """
    if not is_uri(url):
        raise ValueError(f"must be an absolute URL like 'https://example.com/login', got {url!r}")
    return InputRequest(ELICIT, {"mode": "url", "message": _text(message), "url": url})


def _text(message: object) -> str:
    if not isinstance(message, str):
        raise TypeError(f"the message to the user must be a text, got {message!r}")
    return message


def read_elicited(shape: Shape | None, answer: JSON) -> Accept[object] | Decline | Cancel:
    """Read an `ElicitResult`.

    Args:
        shape: The schema of the form; None for a URL.
        answer: As it came.

    Raises:
        ProtocolError: The answer is malformed, or its content breaks the schema of the form.
    """
    action = answer.get("action") if isinstance(answer, Mapping) else None
    # client/elicitation, Response Actions: content comes with "accept" only; of the others it is
    # ignored.
    if action == "decline":
        return Decline()
    if action == "cancel":
        return Cancel()
    if action != "accept":
        raise ProtocolError("the answer to an elicitation has no known action")
    if shape is None:
        return Accept(None)
    content = answer.get("content")
    # client/elicitation: both sides should validate it. The handler relies on the types of its
    # model, and a client may have sent anything.
    value, violations = shape.read(content)
    if violations:
        raise ProtocolError("the answer to an elicitation breaks the schema that was asked for")
    return Accept(value)


def sample_request(
    messages: str | Sequence[object], max_tokens: int, options: Mapping[str, object]
) -> InputRequest:
    """Ask the client's model.

    Args:
        messages: One text of the user, or a list of texts, `PromptMessage`s and mappings.
        max_tokens: How much it may say.
        options: More params by their Python names; None for absent.

    Raises:
        TypeError: A message is malformed.
        ValueError: `max_tokens` is no whole number above 0.
    """
    if not is_whole(max_tokens, 1):
        raise ValueError(f"max_tokens must be a whole number above 0, got {max_tokens!r}")
    listed = [messages] if isinstance(messages, str) else messages
    params: JSONObject = {
        "messages": [_sampling_message(message) for message in listed],
        "maxTokens": max_tokens,
        # The schema of the request knows no null: an option that is not given is absent.
        **{camel_case(name): value for name, value in options.items() if value is not None},
    }
    if "tools" in params:
        tools = params["tools"]
        params["tools"] = [t.to_wire() if isinstance(t, ToolDefinition) else t for t in tools]
    return InputRequest(SAMPLE, params)


def _sampling_message(message: object) -> JSONObject:
    if isinstance(message, str):
        return {"role": "user", "content": Content.text(message).to_wire()}
    if isinstance(message, types.PromptMessage):
        return message.to_wire()
    if isinstance(message, types.SamplingResult):
        # Of an earlier answer role and content are a message; `model` and `stopReason` are not.
        wire = message.to_wire()
        return {"role": wire["role"], "content": wire["content"]}
    if isinstance(message, Mapping):
        return dict(message)
    raise TypeError(f"{message!r} is no message: give a text, a PromptMessage or a mapping")


def read_roots(answer: JSON) -> "list[Root]":
    """Read a `ListRootsResult`.

    Raises:
        ProtocolError: The answer is malformed.
    """
    roots = answer.get("roots") if isinstance(answer, Mapping) else None
    if not isinstance(roots, list):
        raise ProtocolError("the answer to roots/list has no roots")
    return [types.Root.from_wire(root, "root") for root in roots]
