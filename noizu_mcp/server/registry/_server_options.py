"""The options of a server, and their checks."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import attrs

from ..._limits import DEFAULTS, Limits
from ..._schema_engine import EngineName
from ..._util import got, is_number
from ..._value import JSONObject, Value
from ...components import (
    Table,
    read_flag,
    read_icons,
    read_loop,
    read_requires,
    read_seconds,
    read_text,
)
from ...schema import choose_engine
from ._pages import PAGE_SIZE

if TYPE_CHECKING:
    from ...backends import Backend
    from ...types import RequireScopes

#: Default timeout of a tool in seconds. Models and people give up at about that time.
TOOL_TIMEOUT: Final = 30.0
#: Seconds that a task may run, and that its result is kept afterwards: an hour, so that a person
#: can answer a question or fetch the result later.
TASK_TTL: Final = 3600.0
#: Seconds between two polls of a task, as advice to clients.
TASK_POLL_INTERVAL: Final = 1.0
#: Seconds that a handler may block the event loop. People notice a hang after about ten.
WATCHDOG: Final = 1.0
#: The environment variable with the key ring: secrets separated by commas. The first one seals.
KEYS_VARIABLE: Final = "NOIZU_MCP_STATE_KEYS"
#: The environment variable with the URL of the backend.
BACKEND_VARIABLE: Final = "NOIZU_MCP_BACKEND"
#: Seconds within which a client must send answers: long enough to find a person, short since a
#: sealed state can be replayed during that time.
STATE_TTL: Final = 3600.0
#: Minimum characters of a secret. A client has sealed state and can test guesses offline.
MIN_SECRET: Final = 32
#: Minimum number of different characters of a secret. 32 random hexadecimal digits have fewer once
#: in ten million.
MIN_CHARACTERS: Final = 8
#: The command that makes a good secret, for errors.
KEY_COMMAND: Final = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
#: The kinds of results that a client may cache (2026-07-28 `server/utilities/caching`).
CACHEABLE: Final = ("discover", "tools", "prompts", "resources", "templates", "read", "skills")


@attrs.frozen(eq=False, repr=False)
class Cache(Value):
    """The time for which a client may cache a result (2026-07-28 `server/utilities/caching`).

    Attributes:
        ttl: Seconds; 0 if it is stale at once.
        scope: `private`: for this caller only; `public`: the same for every caller. A result that
            requires scopes is always `private`: a shared cache does not check scopes.

    Raises:
        ValueError: One of them is not valid.
    """

    ttl: float = attrs.field(default=0.0)
    scope: str = attrs.field(default="private")

    @ttl.validator
    def _check_ttl(self, _: object, value: object) -> None:
        if not is_number(value) or value < 0:
            raise ValueError(f"ttl must be seconds, 0 or more, got {value!r}")

    @scope.validator
    def _check_scope(self, _: object, value: object) -> None:
        if value not in ("private", "public"):
            raise ValueError(f"scope must be 'private' or 'public', got {value!r}")

    def to_wire(self) -> JSONObject:
        """Return the two members of a cacheable result."""
        return {"ttlMs": round(self.ttl * 1000), "cacheScope": self.scope}

    def tail(self) -> bytes:
        """Return the two members as JSON text, each after a comma."""
        # For results that are already JSON text: parsing them to add two members would take longer
        # than rendering them.
        return b',"ttlMs":%d,"cacheScope":"%b"' % (round(self.ttl * 1000), self.scope.encode())


_STALE: Final = Cache()


class ServerOptions(NamedTuple):
    """The options of one server class, checked.

    Attributes:
        name: The programmatic name.
        version: The version of the server, in any format.
        title: The display name.
        description: The purpose of the server.
        instructions: Advice for a model that uses the server.
        website_url: The URL of its website.
        icons: Its icons.
        tool_timeout: Maximum seconds of a call; infinite for no limit.
        coerce: True to convert text arguments to the types of the schema. None: only if the schema
            is not raw JSON Schema.
        page_size: Entries per page of a list.
        limits: The limits of a connection.
        cache: How long clients may cache results, by `CACHEABLE` name.
        state_keys: Secrets that seal the state that clients carry: the first one seals, every one
            opens. None for the secrets of the environment, or else a random one of this process.
        state_ttl: Seconds within which a client must send answers.
        task_ttl: Seconds that a task may run, and that its result is kept afterwards.
        task_poll_interval: Seconds between two polls of a task, as advice to clients.
        watchdog: Seconds that a handler may block the loop of a serving process before it is
            logged; None to never log.
        max_result_bytes: Maximum size of a tool result as JSON, in bytes; None for no limit.
        requires: Scopes that every request needs, except methods in `OPEN`; None for no scopes.
        loop: The loop of its coroutine functions, and of components without the option.
        schema_engine: The engine that validates values of its components; None for the engine of
            the environment, or else the native one if it can be loaded.
        backend: What its nodes share over HTTP, or the URL of it; None for one process alone.
    """

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    instructions: str | None = None
    website_url: str | None = None
    icons: tuple[Any, ...] = ()
    tool_timeout: float | None = TOOL_TIMEOUT
    coerce: bool | None = None
    page_size: int = PAGE_SIZE
    limits: Limits = DEFAULTS
    cache: Mapping[str, Cache] = MappingProxyType({})
    state_keys: Sequence[str] | None = None
    state_ttl: float = STATE_TTL
    task_ttl: float = TASK_TTL
    task_poll_interval: float = TASK_POLL_INTERVAL
    watchdog: float | None = WATCHDOG
    max_result_bytes: int | None = None
    requires: "RequireScopes | None" = None
    loop: str = "trio"
    schema_engine: EngineName | None = None
    backend: "str | Backend | None" = None

    def cache_of(self, kind: str, *, guarded: bool = False) -> Cache:
        """Return the cache hints of a kind of result; by default results are stale at once.

        Args:
            kind: One of `CACHEABLE`.
            guarded: True if some callers may not get this result. Scopes of the server guard all
                kinds except `discover`, which every caller may use.
        """
        cache = self.cache.get(kind, _STALE)
        if guarded or (self.requires is not None and kind != "discover"):
            return attrs.evolve(cache, scope="private")
        return cache


def _read_limits(value: object) -> Limits:
    if not isinstance(value, Limits):
        raise ValueError(f"must be Limits(…), got {value!r}")
    return value


def _read_cache(value: object) -> Mapping[str, Cache]:
    if isinstance(value, Cache):
        return dict.fromkeys(CACHEABLE, value)
    if not isinstance(value, Mapping):
        raise ValueError(f"must be Cache(…) or a mapping to it, got {value!r}")
    for kind, cache in value.items():
        if kind not in CACHEABLE:
            raise ValueError(f"no kind {kind!r}; there are: {', '.join(CACHEABLE)}")
        if not isinstance(cache, Cache):
            raise ValueError(f"must be Cache(…) for {kind!r}, got {cache!r}")
    return dict(value)


def _read_state_keys(value: Any) -> Sequence[str]:
    # A set has no first secret to seal with. An empty ring would hide the environment's.
    listed = isinstance(value, list | tuple) and value
    if not listed or not all(isinstance(key, str) for key in value):
        raise ValueError("must be a list of texts, one at least")
    read_secrets(value)
    return tuple(value)


def read_secrets(secrets: Sequence[str] | None) -> list[bytes]:
    """Return the key ring: the given secrets, or else the environment's, or an empty one.

    Raises:
        ValueError: A secret is too short, or can be guessed.
    """
    if secrets is None:
        given = os.environ.get(KEYS_VARIABLE, "")
        secrets = [part.strip() for part in given.split(",") if part.strip()]
    if not all(map(_is_secret, secrets)):
        text = f"a state key needs at least {MIN_SECRET} random characters; make one with"
        raise ValueError(f"{text}: {KEY_COMMAND}")
    return [secret.encode() for secret in secrets]


def _is_secret(text: str) -> bool:
    """Tell whether a text can be a secret: long, with many characters, and not repeated."""
    repeats = text in (text * 2)[1:-1]
    return len(text) >= MIN_SECRET and len(set(text)) >= MIN_CHARACTERS and not repeats


def _read_some_seconds(value: object) -> float:
    if not is_number(value) or value <= 0:
        raise ValueError(f"must be seconds above 0, {got(value)}")
    return float(value)


def _read_watchdog(value: object) -> float | None:
    return None if value is None else _read_some_seconds(value)


def _read_page_size(value: object) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"must be a whole number above 0, {got(value)}")
    return value


def _read_bytes(value: object) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"must be a whole number above 0, or None for no limit, {got(value)}")
    return value


def _read_engine(value: Any) -> EngineName | None:
    if value is not None and value not in get_args(EngineName):
        raise ValueError(f'must be "native" or "python", {got(value)}')
    # The native engine may not be available here.
    return value and choose_engine(value)


def read_backend(value: Any) -> "str | Backend | None":
    """Check a backend, or the URL of one.

    Raises:
        ValueError: It is neither, or the URL is not valid.
    """
    if value is None or value == "":
        return None if value is None else ""
    from ...backends import Backend

    if isinstance(value, Backend):
        return value
    if not isinstance(value, str):
        raise ValueError(f"must be a URL like redis://127.0.0.1:6379/0, or a Backend, {got(value)}")
    from ...backends import Redis

    # Made now, so that a wrong URL is found where it is written. Nothing connects yet.
    made: Backend = Redis(value)
    return made


#: The options of a `Server` class statement, and their readers.
SERVER_OPTIONS: Final[Table] = {
    "name": read_text,
    "version": read_text,
    "title": read_text,
    "description": read_text,
    "instructions": read_text,
    "website_url": read_text,
    "icons": read_icons,
    "tool_timeout": read_seconds,
    "coerce": read_flag,
    "page_size": _read_page_size,
    "limits": _read_limits,
    "cache": _read_cache,
    "state_keys": _read_state_keys,
    "state_ttl": _read_some_seconds,
    "task_ttl": _read_some_seconds,
    "task_poll_interval": _read_some_seconds,
    "watchdog": _read_watchdog,
    "max_result_bytes": _read_bytes,
    "requires": read_requires,
    "loop": read_loop,
    "schema_engine": _read_engine,
    "backend": read_backend,
    "abstract": read_flag,
}

#: Options of the class statement that a running server does not have.
STATEMENT_ONLY: Final = ("abstract",)
