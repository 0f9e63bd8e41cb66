"""`skills = […]` of a server: checked and expanded; the code that reads folders loads later."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._errors import Problem
from ..components import keys_of, kind_of, label_of

if TYPE_CHECKING:
    from ._folder import SkillSpec


def check_skills(items: Iterable[Any]) -> list[Problem]:
    """Find the problems in `skills = […]`, and in the folders that it names.

    Args:
        items: `SkillFolder`s.

    Returns:
        A problem for each item that is no folder of skills, for each mistake in a folder, and for
        each skill and each file that several folders serve. A mistake at a line of a `SKILL.md` has
        the place of that line; other places in the source are left to the caller.
    """
    problems: list[Problem] = []
    uris: Counter[str] = Counter()
    for index, item in enumerate(items):
        where = f"skills[{index}]"
        if not _is_folder(item):
            problems.append(Problem(where, _stranger(item)))
            continue
        problems += [Problem(where, each.text, each.file, each.line) for each in item.problems]
        uris.update({uri for skill in item.skills for uri in skill.files})
    text = "is served by {} of them; give all but one another prefix"
    return problems + [
        Problem("skills", f"{uri} {text.format(count)}") for uri, count in uris.items() if count > 1
    ]


def check_clashes(skills: Iterable[object], resources: Iterable[object]) -> list[Problem]:
    """Find resources with the URI of a file of a skill.

    Args:
        skills: The items of `skills = […]`, without mistakes.
        resources: The items of `resources = […]`, without mistakes.

    Returns:
        A problem for each, at `skills`.
    """
    taken = {value for item in resources for key, value in keys_of(item) if key == "uri"}
    text = "is a resource of the server, too; one of the two needs another URI"
    files = (uri for skill in expand_skills(skills) for uri in skill.files)
    return [Problem("skills", f"{uri} {text}") for uri in files if uri in taken]


def expand_skills(items: Iterable[Any]) -> "list[SkillSpec]":
    """Give the skills of folders that `check_skills` found right, in their order."""
    return [skill for item in items for skill in item.skills]


def _is_folder(item: object) -> bool:
    return not isinstance(item, type) and hasattr(item, "__mcp_skills__")


def _stranger(item: object) -> str:
    kind = kind_of(item)
    if kind is not None:
        return f"{label_of(item)} is not a skill; register it in {kind.feature} = […]"
    return f"{item!r} is not a skill; write SkillFolder('skills')"
