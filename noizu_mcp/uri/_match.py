"""URI templates, turned round: which characters of a URI belong to which variable?

A template is a row of nodes: fixed texts, some of which may be absent together with what they lead,
and runs of characters. A table is filled from the end of the URI to its beginning, then read
forwards: the time is linear in the length of the URI, whatever its characters.
"""

import re
from collections.abc import Callable
from typing import Any, Final

_ESCAPE: Final = rb"%([0-9A-Fa-f]{2})?"
_STEP_UP: Final = r"(?:^|[/\\])\.\.(?:[/\\]|\Z)"
_CONTROL: Final = r"[\x00-\x1f\x7f-\x9f]"
_ABSOLUTE: Final = r"[/\\]|[A-Za-z]:[/\\]"


Read = Callable[[str], dict[str, Any]]


class Fixed:
    """A text that stands there.

    Attributes:
        text: As in a URI.
        skip: The node to go on with when the text is absent; 0 if it must be there.
        other: Another text of the same length that may stand there; "" for none.
    """

    __slots__ = ("other", "skip", "text")

    def __init__(self, text: str, skip: int = 0, other: str = "") -> None:
        self.text = text
        self.skip = skip
        self.other = other


class Run:
    """One or more characters that hold the values of variables.

    Attributes:
        names: The variables.
        stops: Characters that never stand in it.
        pattern: Finds the longest runs without them.
        read: Takes the values out of the text; ValueError if it holds none.
        confined: Whether a value is no path of its own, and must not become one by decoding.
    """

    __slots__ = ("confined", "names", "pattern", "read", "stops")

    def __init__(self, names: tuple[str, ...], stops: str, read: Read, *, confined: bool) -> None:
        self.names = names
        self.stops = stops
        self.pattern = re.compile(f"[^{re.escape(stops)}]+" if stops else r"(?s:.)+")
        self.read = read
        self.confined = confined


Nodes = tuple[Fixed | Run, ...]


def decode(text: str) -> str:
    """Undo percent-encoding, once.

    Raises:
        ValueError: A percent sign that encodes nothing, or what is encoded is not UTF-8.
    """
    return re.sub(_ESCAPE, _unescape, text.encode()).decode()


def _unescape(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        raise ValueError("a percent sign that encodes nothing")
    return bytes.fromhex(match[1].decode())


def is_unsafe(value: str, *, confined: bool) -> bool:
    """Tell if a decoded value could lead a careless handler out of its directory.

    Args:
        value: The value.
        confined: Whether an absolute path counts too, since the variable is not meant for paths.
    """
    if (".." in value and re.search(_STEP_UP, value)) or re.search(_CONTROL, value):
        return True
    return confined and re.match(_ABSOLUTE, value) is not None


def find_runs(nodes: Nodes, uri: str) -> list[tuple[Run, str]] | None:
    """Tell which characters belong to which run.

    Args:
        nodes: The template.
        uri: All of it must match.

    Returns:
        The runs that are there, each with its text, as long as the rest allows; None if the
        template has no such URI.
    """
    table = _Table(nodes, uri)
    if not table.starts[0][0]:
        return None
    found: list[tuple[Run, str]] = []
    index = at = 0
    while index < len(nodes):
        node = nodes[index]
        if isinstance(node, Run):
            end = table.end(index, node, at)
            found.append((node, uri[at:end]))
            index, at = index + 1, end
        elif table.kept[index][at]:
            index, at = index + 1, at + len(node.text)
        else:
            index = node.skip
    return found


class _Table:
    """Where each node may start so that it and all that follows match.

    Attributes:
        starts: For each node, and for the end, a flag for each place in the URI.
        kept: The same, counting only what does not skip the node.
    """

    def __init__(self, nodes: Nodes, uri: str) -> None:
        self.uri = uri
        end = bytearray(len(uri) + 1)
        end[-1] = 1
        self.starts = [end] * (len(nodes) + 1)
        self.kept = [end] * (len(nodes) + 1)
        for index in range(len(nodes) - 1, -1, -1):
            node = nodes[index]
            after = self.starts[index + 1]
            if isinstance(node, Run):
                self.starts[index] = self.kept[index] = self._run(node, after)
            else:
                flags = bytearray(len(after))
                for text in filter(None, (node.text, node.other)):
                    self._mark(text, after, flags)
                self.starts[index] = self.kept[index] = flags
                if node.skip:
                    pairs = zip(self.kept[index], self.starts[node.skip], strict=True)
                    self.starts[index] = bytearray(a | b for a, b in pairs)

    def _mark(self, text: str, after: bytearray, flags: bytearray) -> None:
        at = self.uri.find(text)
        while at >= 0:
            flags[at] = after[at + len(text)]
            at = self.uri.find(text, at + 1)

    def _run(self, node: Run, after: bytearray) -> bytearray:
        flags = bytearray(len(after))
        for match in node.pattern.finditer(self.uri):
            start, end = match.span()
            last = after.rfind(1, start + 1, end + 1)
            if last >= 0:
                flags[start:last] = b"\1" * (last - start)
        return flags

    def end(self, index: int, node: Run, at: int) -> int:
        """Give the last place where a run that starts at a place may end."""
        match = node.pattern.match(self.uri, at)
        limit = match.end() + 1 if match else at
        # What may be absent is there if it can be: `{name}{.extension}` of "a.b" is both.
        end = self.kept[index + 1].rfind(1, at + 1, limit)
        return end if end >= 0 else self.starts[index + 1].rfind(1, at + 1, limit)
