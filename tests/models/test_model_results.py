"""`result_for`: texts, media and errors in the messages of each API."""

import base64
from types import SimpleNamespace

import pytest

from noizu_mcp import Content, ResourceContents, ToolResult
from noizu_mcp.models import ModelCall, result_for

CALL = ModelCall("c1", "files.read", {}, "files_read")
IMAGE = Content.image(b"\x89PNG", "image/png")
DATA = base64.b64encode(b"\x89PNG").decode()
PDF = Content.resource(ResourceContents("file:///a.pdf", "application/pdf", blob=b"%PDF"))
PDF_DATA = base64.b64encode(b"%PDF").decode()
PROVIDERS = ("anthropic", "openai", "openai-responses", "gemini")
EACH = pytest.mark.parametrize("provider", PROVIDERS)


def written(provider, content, **options):
    """Return the result of a call with this content."""
    result = content if isinstance(content, ToolResult) else ToolResult(content)
    return result_for(provider, CALL, result, **options)


def text_of(provider, content, **options):
    """Return the text in a result without media."""
    message = written(provider, content, **options)
    if provider == "anthropic":
        return "\n".join(each["text"] for each in message["content"])
    if provider == "gemini":
        (found,) = message["functionResponse"]["response"].values()
        return found
    return message.get("content", message.get("output"))


def test_texts():
    """Each API gets its own form of a text."""
    assert written("anthropic", ["a", "b"]) == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }
    assert written("openai", ["a", "b"]) == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "a\nb",
    }
    assert written("openai-responses", ["a", "b"]) == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "a\nb",
    }
    assert written("gemini", ["a", "b"]) == {
        "functionResponse": {
            "id": "c1",
            "name": "files_read",
            "response": {"output": "a\nb"},
        }
    }


def test_a_call_without_an_id():
    """Gemini may omit the id of a call."""
    call = {"name": "t", "args": {}}

    assert result_for("gemini", call, ToolResult("a")) == {
        "functionResponse": {"name": "t", "response": {"output": "a"}}
    }


def test_errors():
    """An error is a flag if the API has one, and a word in the text otherwise."""
    failed = ToolResult.error("no")

    assert written("anthropic", failed)["is_error"] is True
    assert text_of("anthropic", failed) == "no"
    assert text_of("openai", failed) == "Error: no"
    assert text_of("openai-responses", failed) == "Error: no"
    assert written("gemini", failed)["functionResponse"]["response"] == {"error": "no"}


@EACH
def test_errors_without_text(provider):
    """An error is never empty."""
    text = text_of(provider, ToolResult.error([]))

    assert text.removeprefix("Error: ") == "the tool failed and said no more"


@EACH
def test_nothing(provider):
    """Empty texts are left out, since not every API accepts them."""
    assert text_of(provider, ["", "a", ""]) == "a"
    assert text_of(provider, []) == ""


@EACH
def test_structured_content(provider):
    """Structured content is JSON text if the server sent no text."""
    structured = {"a": [1, None]}

    found = text_of(provider, ToolResult([], structured))
    assert found == (structured if provider == "gemini" else '{"a":[1,null]}')
    assert text_of(provider, ToolResult("one", structured)) == "one"
    again = text_of(provider, ToolResult('{ "a": [1, null] }', structured))
    assert again == (structured if provider == "gemini" else '{ "a": [1, null] }')


def test_images():
    """Images are passed on, except for Chat Completions, which accept text only."""
    assert written("anthropic", [IMAGE])["content"] == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": DATA},
        }
    ]
    assert text_of("openai", [IMAGE]) == "(image: image/png, 4 bytes; it cannot be shown here)"
    assert written("openai-responses", ["look", IMAGE])["output"] == [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}", "detail": "auto"},
    ]
    assert len(written("openai-responses", [IMAGE])["output"]) == 1
    assert written("gemini", ["look", IMAGE])["functionResponse"] == {
        "id": "c1",
        "name": "files_read",
        "response": {"output": "look"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": DATA}}],
    }


def test_documents():
    """PDF files are passed on as documents."""
    assert written("anthropic", [PDF])["content"] == [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_DATA},
        }
    ]
    assert written("openai-responses", [PDF])["output"] == [
        {
            "type": "input_file",
            "filename": "result.pdf",
            "file_data": f"data:application/pdf;base64,{PDF_DATA}",
        }
    ]
    assert written("gemini", [PDF])["functionResponse"]["parts"] == [
        {"inlineData": {"mimeType": "application/pdf", "data": PDF_DATA}}
    ]
    about = "resource file:///a.pdf: application/pdf, 4 bytes"
    assert text_of("openai", [PDF]) == f"({about}; it cannot be shown here)"


@EACH
def test_models_that_read_text_only(provider):
    """`media=False` describes media in a line of text."""
    text = text_of(provider, ["look", IMAGE], media=False)

    assert text == "look\n(image: image/png, 4 bytes; it cannot be shown here)"


@EACH
def test_media_that_no_api_takes(provider):
    """Audio, other files, and images that are too large are described."""
    large = Content.image(b"x" * 20 * 1024 * 1024, "image/png")
    blob = Content.resource(ResourceContents("file:///a", blob=b"abc"))

    assert text_of(provider, [Content.audio(b"RIFF", "audio/wav"), large, blob]).split("\n") == [
        "(audio: audio/wav, 4 bytes; it cannot be shown here)",
        "(image: image/png, 20971520 bytes; it cannot be shown here)",
        "(resource file:///a: application/octet-stream, 3 bytes; it cannot be shown here)",
    ]


@EACH
def test_resources(provider):
    """The text of a resource has its URI, and a link has its metadata."""
    text = Content.resource(ResourceContents("file:///a.txt", text="abc"))
    link = Content.resource_link(
        "file:///b", "b", mime_type="text/plain", size=7, description="Some b."
    )
    short = Content.resource_link("file:///c", "c")

    assert text_of(provider, [text, link, short]).split("\n") == [
        "(resource file:///a.txt)",
        "abc",
        "(resource file:///b: b, text/plain, 7 bytes) Some b.",
        "(resource file:///c: c)",
    ]


@EACH
def test_unknown_content(provider):
    """A block of an unknown type is written as JSON."""
    block = Content.from_wire({"type": "video", "url": "x"})

    assert text_of(provider, [block]) == '(content of the type video) {"url":"x"}'


@EACH
def test_long_texts(provider):
    """Longer text is cut, and a note has the number of omitted characters."""
    note = "(… 7 more characters are left out)"

    assert text_of(provider, ["abcde", "fghij"], max_chars=3) == f"abc\n{note}"
    assert text_of(provider, ["abcde"], max_chars=5) == "abcde"
    assert text_of(provider, ["x" * 100_007]) == f"{'x' * 100_000}\n{note}"


@EACH
def test_invalid_calls(provider):
    """A result needs the call that it answers."""
    with pytest.raises(TypeError, match="expected a call of a tool, got SimpleNamespace"):
        result_for(provider, SimpleNamespace(type="text"), ToolResult("a"))


def test_unknown_providers():
    """An unknown provider is refused."""
    with pytest.raises(ValueError, match="unknown provider 'x'"):
        result_for("x", CALL, ToolResult("a"))
