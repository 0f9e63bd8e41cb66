"""References inside one schema: JSON Pointers and anchors, nothing that needs another document."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from ._keywords import Path, walk


class Refs:
    """Resolves the local references of one schema; never leaves it.

    Args:
        root: The schema, an object or a bool.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._anchors: dict[str, tuple[Path, Any]] | None = None

    def find(self, ref: str) -> tuple[Path, Any]:
        """Return the path and the target of a reference that begins with `#`.

        Raises:
            LookupError: There is no such place; the text says what is missing.
        """
        fragment = unquote(ref[1:])
        if not fragment.startswith("/"):
            return ((), self._root) if not fragment else self._anchor(fragment)
        return _follow(self._root, fragment)

    def _anchor(self, name: str) -> tuple[Path, Any]:
        if self._anchors is None:
            self._anchors = dict(_anchors(self._root))
        if name not in self._anchors:
            raise LookupError(f'no "$anchor": "{name}" in the schema')
        return self._anchors[name]


def is_local(ref: Any) -> bool:
    """Tell if a reference stays inside its own document."""
    return isinstance(ref, str) and ref.startswith("#")


def reachable(schema: Any, refs: Refs) -> Iterator[dict[str, Any]]:
    """Yield every schema object below a schema and behind its local references, each once."""
    seen: set[int] = set()
    waiting: list[Any] = [schema]
    while waiting:
        for _path, node in walk(waiting.pop()):
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if is_local(node.get("$ref")):
                waiting.append(refs.find(node["$ref"])[1])


def names(root: Any) -> list[str]:
    """Return every anchor name of a schema, repeated ones too."""
    return [name for name, _place in _anchors(root)]


def _anchors(root: Any) -> Iterator[tuple[str, tuple[Path, Any]]]:
    for path, node in walk(root):
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                yield node[keyword], (path, node)


def _follow(root: Any, fragment: str) -> tuple[Path, Any]:
    path: list[str | int] = []
    node = root
    for part in fragment[1:].split("/"):
        step: str | int = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            step = _index(part, len(node))
        elif not isinstance(node, dict) or step not in node:
            raise LookupError(f'there is no "{step}" at "#{fragment}"')
        node = node[step]
        path.append(step)
    return tuple(path), node


def _index(part: str, length: int) -> int:
    if not part.isascii() or not part.isdigit() or int(part) >= length:
        raise LookupError(f'there is no item "{part}" in a list of {length}')
    return int(part)
