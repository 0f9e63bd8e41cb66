"""Media types: of files, by their names; and whether one is text or JSON."""

import functools
import mimetypes
import re
from contextlib import suppress
from pathlib import PurePath
from typing import Final

# By the end of the name: types that versions of Python disagree on, or that none knows. Python's
# table has the others; the files of the machine are never asked, so that a server says the same
# everywhere.
_TYPES: Final = {
    ".avif": "image/avif",
    ".flac": "audio/flac",
    ".js": "text/javascript",
    ".jsonl": "application/jsonl",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".rst": "text/x-rst",
    ".sql": "application/sql",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_COMPRESSED: Final = {"gzip": "application/gzip", "bzip2": "application/x-bzip2"}
#: Ends of media types beside `text/*` whose bodies are texts.
_TEXTS: Final = (
    *("/xml", "+xml", "/yaml", "/x-yaml", "+yaml", "/x-ndjson", "/jsonl", "/sql", "/toml", "/x-sh"),
    *("/javascript", "/graphql", "/x-www-form-urlencoded"),
)
_NAME: Final = r"[A-Za-z0-9!#$&^_.+-]+"
_CONCRETE: Final = re.compile(rf"{_NAME}/{_NAME}(\s*;[\x20-\x2b\x2d-\x7e]*)?")


def media_type(name: str) -> str | None:
    """Return the media type of a file by the end of its name; None for an unknown one."""
    return _by_end(PurePath(name).suffix.lower())


@functools.cache  # the library copies its tables for each answer
def _by_end(end: str) -> str | None:
    if end in _TYPES:
        return _TYPES[end]
    # With no more of the name: the library takes it for a URL.
    found, encoding = mimetypes.MimeTypes().guess_type(f"x{end}")
    return found if encoding is None else _COMPRESSED.get(encoding, "application/octet-stream")


def read_contents(name: str, data: bytes, mime_type: str | None = None) -> tuple[str, str | bytes]:
    """Return the media type of a file, and its contents: a text where they are one.

    Args:
        name: The name of the file.
        data: Its bytes.
        mime_type: The media type; None: by the name.

    Returns:
        The type; then a text whose UTF-8 is the bytes, or the bytes.
    """
    found = mime_type or media_type(name)
    # A text has no byte 0; most other files have. Without a type: LICENSE, Makefile.
    if (found is None or is_text(found)) and b"\0" not in data:
        with suppress(UnicodeDecodeError):
            return found or "text/plain", data.decode()
    return found or "application/octet-stream", data


def essence_of(media_type: str) -> str:
    """Return a media type in small letters, without its parameters."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Tell whether a media type is JSON: `application/json`, `application/problem+json`."""
    kind = essence_of(media_type)
    return kind == "application/json" or kind.endswith("+json")


def is_text(media_type: str) -> bool:
    """Tell whether a body of a media type is text for a person or a model."""
    kind = essence_of(media_type)
    return kind.startswith("text/") or kind.endswith(_TEXTS) or is_json(kind)


def is_concrete(media_type: str | None) -> bool:
    """Tell whether a text is one media type that can be sent: no range, no list."""
    return media_type is not None and _CONCRETE.fullmatch(media_type) is not None
