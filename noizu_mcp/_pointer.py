"""JSON Pointers (RFC 6901)."""

from collections.abc import Iterable

#: A place in a JSON value: names and indexes, from the root.
Path = tuple[str | int, ...]


def pointer(path: Iterable[str | int]) -> str:
    """Return the JSON Pointer of a path: `/items/0/qty`; "" is the root."""
    return "".join(f"/{escape(str(step))}" for step in path)


def escape(step: str) -> str:
    """Write one step of a pointer (RFC 6901, section 3)."""
    return step.replace("~", "~0").replace("/", "~1")


def unescape(step: str) -> str:
    """Read one step of a pointer (RFC 6901, section 4)."""
    return step.replace("~1", "/").replace("~0", "~")
