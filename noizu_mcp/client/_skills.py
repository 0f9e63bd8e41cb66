"""Skills of a server: files are found by the entry of the skill, and verified against it.

Source: SEP-2640, "Integrity and Verification". A file is read when it is needed, never before. Its
size, its digest and, for `SKILL.md`, its frontmatter must match the entry. This shows that the file
belongs to the entry, not that either can be trusted.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn

from .._errors import ProtocolError, SkillError
from .._util import got
from .._value import JSON
from ..skills import MANIFEST, MAX_BYTES, MAX_FILES, compare_frontmatter, quote_path
from ..types import ReadResult, ResourceContents, SkillDefinition

_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")
_REFRESH: Final = "if the skill has changed, get_skill(uri) gives its new entry"


def locate_file(skill: SkillDefinition, path: str) -> str:
    """Return the URI of a file of a skill. Nothing is read.

    Args:
        skill: The entry.
        path: A path in the folder of the skill, such as `templates/a.md`.

    Raises:
        SkillError: The entry is not valid or exceeds the limits, or does not list the file.
    """
    problem = next(_find_problems(skill), None)
    if problem is not None:
        _refuse(skill.uri, f"its entry is invalid: {problem}")
    normal = posixpath.normpath(path)
    if skill.files is None:
        if normal in (".", "..") or normal.startswith(("../", "/")):
            _refuse(skill.uri, f"{path!r} is not a file in its folder")
        return f"{skill.root}/{quote_path(normal.split('/'))}"
    if normal not in skill.files:
        _refuse(skill.uri, f"its entry lists no file {path!r}; {_REFRESH}")
    return str(skill.files[normal]["uri"])


def read_entry(uri: str, result: Mapping[str, object]) -> SkillDefinition:
    """Read the entry of a skill.

    Args:
        uri: The URI of the skill.
        result: The answer to `skills/get`.

    Raises:
        ProtocolError: The entry is malformed, or belongs to another skill.
    """
    found = SkillDefinition.from_wire(result.get("skill"), "skill")
    if found.uri != uri:
        raise ProtocolError(f"skills/get gave the entry of {found.uri} for {uri}")
    return found


def verify_file(skill: SkillDefinition, uri: str, result: ReadResult) -> ResourceContents:
    """Check that a file matches the entry of its skill.

    Args:
        skill: The entry.
        uri: The URI of the file.
        result: The answer of the server.

    Returns:
        The contents of the file. For a dynamic skill only the frontmatter can be checked.

    Raises:
        SkillError: The file does not match.
    """
    if len(result.contents) != 1:
        _refuse(uri, f"the server sent {len(result.contents)} contents, expected one")
    (contents,) = result.contents
    data = (contents.text or "").encode() if contents.blob is None else contents.blob
    if skill.files is not None:
        _compare(next(each for each in skill.files.values() if each["uri"] == uri), data)
    if uri == skill.uri:
        text = data.decode(errors="replace")
        if (difference := compare_frontmatter(text, skill.frontmatter)) is not None:
            _refuse(uri, f"{difference}; {_REFRESH}")
    return contents


def _compare(entry: Mapping[str, JSON], data: bytes) -> None:
    if len(data) != entry["size"]:
        text = f"it has {len(data)} bytes, its entry says {entry['size']}"
        _refuse(entry["uri"], f"{text}; {_REFRESH}")
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if digest != entry["digest"]:
        text = f"its digest is {digest}, its entry says {entry['digest']}"
        _refuse(entry["uri"], f"{text}; {_REFRESH}")


def _refuse(uri: str, text: str) -> NoReturn:
    raise SkillError(f"{uri} cannot be used: {text}")


def _find_problems(skill: SkillDefinition) -> Iterator[str]:
    """Yield the errors in an entry ("Skill Entries"), and the limits that it exceeds."""
    folder, _, file = skill.uri.rpartition("/")
    if file != MANIFEST:
        yield f"its URI does not end in /{MANIFEST}"
    elif not skill.name or folder.rpartition("/")[2] != skill.name:
        yield f"its name is not that of its folder, {got(skill.name)}"
    files = skill.files
    if files is None:
        if skill.resources != "dynamic":
            yield f"its resources must be a list or 'dynamic', {got(skill.resources)}"
        return
    if len(files) < len(skill.resources):
        yield "it lists a file twice, or a resource without a URI"
    if MANIFEST not in files:
        yield f"it does not list {MANIFEST}"
    for path, each in files.items():
        yield from _find_file_problems(f"{folder}/", path, each)
    if len(files) > MAX_FILES:
        yield f"it has {len(files)} files; a skill has at most {MAX_FILES}"
    # The caller reads the first problem only, so every size is a number here.
    if sum(each["size"] for each in files.values()) > MAX_BYTES:
        yield f"it has more than {MAX_BYTES} bytes"


def _find_file_problems(above: str, path: str, entry: Mapping[str, JSON]) -> Iterator[str]:
    digest, size = entry.get("digest"), entry.get("size")
    if not entry["uri"].startswith(above) or ".." in path.split("/"):
        yield f"{path} is not in its folder"
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        yield f"the digest of {path} must be sha256: and 64 digits, {got(digest)}"
    if type(size) is not int or size < 0:
        yield f"the size of {path} must be a number of bytes, {got(size)}"
