"""What kind of file a file of a skill is: its media type, and whether it travels as text."""

import mimetypes
from pathlib import PurePath
from typing import Final

# What machines disagree on, or what the library does not know, by the end of the name. The rest is
# asked of the library's own table, never of the files of the machine: a server says the same
# everywhere.
_TYPES: Final = {
    ".css": "text/css",
    ".csv": "text/csv",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".py": "text/x-python",
    ".rst": "text/x-rst",
    ".sh": "application/x-sh",
    ".sql": "application/sql",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_COMPRESSED: Final = {"gzip": "application/gzip", "bzip2": "application/x-bzip2"}
_TEXTUAL: Final = frozenset(
    f"application/{name}" for name in ("json", "jsonl", "sql", "toml", "x-sh", "xml", "yaml")
)


def read_media(name: str, data: bytes) -> tuple[str, str | bytes]:
    """Tell the media type of a file, and give its contents as they travel.

    Args:
        name: Its name.
        data: Its bytes.

    Returns:
        The type; then a text whose UTF-8 is the bytes again, or the bytes.
    """
    mime_type = _guess(name)
    if mime_type is None:
        # Made for people, if it looks like it: LICENSE, Makefile.
        text = None if b"\0" in data else _decode(data)
        return ("text/plain", text) if text is not None else ("application/octet-stream", data)
    if not _is_textual(mime_type) or (text := _decode(data)) is None:
        return mime_type, data
    return mime_type, text


def _guess(name: str) -> str | None:
    end = PurePath(name).suffix.lower()
    if end in _TYPES:
        return _TYPES[end]
    # With no more of the name: the library takes it for a URL.
    found, encoding = mimetypes.MimeTypes().guess_type(f"x{end}")
    return found if encoding is None else _COMPRESSED.get(encoding, "application/octet-stream")


def _is_textual(mime_type: str) -> bool:
    return mime_type.startswith("text/") or mime_type.endswith("+xml") or mime_type in _TEXTUAL


def _decode(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
