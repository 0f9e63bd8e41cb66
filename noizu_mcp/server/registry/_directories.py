"""The directories of skills, for `resources/directory/read`."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..._value import JSONObject
from ...types import DIRECTORY

if TYPE_CHECKING:
    from ...skills import SkillSpec

#: The definitions of the entries of each directory, by the URIs of directory and entry.
Tree = Mapping[str, Mapping[str, Mapping[str, Any]]]


def make_tree(skills: Iterable["SkillSpec"]) -> Tree:
    """Find the directories of skills and their parents (SEP-2640, "Directory Resources").

    Args:
        skills: The skills. A hidden skill is not in the directories above it.
    """
    tree: dict[str, dict[str, Mapping[str, Any]]] = {}
    for skill in skills:
        for uri, spec in skill.files.items():
            _put(tree, uri, spec.definition, skill.root)
        if not skill.hidden:
            first = "/".join(skill.root.split("/")[:3])  # skill://acme
            _put(tree, skill.root, _directory(skill.root), first)
    return tree


def _put(
    tree: dict[str, dict[str, Mapping[str, Any]]], uri: str, what: Mapping[str, Any], top: str
) -> None:
    """Put an entry into its directory, and each directory into its parent, up to `top`."""
    while uri != top:
        home = uri.rpartition("/")[0]
        tree.setdefault(home, {})[uri] = what
        uri, what = home, _directory(home)


def _directory(uri: str) -> JSONObject:
    return {"uri": uri, "name": unquote(uri.rpartition("/")[2]), "mimeType": DIRECTORY}
