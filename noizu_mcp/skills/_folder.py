"""`SkillFolder`: skills as a server declares them, read from files and ready to be served."""

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from .._errors import DefinitionError, Problem
from .._media_types import read_contents
from .._util import final, got, relative_path
from .._value import Frozen, JSONObject
from ..components import ResourceSpec, Table, read_flag, read_options, read_requires
from ..types import RequireScopes
from ._files import MANIFEST, Files, Parts, quote_path
from ._frontmatter import read_frontmatter


def _read_path(value: object) -> str | os.PathLike[str]:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ValueError(f"must be a folder, {got(value)}")
    return value


def _read_prefix(value: Any) -> str:
    text = isinstance(value, str) and value.isprintable()
    if not text or (value and {"", ".", ".."} & {*value.split("/")}):
        raise ValueError(f"must be names with / between them, {got(value)}")
    return str(value)


_OPTIONS: Final[Table] = {
    "path": _read_path,
    "prefix": _read_prefix,
    "hidden": read_flag,
    "requires": read_requires,
}


@final
class SkillSpec(Frozen):
    """A skill that a server serves.

    Attributes:
        uri: The URI of its `SKILL.md`.
        hidden: Left out of `skills/list`, its files of `resources/list`; served all the same.
        requires: Scopes that a caller must hold, for `skills/get` and each file; None for none.
        definition: The skill as `skills/list` describes it. Not to be changed.
        files: Its files as resources, by URI, `SKILL.md` first.
    """

    uri: str
    hidden: bool
    requires: RequireScopes | None
    definition: JSONObject
    files: Mapping[str, ResourceSpec]

    @property
    def root(self) -> str:
        """The URI of its folder."""
        return self.uri.removesuffix(f"/{MANIFEST}")

    def __repr__(self) -> str:
        return f"SkillSpec({self.uri!r})"


@final
class SkillFolder:
    """A folder that is a skill, or a folder of skills, for `skills = […]` of a server.

    A folder with a `SKILL.md` is a skill (agentskills.io, "Specification"), and all files below it
    are its files. In any other folder every skill is served, however deep it lies; the folders
    above it become a part of its URI, like the names in `prefix`.

    The files are read once, when the class statement of the server runs; later changes on the disk
    are not served before the next start. Names that begin with a dot are left out.

    Args:
        path: The folder. A relative path begins at the file with this line, not at the directory
            in which the server is started.
        prefix: The part of the URI before the skill: `acme/billing`.
        hidden: Leave the skills out of the lists; they can be asked for, by URI.
        requires: Scopes that a caller must hold to get the skills and to read their files.

    Raises:
        DefinitionError: An argument is wrong.
    """

    __mcp_skills__: ClassVar = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        prefix: str = "",
        hidden: bool = False,
        requires: RequireScopes | str | Sequence[str] | None = None,
    ) -> None:
        frame = sys._getframe(1)
        given = {"path": path, "prefix": prefix, "hidden": hidden, "requires": requires}
        read, bad = read_options(_OPTIONS, given)
        if bad:
            place = relative_path(frame.f_code.co_filename), frame.f_lineno
            problems = [Problem(f"SkillFolder.{name}", text, *place) for name, text in bad]
            raise DefinitionError(problems)
        here = frame.f_globals.get("__file__")
        base = Path(here).parent if here else Path()
        self.path = Path(os.path.normpath(base.absolute() / path))
        self.prefix = prefix
        self.hidden = hidden
        self.requires: RequireScopes | None = read["requires"]

    def __repr__(self) -> str:
        return f"SkillFolder({str(self.path)!r})"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The mistakes in the folder; it serves nothing if there are any."""
        return tuple(self._read.problems)

    @property
    def skills(self) -> tuple[SkillSpec, ...]:
        """The skills in it, in the order of their folders."""
        return tuple(self._read.skills)

    @cached_property
    def _read(self) -> "_Reading":
        return _Reading(self)


class _Reading:
    """Reads one folder; `skills` is whole if there are no `problems`."""

    def __init__(self, folder: SkillFolder) -> None:
        self.hidden = folder.hidden
        self.requires = folder.requires
        self.files = Files(folder.path)
        self.problems = self.files.problems
        self.skills: list[SkillSpec] = []
        homes = sorted(parts[:-1] for parts in self.files.found if parts[-1] == MANIFEST)
        if not homes and not self.problems:
            self.files.problem(folder.path, f"has no folder with a {MANIFEST} in it")
        self.above = tuple(folder.prefix.split("/")) if folder.prefix else ()
        if () in homes:
            self.above += (folder.path.name,)
        read = self.files.read(homes)
        values = {home: self._frontmatter(home, files) for home, files in read.items() if files}
        if not self.problems:
            self._serve(read, values)

    def _frontmatter(self, home: Parts, files: Mapping[Parts, bytes]) -> JSONObject:
        path = self.files.root.joinpath(*home, MANIFEST)
        try:
            text = files[*home, MANIFEST].decode()
        except UnicodeDecodeError:
            self.files.problem(path, "is not UTF-8")
            return {}
        values, faults = read_frontmatter(text, (*self.above, *home)[-1])
        for fault in faults:
            self.files.problem(path, fault.text, fault.line)
        return values

    def _serve(
        self, read: Mapping[Parts, Mapping[Parts, bytes]], values: Mapping[Parts, JSONObject]
    ) -> None:
        served: dict[Parts, _Served] = {}
        for home, files in read.items():
            for parts in files.keys() - served.keys():
                about = values[parts[:-1]] if parts[-1] == MANIFEST else None
                served[parts] = self._file(parts, files[parts], about)
            # The rest in the order of their names; that a skill begins with its manifest is ours.
            first = (*home, MANIFEST)
            every = [served[parts] for parts in sorted(files, key=lambda each: each != first)]
            self.skills.append(self._skill(every, values[home]))

    def _skill(self, files: list["_Served"], frontmatter: JSONObject) -> SkillSpec:
        uri = files[0].spec.uri
        entries = [each.entry for each in files]
        return SkillSpec(
            uri=uri,
            hidden=self.hidden,
            requires=self.requires,
            definition={"uri": uri, "frontmatter": frontmatter, "resources": entries},
            files={each.spec.uri: each.spec for each in files},
        )

    def _file(self, parts: Parts, data: bytes, about: Mapping[str, Any] | None) -> "_Served":
        uri = "skill://" + quote_path((*self.above, *parts))
        mime_type, contents = read_contents(parts[-1], data)
        definition = {"uri": uri, "name": parts[-1]}
        if about is not None:
            definition |= {key: about[key] for key in ("name", "description")}
        spec = ResourceSpec(
            uri=uri,
            name=definition["name"],
            mime_type=mime_type,
            hidden=self.hidden,
            mode="inline",
            takes_context=False,
            requires=self.requires,
            invoke=lambda *_: contents,
            definition={**definition, "mimeType": mime_type, "size": len(data)},
            source=str(self.files.root.joinpath(*parts)),
        )
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return _Served(spec, {"uri": uri, "digest": digest, "size": len(data)})


class _Served(NamedTuple):
    """A file: its resource, and its entry in the skills that it belongs to."""

    spec: ResourceSpec
    entry: JSONObject
