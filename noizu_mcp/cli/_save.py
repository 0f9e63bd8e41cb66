"""`--output`: contents of a server, written to files."""

import mimetypes
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .._files import through_no_link
from ..types import Content, ResourceContents
from ._errors import USAGE, CommandError
from ._say import note


class OutputPart(NamedTuple):
    """One content to be written.

    Attributes:
        data: Its bytes; text is UTF-8.
        mime_type: Its media type, if the server names one.
    """

    data: bytes
    mime_type: str | None


def parts_of_contents(contents: Iterable[ResourceContents]) -> list[OutputPart]:
    """Make parts of the contents of resources."""
    return [
        OutputPart(each.blob or b"" if each.text is None else _encoded(each.text), each.mime_type)
        for each in contents
    ]


def parts_of_blocks(blocks: Sequence[Content]) -> tuple[list[OutputPart], list[Content]]:
    """Choose the blocks of a result that are written to files.

    Args:
        blocks: The blocks.

    Returns:
        The parts: images, recordings and resources, or the texts if there is nothing else; and the
        other blocks, to be printed.
    """
    parts: list[OutputPart] = []
    others: list[Content] = []
    for block in blocks:
        if block.type in ("image", "audio"):
            parts.append(OutputPart(block.data, block.mime_type))
        elif block.type == "resource":
            parts += parts_of_contents([block.resource])
        else:
            others.append(block)
    if parts:
        return parts, others
    texts = [
        OutputPart(_encoded(block.text), "text/plain") for block in others if block.type == "text"
    ]
    return texts, [block for block in others if block.type != "text"]


def _encoded(text: str) -> bytes:
    # Half a surrogate pair has no UTF-8.
    return text.encode("utf-8", "replace")


def check_output(output: str | None, *, force: bool) -> None:
    """Refuse a file that cannot be written, before the server does any work.

    Args:
        output: The file; None if the output goes to stdout.
        force: Existing files may be replaced.

    Raises:
        CommandError: It is a folder, its folder is missing, or it exists.
    """
    if output is None:
        if force:
            raise CommandError("--force goes with --output", USAGE)
        return
    path = Path(output)
    with _writing(path):
        if path.is_dir():
            raise CommandError(f"--output names a file; {output} is a folder", USAGE)
        if not path.parent.is_dir():
            raise CommandError(f"no such folder: {path.parent}", USAGE)
        _refuse_existing([path], force=force)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn a failure of the system into one line."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error


def save(parts: Sequence[OutputPart], output: str, *, force: bool) -> None:
    """Write parts to files: one to the file itself, several to numbered names beside it.

    Args:
        parts: The parts.
        output: The file.
        force: Replace existing files.

    Raises:
        CommandError: There is nothing to write, or a file cannot be written.
    """
    if not parts:
        raise CommandError("the server gave nothing that could be written to a file")
    path = Path(output)
    paths = [path] if len(parts) == 1 else _numbered(path, parts)
    # Before the first is written: half of a result would be taken for all of it.
    _refuse_existing(paths, force=force)
    for each, part in zip(paths, parts, strict=True):
        # `x`: a file that has come up meanwhile is not replaced either.
        mode = "wb" if force else "xb"
        with _writing(each), open(each, mode, opener=through_no_link) as file:
            file.write(part.data)
        kind = f" of {part.mime_type}" if part.mime_type else ""
        note(f"wrote {each} ({len(part.data)} bytes{kind})")


def _numbered(path: Path, parts: Sequence[OutputPart]) -> list[Path]:
    """Number the names: `chart-1.png`; without a suffix each has that of its media type."""
    paths = []
    for number, part in enumerate(parts, 1):
        kind = (part.mime_type or "").partition(";")[0].strip()
        suffix = path.suffix or mimetypes.guess_extension(kind) or ""
        paths.append(path.with_name(f"{path.stem}-{number}{suffix}"))
    return paths


def _refuse_existing(paths: Sequence[Path], *, force: bool) -> None:
    # A link to nowhere counts: writing would follow it.
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there and not force:
        verb = "exists" if len(there) == 1 else "exist"
        raise CommandError(f"{', '.join(there)} {verb}; --force replaces it", USAGE)
