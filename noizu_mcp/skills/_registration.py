"""`skills = […]` of a server: checked and expanded; the code that reads folders loads later."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._errors import Problem
from ..components._declare import kind_of
from ..components._registration import as_registration, label_of

if TYPE_CHECKING:
    from ._folder import SkillSpec


def check_skills(items: Iterable[Any]) -> list[Problem]:
    """Find what is wrong in `skills = […]`, and in the folders that it names.

    Args:
        items: `SkillFolder`s.

    Returns:
        A problem for each item that is none, for all that is wrong in a folder, and for each skill
        and each file that several folders serve. What is wrong at a line of a `SKILL.md` has the
        place of that line; other places in the source are left to the caller.
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


def check_clashes(skills: Iterable[Any], resources: Iterable[Any]) -> list[Problem]:
    """Find resources with the URI of a file of a skill.

    Args:
        skills: What is registered as skills; nothing may be wrong with it.
        resources: What is registered as resources; nothing may be wrong with it.

    Returns:
        A problem for each, at `skills`.
    """
    taken = {
        {**plan.options, **registration.overrides}.get("uri")
        for registration in map(as_registration, resources)
        for plan in registration.target.__mcp__
    }
    text = "is a resource of the server, too; one of the two needs another URI"
    files = (uri for skill in expand_skills(skills) for uri in skill.files)
    return [Problem("skills", f"{uri} {text}") for uri in files if uri in taken]


def expand_skills(items: Iterable[Any]) -> "list[SkillSpec]":
    """Give the skills of folders that `check_skills` found right, in their order."""
    return [skill for item in items for skill in item.skills]


def _is_folder(item: Any) -> bool:
    return not isinstance(item, type) and getattr(item, "__mcp_kind__", None) == "skills"


def _stranger(item: Any) -> str:
    kind = kind_of(item)
    if kind is not None:
        return f"{label_of(item)} is no skill; register it in {kind} = […]"
    return f"{item!r} is no skill; write SkillFolder('skills')"
