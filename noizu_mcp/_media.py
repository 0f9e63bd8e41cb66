"""Files and pictures for content blocks: their bytes, and their media types.

Pictures of other libraries are known by what they offer, and the libraries are never imported. The
file is loaded with the first file or picture.
"""

import io
import os
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from ._limits import MIB
from ._media_types import media_type, read_contents

#: The path of a file.
FilePath: TypeAlias = str | os.PathLike[str]


class Figure(Protocol):
    """A figure of matplotlib."""

    @property
    def savefig(self) -> Callable[..., object]:
        """The method that saves it into a file, in the `format` of a keyword."""


class Picture(Protocol):
    """An image of Pillow."""

    @property
    def save(self) -> Callable[..., object]:
        """The method that saves it into a file, in the `format` of a keyword."""

    @property
    def convert(self) -> Callable[..., Any]:
        """The method that returns it with other colours."""


#: Bytes of the largest file that a block takes: base64 adds a third, and a message has 16 MiB.
MAX_FILE: Final = 10 * MIB


def is_path(value: object) -> bool:
    """Tell whether a value is the path of a file."""
    return isinstance(value, str | os.PathLike)


def read_file(path: FilePath) -> bytes:
    """Read a file that fits into a message.

    Args:
        path: The path.

    Raises:
        OSError: It cannot be read.
        ValueError: It has more than `MAX_FILE` bytes.
    """
    with open(path, "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        cure = "send a link to a resource instead: Content.resource_link(…)"
        raise ValueError(f"{os.fspath(path)} has more than {MAX_FILE} bytes; {cure}")
    return data


def media_of(kind: str, value: Any, mime_type: str | None) -> tuple[Any, str | None]:
    """Return the bytes and the media type of an image or a recording.

    Args:
        kind: `image` or `audio`.
        value: Bytes, the path of a file, or a picture that can save itself.
        mime_type: The media type; None for that of the file, and PNG for a picture.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is too large, or its name does not tell that it is of this kind.
    """
    if is_path(value):
        found = mime_type or media_type(os.fspath(value))
        if found is None or not found.startswith(f"{kind}/"):
            text = f"{os.fspath(value)} is {found or 'of an unknown type'}, not of the type {kind}"
            raise ValueError(f"{text}/…; give mime_type=, or send it with Content.file(path)")
        return read_file(value), found
    if kind == "image" and not isinstance(value, bytes | bytearray):
        chosen = mime_type or "image/png"
        # A figure of matplotlib; then an image of Pillow.
        if hasattr(value, "savefig"):
            return _saved(value.savefig, chosen, str.lower), chosen
        if hasattr(value, "save") and hasattr(value, "convert"):
            try:
                return _saved(value.save, chosen, str.upper), chosen
            except OSError:  # the format has not the colours of the image, as PNG has no CMYK
                return _saved(value.convert("RGB").save, chosen, str.upper), chosen
    return value, mime_type


def _saved(save: Any, mime_type: str, write: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, format=write(mime_type.partition("/")[2].partition("+")[0]))
    return buffer.getvalue()


def file_contents(path: FilePath, mime_type: str | None) -> tuple[str | bytes, str, str]:
    """Read a file for an embedded resource.

    Args:
        path: The path.
        mime_type: The media type; None for that of the name.

    Returns:
        Its text, or its bytes if it is not text; the media type; and the name of the file.
    """
    name = os.path.basename(os.fspath(path))
    found, contents = read_contents(name, read_file(path), mime_type)
    return contents, found, name
