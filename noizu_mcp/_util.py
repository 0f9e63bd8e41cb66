"""Small things that every layer may use: the absence marker, names, JSON text, messages."""

import enum
import inspect
import ipaddress
import json
import math
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, Final, Literal, ParamSpec, TypeGuard, TypeVar, TypeVarTuple

#: The type of the value that a function returns.
Returned = TypeVar("Returned")
#: The parameters of a function, and those that are given by position alone.
Parameters = ParamSpec("Parameters")
Arguments = TypeVarTuple("Arguments")

_Class = TypeVar("_Class", bound=type)
_SchemaPart = TypeVar("_SchemaPart", list[Any], dict[str, Any])


class Unset(enum.Enum):
    """The type of `UNSET`, for signatures in which `None` is a value of its own."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        return False


#: The marker of an absent value. JSON has null, so `None` is a value.
UNSET: Final = Unset.UNSET

# A capital after a small letter or a digit; and the last capital of a run: `SAP|Example`.
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Turn the name of a class into the name of a tool.

    Args:
        name: A name in CapWords: `GetWeather`, `SAPExample`.

    Returns:
        The words in lower case, joined by underscores: `get_weather`, `sap_example`.
    """
    return _WORD_STARTS.sub("_", name).lower()


def growing_pause(failures: int, *, first: float = 1.0, longest: float = 60.0) -> float:
    """Return the pause before the next attempt, in seconds; it doubles with each failure.

    Args:
        failures: The number of failed attempts in a row; after none there is no pause.
        first: Seconds after the first failure.
        longest: The longest pause, in seconds.
    """
    return min(first * 2.0 ** min(failures - 1, 30), longest) if failures else 0.0


#: Not seeded: a test that seeds `random` must not make all programs pause alike.
_RANDOM: Final = random.SystemRandom()


def random_pause(failures: int, *, first: float = 1.0, longest: float = 60.0) -> float:
    """Return between half of a growing pause and all of it; see `growing_pause`.

    Programs that lost one server together must not all return in one moment.
    """
    return growing_pause(failures, first=first, longest=longest) * _RANDOM.uniform(0.5, 1)


def is_number(value: object) -> TypeGuard[float]:
    """Tell if a value is a finite number: no bool (an int in Python), no NaN, no infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def is_whole(value: object, least: int = 0) -> TypeGuard[int]:
    """Tell if a value is an integer of at least `least`; True and False do not count."""
    return type(value) is int and value >= least


def takes(function: object, *values: object) -> bool:
    """Tell whether a function, or another value, can be called with some values."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*values)
    # TypeError: other parameters. ValueError: a builtin without a signature.
    except (TypeError, ValueError):
        return False
    return True


def reachable(name: str, direct: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the names that one leads to, at any distance; itself only if it leads back.

    Args:
        name: The name.
        direct: The names that each name leads to; none for a name that is not there.
    """
    found: set[str] = set()
    # A loop and no recursion: names may lead to each other in a circle.
    waiting = [name]
    while waiting:
        new = set(direct.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def shorten(text: str, limit: int) -> str:
    """Return a text, cut after `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


# One encoder for all: `json.dumps` would build a new one for every call with these options.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def json_text(value: object) -> str:
    """Write a value as compact JSON, in the order of its keys.

    Args:
        value: A value that the `json` module can write.

    Returns:
        The text, not escaped to ASCII.

    Raises:
        TypeError: A value or a key that JSON has no form for.
        ValueError: NaN, an infinity, a circular reference or an integer beyond the digit limit.
        RecursionError: Nesting deeper than the interpreter allows.
    """
    return _encode(value)


# RFC 3986: a scheme, and something behind it made of the characters that a URI may have.
_URI: Final = r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+"


def is_uri(value: object) -> bool:
    """Tell whether a value is an absolute URI."""
    return isinstance(value, str) and re.fullmatch(_URI, value) is not None


#: Longest quotation of a wrong value in a message, in characters.
_MAX_QUOTED: Final = 60


def got(value: object) -> str:
    """Quote a wrong value for a message, shortened: `got 'x'`."""
    return f"got {shorten(repr(value), _MAX_QUOTED)}"


def called(value: Any) -> str:
    """Name a value in a message by its kind, where its `repr` would be an address in memory."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if hasattr(value, "__code__"):
        return f"the function {value.__name__}"
    # An address tells the reader nothing, and differs from run to run.
    if " at 0x" in repr(value):
        kind = type(value).__name__
        return f"a {kind}" if kind.islower() else f"an instance of {kind}"
    return got(value).removeprefix("got ")


def final(cls: _Class) -> _Class:
    """Refuse subclasses of a class, at run time.

    Args:
        cls: The class.

    Returns:
        The class, unchanged.
    """

    def refuse(new: type[object], /, **_: object) -> None:
        raise TypeError(f"{new.__name__} cannot subclass {cls.__name__}, which is final")

    type.__setattr__(cls, "__init_subclass__", classmethod(refuse))
    return cls


def publish(namespace: dict[str, Any], homes: Mapping[str, str] = MappingProxyType({})) -> None:
    """Publish the names of a folder: its `__all__`, and its name as their `__module__`.

    Tracebacks, `repr` and pickles then show the name that users import, and not a private file. A
    name is public if `__init__.py` imports it without an underscore.

    Args:
        namespace: The `globals()` of the folder's `__init__.py`.
        homes: The names that load when they are first used; `late` publishes them.
    """
    package = namespace["__name__"]
    # Importing a file of the folder has made it an attribute of the folder: it is no export.
    # Nor is `@pytest_ar`, which pytest adds where it rewrites assertions.
    exported = [
        name
        for name, value in namespace.items()
        if name.isidentifier()
        and not name.startswith("_")
        and getattr(value, "__name__", "") != f"{package}.{name}"
    ]
    namespace["__all__"] = sorted({*exported, *" ".join(homes.values()).split()})
    for name in namespace["__all__"]:
        _publish_one(namespace.get(name), package)


def _publish_one(value: object, package: str) -> None:
    ours = f"{package.partition('.')[0]}."
    # Other values have the module of their class, and may be frozen: they are left alone.
    named = isinstance(value, type) or hasattr(value, "__code__")
    if named and value.__module__.startswith(ours) and "._" in value.__module__:
        value.__module__ = package


def late(
    namespace: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Let public names of a folder load when they are first used (PEP 562).

    Args:
        namespace: The `globals()` of the folder's `__init__.py`, which will have `__all__` in it.
        homes: The names of each module, which is written as an import there would write it:
            `{"._client": "Client connect"}`. A module that is itself a public name has its own:
            `{".aio": "aio"}`.

    Returns:
        `__getattr__` and `__dir__` of the folder.
    """
    package = namespace["__name__"]
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Stored in the folder: the next access does not come here.
        module = import_module(home_of[name], package)
        value = namespace[name] = module if home_of[name] == f".{name}" else getattr(module, name)
        _publish_one(value, package)
        return value

    def names() -> list[str]:
        # PEP 562 replaces the whole of `dir`; names that are not loaded yet must be in it.
        folders = [
            name
            for name, value in namespace.items()
            if isinstance(value, ModuleType) and not name.startswith("_")
        ]
        special = [name for name in namespace if name.startswith("__")]
        return sorted({*namespace["__all__"], *folders, *special})

    return load, names


def utc_text() -> str:
    """Write the present time as ISO 8601 in UTC, with milliseconds: `2026-07-28T09:30:00.000Z`."""
    # Without `datetime`, which costs import time.
    seconds, rest = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03}Z"


def in_main_thread() -> bool:
    """Tell whether the calling thread may handle signals.

    Returns:
        True in the main thread of the process.
    """
    return threading.current_thread() is threading.main_thread()


def relative_path(path: str) -> str:
    """Shorten a path for a message.

    Args:
        path: An absolute path, or a name like `<stdin>`.

    Returns:
        The path from the current directory if the file lies below it, else the path as it is.
    """
    prefix = os.path.join(os.getcwd(), "")
    return path.removeprefix(prefix)


def network_of(address: str) -> str:
    """Name the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address.

    Args:
        address: An address, with or without a zone; any other text is returned as it is.
    """
    try:
        # Behind `%` stands a zone, which only this machine knows.
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        # A listener for both families gives the address of an IPv4 client as `::ffff:192.0.2.1`.
        # /64 is the network of one site (RFC 4291 section 2.5.4).
        mapped = found.ipv4_mapped
        return str(mapped or ipaddress.ip_network((found.packed, 64), strict=False))
    return str(found)


def part_of(schema: object, key: str, kind: type[_SchemaPart]) -> _SchemaPart:
    """Return a list or an object in a schema, which a peer may have written in any form.

    Args:
        schema: The schema, or whatever stands in its place.
        key: The keyword.
        kind: `list` or `dict`.

    Returns:
        The part; an empty one if it is not there, or of another kind.
    """
    found = schema.get(key) if isinstance(schema, dict) else None
    return found if isinstance(found, kind) else kind()
