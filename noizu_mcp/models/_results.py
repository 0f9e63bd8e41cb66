"""`result_for`: the result of a tool as an API of models takes it back."""

import binascii
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from .._limits import MIB
from .._util import json_text
from .._value import JSONObject
from ..jsonrpc import parse_json
from ..types import Content, ResourceContents, ToolResult
from ._model_tools import ModelCall
from ._providers import ProviderName, provider_named

#: Characters of text in a result, by default: about 25,000 tokens.
MAX_CHARS: Final = 100_000
_IMAGES: Final = ("image/png", "image/jpeg", "image/webp")
_PDF: Final = "application/pdf"
#: The media that a result can carry, and the bytes of one of them, in base64. OpenAI's Chat
#: Completions take text only. Anthropic, "Vision": 5 MB for an image. OpenAI, "Images and vision":
#: 50 MB for a request. Gemini, "Function calling", multimodal responses: PNG, JPEG, WebP and PDF;
#: Vertex AI: 7 MB for inline data.
_MEDIA: Final[Mapping[str, tuple[tuple[str, ...], int]]] = {
    "anthropic": ((*_IMAGES, "image/gif", _PDF), 5 * MIB),
    "openai": ((), 0),
    "openai-responses": ((*_IMAGES, "image/gif", _PDF), 20 * MIB),
    "gemini": ((*_IMAGES, _PDF), 7 * MIB),
}


class _ResultText(NamedTuple):
    text: str


class _Medium(NamedTuple):
    mime_type: str
    data: bytes
    name: str


def result_for(
    provider: ProviderName,
    call: object,
    result: ToolResult,
    *,
    media: bool = True,
    max_chars: int = MAX_CHARS,
) -> JSONObject:
    """Write the result of a call for a model.

    Text stays text. Images and PDF files are carried over where the API takes them; everything
    else is described in a line of text: recordings, other files, and media that are too large.

    Args:
        provider: The API; see `tools_for`.
        call: The call that the result answers: a `ModelCall`, or what `ModelTools.call_of` takes.
        result: The result of `client.call_tool`.
        media: False for a model that reads text only.
        max_chars: Characters of text that are kept; a note says how many were left out.

    Returns:
        For `anthropic` a `tool_result` block for a message of the user; the results of one reply
        belong in one message. For `openai` a message of the role `tool`, for `openai-responses` a
        `function_call_output` item, and for `gemini` a part for a message of the user.

    Raises:
        ValueError: There is no such provider.
        TypeError: `call` is no call of a tool.
    """
    api = provider_named(provider)
    if isinstance(call, ModelCall):
        call_id, name = call.id, call.model_name
    else:
        call_id, name, _ = api.read_call(call)
        if not isinstance(name, str):
            raise TypeError(f"expected a call of a tool, got {type(call).__name__}")
    types, size = _MEDIA[provider] if media else ((), 0)
    parts = list(_bounded(_parts(result, types, size), max_chars))
    return _WRITERS[provider](call_id, name, result, parts)


def _parts(
    result: ToolResult, types: tuple[str, ...], size: int
) -> Iterator[_ResultText | _Medium]:
    """Turn blocks into texts and media that the API takes."""
    for block in result.content:
        for part in _parts_of(block):
            if isinstance(part, _ResultText) or _fits(part, types, size):
                yield part
                continue
            about = f"{part.name}: {part.mime_type}, {len(part.data)} bytes"
            yield _ResultText(f"({about}; it cannot be shown here)")
    # A server should write structured content as text, too, for models; not all do.
    if result.has_structured and all(block.type != "text" for block in result.content):
        yield _ResultText(json_text(result.structured))


def _fits(part: _Medium, types: tuple[str, ...], size: int) -> bool:
    return part.mime_type in types and len(part.data) * 4 / 3 <= size


def _parts_of(block: Content) -> Iterator[_ResultText | _Medium]:
    if block.type == "text":
        yield _ResultText(block.text)
    elif block.type in ("image", "audio"):
        yield _Medium(block.mime_type or "", block.data, block.type)
    elif block.type == "resource_link":
        facts = [block.name, block.mime_type, block.size and f"{block.size} bytes"]
        about = ", ".join(str(each) for each in facts if each)
        yield _ResultText(f"(resource {block.uri}: {about}) {block.description or ''}".rstrip())
    elif block.type == "resource":
        yield from _resource_parts(block.resource)
    else:
        yield _ResultText(f"(content of the type {block.type}) {json_text(dict(block.extra))}")


def _resource_parts(resource: ResourceContents) -> Iterator[_ResultText | _Medium]:
    if resource.blob is None:
        yield _ResultText(f"(resource {resource.uri})\n{resource.text}")
    else:
        mime_type = resource.mime_type or "application/octet-stream"
        yield _Medium(mime_type, resource.blob, f"resource {resource.uri}")


def _bounded(parts: Iterator[_ResultText | _Medium], left: int) -> Iterator[_ResultText | _Medium]:
    """Leave out empty texts, and text beyond a number of characters."""
    dropped = 0
    for part in parts:
        if isinstance(part, _Medium):
            yield part
            continue
        if kept := part.text[:left]:
            yield _ResultText(kept)
        left -= len(kept)
        dropped += len(part.text) - len(kept)
    if dropped:
        yield _ResultText(f"(… {dropped} more characters are left out)")


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _write_anthropic(
    call_id: str | None, _: str, result: ToolResult, parts: list[_ResultText | _Medium]
) -> JSONObject:
    blocks: list[JSONObject] = []
    for part in parts:
        if isinstance(part, _ResultText):
            blocks.append({"type": "text", "text": part.text})
        else:
            source = {"type": "base64", "media_type": part.mime_type, "data": _base64(part.data)}
            kind = "document" if part.mime_type == _PDF else "image"
            blocks.append({"type": kind, "source": source})
    # The API takes no empty content of an error.
    if result.is_error and not blocks:
        blocks = [{"type": "text", "text": _NO_TEXT}]
    written: JSONObject = {"type": "tool_result", "tool_use_id": call_id, "content": blocks}
    return {**written, "is_error": True} if result.is_error else written


def _write_openai(
    call_id: str | None, _: str, result: ToolResult, parts: list[_ResultText | _Medium]
) -> JSONObject:
    return {"role": "tool", "tool_call_id": call_id, "content": _as_text(result, parts)}


def _write_responses(
    call_id: str | None, _: str, result: ToolResult, parts: list[_ResultText | _Medium]
) -> JSONObject:
    output: str | list[JSONObject] = _as_text(result, parts)
    media = [part for part in parts if isinstance(part, _Medium)]
    if media:
        output = [{"type": "input_text", "text": output}] if output else []
        output += map(_responses_medium, media)
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _responses_medium(part: _Medium) -> JSONObject:
    url = f"data:{part.mime_type};base64,{_base64(part.data)}"
    if part.mime_type == _PDF:
        return {"type": "input_file", "filename": "result.pdf", "file_data": url}
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _write_gemini(
    call_id: str | None, name: str, result: ToolResult, parts: list[_ResultText | _Medium]
) -> JSONObject:
    text = _joined(parts)
    # "output" and "error" are the keys that the API reference names.
    value: object = text or _NO_TEXT if result.is_error else text
    if not result.is_error and result.has_structured and _is_json_of(text, result.structured):
        value = result.structured
    response: JSONObject = {
        "name": name,
        "response": {"error" if result.is_error else "output": value},
    }
    if call_id is not None:
        response["id"] = call_id
    media = [
        {"inlineData": {"mimeType": part.mime_type, "data": _base64(part.data)}}
        for part in parts
        if isinstance(part, _Medium)
    ]
    return {"functionResponse": {**response, "parts": media} if media else response}


def _is_json_of(text: str, value: object) -> bool:
    try:
        return bool(parse_json(text.encode(errors="replace")) == value)
    except (ValueError, RecursionError):
        return False


def _joined(parts: list[_ResultText | _Medium]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, _ResultText))


def _as_text(result: ToolResult, parts: list[_ResultText | _Medium]) -> str:
    """Join the texts; the first word marks an error, since the API has no flag for it."""
    text = _joined(parts)
    return f"Error: {text or _NO_TEXT}" if result.is_error else text


_NO_TEXT: Final = "the tool failed and said no more"
_WRITERS: Final = {
    "anthropic": _write_anthropic,
    "openai": _write_openai,
    "openai-responses": _write_responses,
    "gemini": _write_gemini,
}
