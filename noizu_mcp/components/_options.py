"""The options of components: their names, what each may be, and what to write instead.

A reader takes the value an author gave and returns the value to keep; it raises `ValueError` with
the text of the problem. The tables say which options a place takes.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from .._foreign import advice
from .._util import json_text
from ..schema.jsonschema._nearest import nearest
from ..types import Annotations, ContentAnnotations, Icon, RequireScopes

#: Longest quotation of a wrong value in a problem, in characters.
MAX_QUOTED: Final = 60

Reader = Callable[[Any], Any]
Table = Mapping[str, Reader]

_Hints = TypeVar("_Hints", Annotations, ContentAnnotations)

_AUDIENCE: Final = ("user", "assistant")

#: server/tools, Tool Names. A SHOULD of the specification, kept for names written in source code.
DECLARED_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")

# basic/index, `_meta`: an optional prefix of dot-separated labels and a slash, then a name.
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY: Final = re.compile(
    rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
)
_RESERVED_LABELS: Final = ("modelcontextprotocol", "mcp")


def got(value: Any) -> str:
    """Quote a wrong value, shortened."""
    shown = repr(value)
    return f"got {shown if len(shown) <= MAX_QUOTED else shown[: MAX_QUOTED - 1] + '…'}"


def called(value: Any) -> str:
    """Name a value by its kind, where its `repr` would be an address in memory."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if hasattr(value, "__code__"):
        return f"the function {value.__name__}"
    if " at 0x" in repr(value):
        kind = type(value).__name__
        return f"a {kind}" if kind.islower() else f"an instance of {kind}"
    return got(value).removeprefix("got ")


def _of_one_tool(_: Any) -> Any:
    raise ValueError("a kit has many tools; write it in the @mcp(…) of each")


def read_any(value: Any) -> Any:
    """Take anything; what it is checked by stands elsewhere."""
    return value


def read_text(value: Any) -> str:
    """Take a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be a text that is not empty, {got(value)}")
    return value


def read_declared_name(value: Any) -> str:
    """Take a name that is written in source code; the specification's rule holds for it."""
    if not isinstance(value, str) or not DECLARED_NAME.fullmatch(value):
        raise ValueError(f"must be 1 to 128 characters of A-Z a-z 0-9 _ - and '.', {got(value)}")
    return value


def read_run_time_name(value: Any) -> str:
    """Take a name that a program computed: any printable text, `workflow:Tech News Digest`."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"must be a printable text that is not empty, {got(value)}")
    return value


def read_flag(value: Any) -> bool:
    """Take True or False; no other truth counts."""
    if not isinstance(value, bool):
        raise ValueError(f"must be True or False, {got(value)}")
    return value


def read_category(value: Any) -> str | None:
    """Take a category, or None for none."""
    return None if value is None else read_text(value)


def read_seconds(value: Any) -> float | None:
    """Take a time limit in seconds, or None for no limit."""
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise ValueError(f"must be seconds above 0, or None for no limit, {got(value)}")
    return float(value)


def read_count(value: Any) -> int | None:
    """Take a number of calls, or None for no limit."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"must be a whole number above 0, or None for no limit, {got(value)}")
    return value


def read_task(value: Any) -> str | None:
    """Take whether calls go on as tasks: `optional`, `required`, or None for never."""
    if value not in (None, "optional", "required"):
        raise ValueError(f"must be 'optional', 'required', or None for never, {got(value)}")
    return None if value is None else str(value)


def read_requires(value: Any) -> RequireScopes | None:
    """Take the scopes that a caller must hold, as `RequireScopes` or by name; None for none."""
    if value is None or isinstance(value, RequireScopes):
        return value
    names = (value,) if isinstance(value, str) else value
    # A set has no order, and clients are told the scopes in theirs.
    if not isinstance(names, list | tuple):
        raise ValueError(
            f"must be RequireScopes('read'), the name of a scope or some, {got(value)}"
        )
    return RequireScopes(*names)


def read_annotations(value: Any) -> Annotations | None:
    """Take hints as `Annotations` or as a mapping of its fields, or None."""
    return _read_hints(Annotations, value)


def read_content_annotations(value: Any) -> ContentAnnotations | None:
    """Take hints as `ContentAnnotations` or as a mapping of its fields, or None."""
    hints = _read_hints(ContentAnnotations, value)
    if hints is None:
        return None
    for who in hints.audience:
        if who not in _AUDIENCE:
            raise ValueError(f"audience lists 'user' and 'assistant', {got(who)}")
    if hints.priority is not None and not 0 <= hints.priority <= 1:
        raise ValueError(f"priority is from 0, optional, to 1, required, {got(hints.priority)}")
    return hints


def _read_hints(cls: type[_Hints], value: Any) -> _Hints | None:
    if value is None or isinstance(value, cls):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be {cls.__name__}(…) or a mapping of its fields, {got(value)}")
    fields = [a.name for a in attrs.fields(cls) if a.name != "extra"]
    for key in value:
        if key not in fields:
            raise ValueError(f"unknown annotation {key!r}; {suggest(str(key), fields)}")
    try:
        return cls(**value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def read_icons(value: Any) -> tuple[Icon, ...]:
    """Take a list of icons."""
    icons = tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(icon, Icon) for icon in icons):
        raise ValueError(f"must be a list of Icon(src), {got(value)}")
    for icon in icons:
        # basic/index, Icons: a client must not show one from anywhere else.
        if not icon.src.lower().startswith(("https://", "data:")):
            raise ValueError(f"an icon comes from an https: or data: URI, got {icon.src!r}")
    return icons


def read_meta(value: Any) -> dict[str, Any] | None:
    """Take `_meta`: a mapping with keys that the protocol allows and JSON values, or None."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, {got(value)}")
    for key in value:
        _check_meta_key(key)
    try:
        json_text(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"must be a mapping of JSON values: {error}") from None
    return dict(value)


def _check_meta_key(key: Any) -> None:
    match = _META_KEY.fullmatch(key) if isinstance(key, str) and key else None
    if match is None:
        raise ValueError(f"{key!r} is no key for it; write a word or 'com.example/word'")
    labels = (match["prefix"] or "").split(".")
    if labels[1:2] and labels[1] in _RESERVED_LABELS:
        raise ValueError(f"{key!r} is reserved by the protocol; use a prefix of your own domain")


def suggest(word: str, names: Iterable[str]) -> str:
    """Say what to write instead of an unknown word: the nearest known one, else all of them."""
    known = list(names)
    longer = next((name for name in known if name.startswith(f"{word}_")), None)
    near = nearest(word, known) or longer
    return f"did you mean {near!r}?" if near else f"there are: {', '.join(known)}"


_LOOKS: Final[dict[str, Reader]] = {
    "title": read_text,
    "description": read_text,
    "category": read_category,
    "annotations": read_annotations,
    "icons": read_icons,
    "meta": read_meta,
    "hidden": read_flag,
    "visible": read_flag,
    "timeout": read_seconds,
    "max_concurrency": read_count,
    "requires": read_requires,
}
_SCHEMAS: Final[dict[str, Reader]] = {
    "input": read_any,
    "output": read_any,
    "input_schema": read_any,
    "output_schema": read_any,
}
_CALLS: Final[dict[str, Reader]] = {
    "inline": read_flag,
    "strict": read_flag,
    "task": read_task,
    "starts_task": read_flag,
}

#: What `@mcp(…)` takes.
METHOD_OPTIONS: Final[Table] = {"name": read_declared_name, **_LOOKS, **_CALLS, **_SCHEMAS}
#: What the statement of a `Tool` takes.
TOOL_OPTIONS: Final[Table] = {**METHOD_OPTIONS, "abstract": read_flag}
#: What the statement of a `Toolkit` takes: defaults for its tools.
TOOLKIT_OPTIONS: Final[Table] = {
    **_LOOKS,
    **_CALLS,
    **dict.fromkeys(("name", "title", "description", *_SCHEMAS), _of_one_tool),
    "abstract": read_flag,
}
#: What `tool(target, …)` takes.
REGISTRATION_OPTIONS: Final[Table] = {"name": read_run_time_name, **_LOOKS}


def read_options(
    table: Table, given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Check options against a table.

    Args:
        table: The options that there are.
        given: The options as written.

    Returns:
        The good ones, read; then the bad ones, each with the text of its problem.
    """
    good: dict[str, Any] = {}
    bad: list[tuple[str, str]] = []
    for name, value in given.items():
        if name not in table:
            text = advice(name, table) or suggest(name, table)
            bad.append((name, f"unknown option; {text}"))
            continue
        try:
            good[name] = table[name](value)
        except ValueError as error:
            bad.append((name, str(error)))
    return good, bad


def hidden_by(*rows: Mapping[str, Any]) -> bool:
    """Tell whether options hide a component.

    Args:
        *rows: Options, the later ones before the earlier ones; in a row `hidden` wins over
            `visible`.
    """
    for options in reversed(rows):
        if "hidden" in options:
            return bool(options["hidden"])
        if "visible" in options:
            return not options["visible"]
    return False
