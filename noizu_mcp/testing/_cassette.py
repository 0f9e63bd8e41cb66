"""Cassettes: the messages of one connection in a file, and a server that plays them back.

A cassette is a text file of JSON lines, so that changes can be reviewed: first `{"cassette": 1}`,
then `{"sent": …}` and `{"received": …}`, as seen by the client, in order of time. HTTP headers are
not messages, and are never written.

Theory of operation. Each message that the client sent is a *step*. Each message that it received
belongs to one step, its cause: an answer to its request; a notification with a progress token or a
subscription id to the request with this token or id; any other one to the last step before it. When
the client of a replay sends a message, the first unused step with an equal message is used, and all
messages of that step are received, in the order of the recording. So the answers do not depend on
timing, and requests may be sent in another order than in the recording. Each step is used once, or
with `repeat` again if no unused step is equal. Either way, what is received is bounded by what is
sent. A request without a step is answered with an error. A request without an answer in the
recording gets none: it was cancelled, or it is a subscription.

Messages are equal if they have the same method and the same params. `_meta` is ignored, and so are
the params of `initialize`: they have the release of the client, and its newest revision, while the
answer has the revision of the recording. The file has the ids and progress tokens of the recording;
they are replaced by the client's own in messages that it receives.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
import trio

from .._files import through_no_link
from .._limits import CLIENT_LIMITS
from .._util import final
from .._value import JSONObject
from ..engine import MessageStream
from ..jsonrpc import INTERNAL_ERROR, ErrorResponse, Received, encode_error, read_message
from ..transports import Tap
from ..types import META_PROGRESS_TOKEN
from ._references import Name, params_of, references
from ._secrets import hide_secrets

#: Changes a message before it is written, and before it is compared with the file.
Redact = Callable[[JSONObject], JSONObject]

_VERSION: Final = 1
#: Characters of a message in an error.
_SHOWN: Final = 200


@contextmanager
def record(path: str | os.PathLike[str], *, redact: Redact = hide_secrets) -> Iterator[Tap]:
    """Write the messages of one connection to a cassette: `connect(target, tap=tap)`.

    Each message is written at once, so that the file is complete even if a program ends early.
    Bytes that are not JSON are left out.

    Args:
        path: The file; it is replaced, and its folder is made.
        redact: Returns the message to write instead of a given one; by default `hide_secrets`.

    Yields:
        The tap.

    Raises:
        OSError: The file cannot be written, or is a link to another file.
    """
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w", encoding="utf-8", buffering=1, opener=through_no_link) as out:

        def write(entry: JSONObject) -> None:
            out.write(json.dumps(entry, ensure_ascii=False) + "\n")

        def tap(direction: str, data: bytes) -> None:
            for message in _messages(data):
                write({direction: redact(message)})

        write({"cassette": _VERSION})
        yield tap


def _messages(data: bytes) -> list[JSONObject]:
    """Decode a message, or the messages of an array (2025-03-26)."""
    try:
        decoded = json.loads(data)
    except (ValueError, RecursionError):
        return []
    listed = decoded if isinstance(decoded, list) else [decoded]
    return [each for each in listed if isinstance(each, dict)]


@attrs.define(eq=False)
class _RecordedStep:
    """A message of the client, and the messages of the server that belong to it."""

    message: JSONObject
    received: list[JSONObject] = attrs.Factory(list)


def replay(
    path: str | os.PathLike[str], *, redact: Redact = hide_secrets, repeat: bool = False
) -> "Replay":
    """Make a server from a cassette: `connect(replay("docs.jsonl"))`.

    Args:
        path: The file.
        redact: See `record`: a message of the client is compared in the form in which it is
            written.
        repeat: True to answer a request any number of times: with the recorded answers in turn,
            then with the last one again.

    Returns:
        A target of `connect`, for one connection.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a cassette.
    """
    entries = _read(Path(path))
    return Replay(os.fspath(path), entries, redact, repeat=repeat)


def _read(file: Path) -> list[tuple[str, JSONObject]]:
    entries = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                ((kind, value),) = json.loads(line).items()
            except (ValueError, AttributeError):
                kind, value = "", None
            if number == 1:
                if (kind, value) != ("cassette", _VERSION):
                    raise ValueError(f'{file} is no cassette: its first line is {{"cassette": 1}}')
            elif kind in ("sent", "received") and isinstance(value, dict):
                entries.append((kind, value))
            else:
                raise ValueError(f'{file}:{number}: a line is {{"sent": …}} or {{"received": …}}')
    return entries


@final
class Replay(MessageStream):
    """A server that plays a cassette back; see `replay`.

    Attributes:
        unexpected: Descriptions of sent messages that the cassette does not have.
    """

    def __init__(
        self,
        path: str,
        entries: Sequence[tuple[str, JSONObject]],
        redact: Redact,
        *,
        repeat: bool,
    ) -> None:
        self.unexpected: list[str] = []
        self._path = path
        self._redact = redact
        # Not bounded, since the cassette is bounded.
        self._sending, self._receiving = trio.open_memory_channel[bytes](math.inf)
        first, *self._left = _assign(entries)
        #: The steps that may be used again, the last one first; empty without `repeat`.
        self._taken: list[_RecordedStep] = []
        self._repeat = repeat
        #: The client's ids and tokens by the recorded ones, and the reverse.
        self._ours: dict[Name, Name] = {}
        self._recorded: dict[Name, Name] = {}
        self._deliver(first)

    async def receive(self) -> Sequence[Received]:
        """Wait for messages; see `MessageStream`."""
        try:
            return [read_message(await self._receiving.receive(), CLIENT_LIMITS)]
        except trio.EndOfChannel:
            return ()

    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Use the step of each message; see `MessageStream`."""
        for data in messages:
            for message in _messages(data):
                self._take(message)
        return True

    async def send(self, messages: Sequence[bytes]) -> None:
        """Use the step of each message; see `MessageStream`."""
        await trio.lowlevel.checkpoint()
        self.send_nowait(messages)

    async def aclose(self) -> None:
        """End the stream."""
        self._sending.close()
        await trio.lowlevel.checkpoint()

    def done(self) -> None:
        """Check that the client has sent exactly the messages of the cassette.

        Raises:
            AssertionError: The messages differ; the text lists the differences.
        """
        faults = [f"not recorded: {text}" for text in self.unexpected]
        faults += [f"not sent: {_shown(step.message)}" for step in self._left]
        if faults:
            raise AssertionError("; ".join(faults))

    def _take(self, message: JSONObject) -> None:
        hidden = self._redact(message)
        # Answers have the ids of the server.
        names = self._recorded if "method" in message else {}
        wanted = _content(_rename(hidden, names))
        for step in (*self._left, *self._taken):
            if _content(step.message) == wanted:
                if step in self._left:
                    self._left.remove(step)
                    self._taken[:0] = [step] if self._repeat else []
                self._note_ids(step.message, message)
                self._deliver(step)
                return
        self.unexpected.append(_shown(hidden))
        if "method" in message and "id" in message:
            text = f"{self._path} has no such request: {_shown(hidden)}"
            method = message["method"]
            every = (each.message for each in (*self._left, *self._taken))
            if same := [each for each in every if each.get("method") == method]:
                text += f"; the next {method} in it is {_shown(same[0])}"
            self._sending.send_nowait(
                encode_error(ErrorResponse(message["id"], INTERNAL_ERROR, text))
            )

    def _note_ids(self, recorded: JSONObject, ours: JSONObject) -> None:
        for before, now in zip(_names_of(recorded), _names_of(ours), strict=True):
            self._ours[before] = now
            self._recorded[now] = before

    def _deliver(self, step: _RecordedStep) -> None:
        for message in step.received:
            data = json.dumps(_rename(message, self._ours)).encode()
            self._sending.send_nowait(data)


def _assign(entries: Sequence[tuple[str, JSONObject]]) -> list[_RecordedStep]:
    """Assign each received message to its step.

    Returns:
        The steps. The first has no message, for what the server sent before any other.
    """
    steps = [_RecordedStep({})]
    by_name: dict[Name, _RecordedStep] = {}
    for direction, message in entries:
        if direction == "sent":
            steps.append(_RecordedStep(message))
            by_name.update(dict.fromkeys(_names_of(message), steps[-1]))
        else:
            causes = (by_name.get(name) for *_, name in references(message))
            step = next((cause for cause in causes if cause is not None), steps[-1])
            step.received.append(message)
    return steps


def _names_of(message: JSONObject) -> tuple[Name, ...]:
    """Return the id and the progress token of a request; empty for other messages."""
    if "method" not in message or "id" not in message:
        return ()
    token = (params_of(message).get("_meta") or {}).get(META_PROGRESS_TOKEN)
    return ("id", message["id"]), ("token", token)


def _rename(message: JSONObject, names: Mapping[Name, Name]) -> JSONObject:
    """Copy a message, and replace the ids of requests in it."""
    copied: JSONObject = json.loads(json.dumps(message))
    for owner, member, name in references(copied):
        owner[member] = names.get(name, name)[1]
    return copied


def _content(message: JSONObject) -> str:
    """Return the parts that must be equal in two messages."""
    # As text, since 1 and true are equal in Python.
    if "method" not in message:
        return json.dumps(message, sort_keys=True)
    params = {name: value for name, value in params_of(message).items() if name != "_meta"}
    if message["method"] == "initialize":
        params = {}
    return json.dumps(["id" in message, message["method"], params], sort_keys=True)


def _shown(message: JSONObject) -> str:
    params = {name: value for name, value in params_of(message).items() if name != "_meta"}
    text = json.dumps(message.get("result", params), ensure_ascii=False)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"{message.get('method', 'an answer')} {text}"
