"""Which alternative of `anyOf` or `oneOf` was meant, when the value fits none of them."""

from collections.abc import Sequence
from typing import Any

from ..jsonschema._messages import broken, none_fits, several_types
from ..jsonschema._violation import Path, Violation, place

Branch = list[Violation]


def nothing_fits(path: Path, keyword: str, branches: Sequence[Branch], got: Any) -> Branch:
    """Return what to say of a value that breaks every alternative.

    Alternatives are ranked by three questions: does the value have the type at all, does a constant
    that tells alternatives apart differ, and how many faults there are. A clear winner speaks for
    itself; alternatives that differ by type or by constant only are joined; else the closest is
    quoted.

    Args:
        path: Where the value is.
        keyword: `anyOf` or `oneOf`.
        branches: The violations of each alternative, none empty.
        got: The value.
    """
    joined = _joined_types(path, branches, got) or _joined_choices(path, branches, got)
    if joined:
        return [joined]
    ranked = sorted(branches, key=lambda branch: _rank(path, branch))
    if len(ranked) == 1 or _rank(path, ranked[0]) < _rank(path, ranked[1]):
        return ranked[0]
    return [none_fits(path, keyword, len(branches), _brief(path, ranked[0][0]), got)]


def _rank(path: Path, branch: Branch) -> tuple[bool, bool, int]:
    wrong_type = any(fault.keyword == "type" and fault.path == path for fault in branch)
    wrong_mark = any(
        fault.keyword in ("const", "enum") and len(fault.path) <= len(path) + 1 for fault in branch
    )
    return wrong_type, wrong_mark, len(branch)


def _joined_types(path: Path, branches: Sequence[Branch], got: Any) -> Violation | None:
    if not _all_just(path, branches, ("type",)):
        return None
    types: dict[str, None] = {}
    for branch in branches:
        expected = branch[0].expected
        types.update(dict.fromkeys(expected if isinstance(expected, list) else [expected]))
    return several_types(path, list(types), got)


def _joined_choices(path: Path, branches: Sequence[Branch], got: Any) -> Violation | None:
    if not _all_just(path, branches, ("const", "enum")):
        return None
    choices: list[Any] = []
    for (fault,) in branches:
        choices += fault.expected if fault.keyword == "enum" else [fault.expected]
    return broken(path, "enum", choices, got)


def _all_just(path: Path, branches: Sequence[Branch], keywords: tuple[str, ...]) -> bool:
    return all(
        len(branch) == 1 and branch[0].keyword in keywords and branch[0].path == path
        for branch in branches
    )


def _brief(path: Path, fault: Violation) -> str:
    where = place(fault.path[len(path) :])
    return f"{where}: {fault.message}" if where else fault.message
