"""Subscriptions of one connection to change notices, in either era.

Theory of operation. Both eras keep their own state here. A client with a handshake goes from silent
to awaiting (`await_ready`: changes are noted, one flag for each list) to pushed (`push`); resources
enter with `watch` and leave with `unwatch` or `close`. A listen request of 2026-07-28 is read and
checked (`read`), opened (`listen`) and closed (`drop`). It cannot grow: requests, watched URIs and
task ids share one limit, and the text of each listen request is bounded. It finds the recipients of
a change, and sends nothing, so it cannot wait.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple

from .._errors import McpError
from .._value import JSONMapping, JSONObject
from ..jsonrpc import INVALID_PARAMS, Id, Notification, encode, is_larger, render
from ..types import META_SUBSCRIPTION_ID, TASKS
from ._revisions import CHANGES

#: Bytes of JSON of a listen request, kept while it is open: a thousand URIs of some length.
MAX_LISTEN: Final = 256 * 1024
#: Values in it beside the watched resources and tasks: parsed, they take more memory than text.
MAX_LISTEN_VALUES: Final = 2000
RESOURCE_UPDATED: Final = "notifications/resources/updated"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
TASK_CHANGED: Final = "notifications/tasks"
# Member names of the filter (2026-07-28 `basic/patterns/subscriptions`; tasks extension).
_URIS: Final = "resourceSubscriptions"
_TASK_IDS: Final = "taskIds"
#: One for all: an empty set of its own takes 200 bytes, and each listen request has several.
_NONE: Final[frozenset[str]] = frozenset()

#: Decides whether a listen request may get a notice, by its id; None stands for the session.
MayBeNotified = Callable[[Id | None], bool]


class Listening(NamedTuple):
    """One open `subscriptions/listen` request (2026-07-28 `basic/patterns/subscriptions`).

    Attributes:
        id: The id of the request; every notice is tagged with it.
        kinds: The lists whose changes it wants.
        uris: The resources whose updates it wants.
        tasks: The tasks whose changes it wants, by id.
    """

    id: Id
    kinds: frozenset[str]
    uris: frozenset[str]
    tasks: frozenset[str] = _NONE

    @property
    def size(self) -> int:
        """Its share of the limit: one for the request, and one for each resource and task."""
        return 1 + len(self.uris) + len(self.tasks)

    def agreed(self) -> JSONObject:
        """Write the filter that was agreed on."""
        agreed: JSONObject = {CHANGES[kind][1]: True for kind in CHANGES if kind in self.kinds}
        for key, names in ((_URIS, self.uris), (_TASK_IDS, self.tasks)):
            # A kind that was not asked for, or that the server cannot tell, is left out, not false.
            if names:
                # Sorted: the order of a set would differ from run to run.
                agreed[key] = sorted(names)
        return agreed


class SubscriptionNotice:
    """A notice for any number of subscriptions, encoded once: only their ids differ.

    Args:
        method: Its method.
        params: Its params, without `_meta`; None for none.

    Attributes:
        method: See Args.
    """

    __slots__ = ("_before", "_params", "_plain", "method")

    def __init__(self, method: str, params: JSONMapping | None = None) -> None:
        self.method = method
        self._params = params
        self._plain: bytes | None = None
        self._before: bytes | None = None  # the text before the id

    def encode(self, id_: Id | None) -> bytes:
        """Encode it for one subscription.

        Args:
            id_: The id of a listen request, which the notice names (2026-07-28
                `basic/patterns/subscriptions`); None for a session, whose notices name none.
        """
        if id_ is None:
            if self._plain is None:
                params = None if self._params is None else dict(self._params)
                self._plain = encode(Notification(self.method, params))
            return self._plain
        if self._before is None:
            members = render(self._params)[1:-1] + b"," if self._params else b""
            self._before = b'{"jsonrpc":"2.0","method":%b,"params":{%b"_meta":{%b:' % (
                render(self.method),
                members,
                render(META_SUBSCRIPTION_ID),
            )
        # The id keeps its JSON type: a client compares it with the id that it sent.
        text = b"%d" % id_ if type(id_) is int else render(id_)
        return b"%b%b}}}" % (self._before, text)


#: The notices of changed lists.
LIST_CHANGED: Final = {kind: SubscriptionNotice(method) for kind, (method, _) in CHANGES.items()}


class Subscriptions:
    """The notices that one connection asked for.

    Args:
        limit: Listen requests and watched URIs, together, that may be open at once.

    Attributes:
        pushed: True once a client with a handshake is ready: it gets list changes unasked.
    """

    def __init__(self, limit: int) -> None:
        self.pushed = False
        # Lists that changed since `initialize` was answered; None before that, and afterwards.
        self._missed: dict[str, None] | None = None
        self._limit = limit
        self._listening: dict[Id, Listening] = {}
        self._watched: dict[str, None] = {}  # an empty set is three times as large
        self._used = 0  # listen requests, their URIs and watched URIs

    def await_ready(self) -> None:
        """Keep list changes for a client that begins a handshake until it is ready.

        The answer to `initialize`, and lists that the client reads before the server receives
        `notifications/initialized`, may be out of date by then: for the client the handshake is
        complete as soon as it has sent the notification.
        """
        # A dict for its order; one entry for each list at most, however often it changes.
        self._missed = {}

    def push(self) -> list[str]:
        """Begin to push list changes: the client is ready.

        Returns:
            The lists that changed since `await_ready`: it must be notified of these now.
        """
        missed, self._missed = self._missed or {}, None
        self.pushed = True
        return list(missed)

    def read(self, id_: Id, params: JSONMapping, capabilities: JSONMapping) -> Listening:
        """Read the filter of a listen request; kinds that the server cannot offer are left out.

        Raises:
            McpError: The filter is no filter, or holds more than may ever be open.
        """
        # Before anything is built of it: the sets of a large filter take many times its text.
        self._check_amount(id_, params)
        wanted = params.get("notifications")
        if not isinstance(wanted, Mapping):
            raise McpError(INVALID_PARAMS, "subscriptions/listen requires a notifications object")
        # Left out without an error: the acknowledgement names the agreed subset
        # (2026-07-28 `basic/patterns/subscriptions`).
        uris, tasks = _read_names(wanted, _URIS), _NONE
        kinds = {
            kind
            for kind, (_, key) in CHANGES.items()
            if _read_flag(wanted, key) and _can(capabilities, kind, "listChanged")
        }
        if not _can(capabilities, "resources", "subscribe"):
            uris = _NONE
        if TASKS in capabilities.get("extensions", ()):
            tasks = _read_names(wanted, _TASK_IDS)
        listening = Listening(id_, frozenset(kinds), uris, tasks)
        # Refused now, before hooks of the author run; `listen` takes the room.
        self._check(listening.size)
        return listening

    def listen(self, listening: Listening) -> None:
        """Open a listen request.

        Raises:
            McpError: The limit is reached.
        """
        self._take_room(listening.size)
        self._listening[listening.id] = listening

    def drop(self, id_: Id) -> Listening | None:
        """Close a listen request, if there is one with that id.

        Returns:
            The closed request; None if there was none.
        """
        listening = self._listening.pop(id_, None)
        if listening is not None:
            self._used -= listening.size
        return listening

    def watches(self, uri: str) -> bool:
        """Tell whether a client with a handshake watches a resource."""
        return uri in self._watched

    @property
    def watched(self) -> list[str]:
        """The resources that a client with a handshake watches."""
        return list(self._watched)

    def watch(self, uri: str) -> None:
        """Watch one resource for a client with a handshake (`resources/subscribe`).

        Raises:
            McpError: The limit is reached.
        """
        # Watching twice is watching once: the second must not use up the limit.
        if uri not in self._watched:
            self._take_room(1)
            self._watched[uri] = None

    def unwatch(self, uri: str) -> None:
        """Stop watching; a URI that is not watched is fine."""
        if uri in self._watched:
            del self._watched[uri]
            self._used -= 1

    def close(self) -> frozenset[str]:
        """Stop watching for a client with a handshake: the connection has ended.

        Returns:
            The resources that it watched still.
        """
        watched = frozenset(self._watched)
        self._used -= len(watched)
        self._watched.clear()
        return watched

    def changed(self, kind: str) -> list[Id | None]:
        """List the subscribers of a list change: `tools`, `prompts` or `resources`.

        Returns:
            The ids of listen requests; None stands for the session. A pipe may have both. A client
            whose handshake is not complete yet is notified after `push`.
        """
        if self._missed is not None:
            self._missed[kind] = None
        recipients: list[Id | None] = [None] if self.pushed else []
        recipients += [each.id for each in self._listening.values() if kind in each.kinds]
        return recipients

    def updated(self, uri: str, may_be_notified: MayBeNotified) -> list[Id | None]:
        """List the subscribers of a resource update that may know it; see `changed`."""
        # `may_be_notified` is asked last, and for each notice: access may have ended since the
        # subscription.
        listening = self._listening.values()
        wanting: list[Id | None] = [None] if uri in self._watched else []
        wanting += [each.id for each in listening if uri in each.uris]
        return [id_ for id_ in wanting if may_be_notified(id_)]

    def wanted(self) -> list[Hashable]:
        """List the changes that subscribers may want: lists, and resources, each in a tuple."""
        listening = self._listening.values()
        uris = dict.fromkeys((*self._watched, *(uri for each in listening for uri in each.uris)))
        # Without a subscriber, the report of a list is dropped.
        return [*CHANGES, *((uri,) for uri in uris)]

    def follows(self, task_id: str) -> bool:
        """Tell whether a listen request wants the changes of a task."""
        return any(task_id in each.tasks for each in self._listening.values())

    def task_changed(self, task_id: str, may_be_notified: MayBeNotified) -> list[Id | None]:
        """List the subscribers of a task change that may see the task; see `changed`."""
        listening = self._listening.values()
        return [each.id for each in listening if task_id in each.tasks and may_be_notified(each.id)]

    def _check_amount(self, id_: Id, params: JSONMapping) -> None:
        # All of the request stays while it is open, and every notice of it has its id.
        values = MAX_LISTEN_VALUES + self._limit
        if is_larger([id_, params], MAX_LISTEN, values):
            text = f"subscriptions/listen may have {MAX_LISTEN} bytes of JSON and {values} values"
            raise McpError(INVALID_PARAMS, text)

    def _take_room(self, more: int) -> None:
        # Checked before it is counted: a refused request must not use up room.
        self._check(self._used + more)
        self._used += more

    def _check(self, used: int) -> None:
        if used > self._limit:
            text = f"More than {self._limit} subscriptions on this connection"
            raise McpError(INVALID_PARAMS, text)


def _read_flag(wanted: JSONMapping, key: str) -> bool:
    flag = wanted.get(key)
    if flag is None or isinstance(flag, bool):
        return flag is True
    raise McpError(INVALID_PARAMS, f"{key} must be true or false")


def _read_names(wanted: JSONMapping, key: str) -> frozenset[str]:
    names = wanted.get(key)
    if names is None:
        return _NONE
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise McpError(INVALID_PARAMS, f"{key} must be a list of strings")
    return frozenset(names)


def _can(capabilities: JSONMapping, feature: str, ability: str) -> bool:
    return bool((capabilities.get(feature) or {}).get(ability))
