"""The options of components: their names, their values, and the kinds that have them.

A reader takes the value that an author wrote and returns the value to keep; it raises `ValueError`
with the text of the problem. A new option is a row of `_ROWS`.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from ... import types
from ..._foreign import advice
from ..._nearest import nearest
from ..._util import called, got, is_number, is_uri, is_whole, json_text, takes
from ..._value import JSONObject
from ...types import Annotations, ContentAnnotations, Icon

if TYPE_CHECKING:
    from ...types import RequireScopes

OptionReader = Callable[[object], Any]
Table = Mapping[str, OptionReader]

_Hints = TypeVar("_Hints", Annotations, ContentAnnotations)

_AUDIENCE: Final = ("user", "assistant")

#: server/tools, Tool Names. A SHOULD of the specification, kept for names written in source code.
DECLARED_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")

# basic/index, `_meta`: an optional prefix of dot-separated labels and a slash, then a name.
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY: Final = (
    rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
)
_RESERVED_LABELS: Final = ("modelcontextprotocol", "mcp")

# The letters of names; the scheme of a URI begins with a letter (RFC 3986, section 3.1).
_PREFIX: Final = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
_RESTRICTED_NAME: Final = r"[A-Za-z0-9!#$&^_.+-]+"
_MIME_TYPE: Final = rf"{_RESTRICTED_NAME}/{_RESTRICTED_NAME}(?:\s*;[ -~]+)?"


def _of_one_tool(_: object) -> object:
    raise ValueError("a kit has many tools; write it in the @mcp(…) of each")


def read_any(value: object) -> object:
    """Read any value; it is checked where it is used."""
    return value


def read_text(value: object) -> str:
    """Read a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be a text that is not empty, {got(value)}")
    return value


def read_declared_name(value: object) -> str:
    """Read a name that is written in source code; the specification's rule holds for it."""
    if not isinstance(value, str) or not DECLARED_NAME.fullmatch(value):
        raise ValueError(f"must be 1 to 128 characters of A-Z a-z 0-9 _ - and '.', {got(value)}")
    return value


def _read_run_time_name(value: object) -> str:
    """Read a name that a program computed: any printable text, `workflow:Tech News Digest`."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"must be a printable text that is not empty, {got(value)}")
    return value


def read_flag(value: object) -> bool:
    """Read True or False; other values that count as true or false are refused."""
    if not isinstance(value, bool):
        raise ValueError(f"must be True or False, {got(value)}")
    return value


def read_seconds(value: object) -> float | None:
    """Read a time limit in seconds, or None for no limit."""
    if value is None:
        return None
    if not is_number(value) or value <= 0:
        raise ValueError(f"must be seconds above 0, or None for no limit, {got(value)}")
    return float(value)


def _whole(wanted: str, least: int = 0, *, optional: bool = True) -> OptionReader:
    """Return the reader of a whole number; where it is optional, None stands for a default."""

    def read(value: object) -> int | None:
        if not is_whole(value, least) and (value is not None or not optional):
            raise ValueError(f"must be a whole number {wanted}, {got(value)}")
        return value

    return read


_read_count: Final = _whole("above 0, or None for no limit", 1)


def read_loop(value: object) -> str:
    """Read the name of a loop."""
    if value not in ("trio", "asyncio"):
        raise ValueError(f"must be 'trio' or 'asyncio', {got(value)}")
    return str(value)


def _read_task(value: object) -> str | None:
    if value not in (None, "optional", "required"):
        raise ValueError(f"must be 'optional', 'required', or None for never, {got(value)}")
    return None if value is None else str(value)


def read_requires(value: object) -> "RequireScopes | None":
    """Read the scopes that a caller must hold, as `RequireScopes` or by name; None for none."""
    if value is None or isinstance(value, types.RequireScopes):
        return value
    names = (value,) if isinstance(value, str) else value
    # A set has no order, and clients receive the scopes in order.
    if not isinstance(names, list | tuple):
        raise ValueError(
            f"must be RequireScopes('read'), the name of a scope or a list of names, {got(value)}"
        )
    return types.RequireScopes(*names)


def _read_available(value: Any) -> Callable[[object], object] | None:
    """Read the function that decides who may list and use a component; None for everybody."""
    if value is None:
        return None
    # Now: a wrong one would fail with the first list, and hide the component.
    fits = takes(value, None) and not isinstance(value, type)
    if fits and not any(map(inspect.iscoroutinefunction, (value, type(value).__call__))):
        function: Callable[[object], object] = value
        return function
    example = "lambda ctx: ctx.auth is not None"
    raise ValueError(f"must be a sync function of the context, like {example}, got {called(value)}")


def _read_content_annotations(value: object) -> ContentAnnotations | None:
    hints = _read_hints(ContentAnnotations, value)
    if hints is None:
        return None
    # schema, Annotations: the roles are user and assistant, the priority is from 0 to 1.
    for who in hints.audience:
        if who not in _AUDIENCE:
            raise ValueError(f"audience lists 'user' and 'assistant', {got(who)}")
    if hints.priority is not None and not 0 <= hints.priority <= 1:
        raise ValueError(f"priority is from 0, optional, to 1, required, {got(hints.priority)}")
    return hints


def _read_hints(cls: type[_Hints], value: object) -> _Hints | None:
    if value is None or isinstance(value, cls):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be {cls.__name__}(…) or a mapping of its fields, {got(value)}")
    # `extra` keeps unknown members that came over the wire; authors do not set it.
    fields = [a.name for a in attrs.fields(cls) if a.name != "extra"]
    for key in value:
        if key not in fields:
            raise ValueError(f"unknown annotation {key!r}; {suggest(str(key), fields)}")
    try:
        return cls(**value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def read_icons(value: object) -> tuple[Icon, ...]:
    """Read a list of icons."""
    # The check below refuses a single value that is not an icon.
    icons = tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(icon, Icon) for icon in icons):
        raise ValueError(f"must be a list of Icon(src), {got(value)}")
    for icon in icons:
        # basic/index, Icons: a client must not show one from anywhere else.
        if not icon.src.lower().startswith(("https://", "data:")):
            raise ValueError(f"an icon comes from an https: or data: URI, got {icon.src!r}")
    return icons


def _read_meta(value: object) -> JSONObject | None:
    """Read `_meta`: a mapping with keys that the protocol allows and JSON values, or None."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, {got(value)}")
    for key in value:
        match = re.fullmatch(_META_KEY, key) if isinstance(key, str) and key else None
        if match is None:
            raise ValueError(f"{key!r} is not a valid key; write a word or 'com.example/word'")
        # The second label counts: `com.mcp.tools/` is reserved, `com.example.mcp/` is not.
        labels = (match["prefix"] or "").split(".")
        if labels[1:2] and labels[1] in _RESERVED_LABELS:
            raise ValueError(
                f"{key!r} is reserved by the protocol; use a prefix of your own domain"
            )
    # Now, not when a client lists the component: `_meta` goes out with every list.
    try:
        json_text(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"must be a mapping of JSON values: {error}") from None
    return dict(value)


def _read_uri(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"must be a text like 'config://app', {got(value)}")
    if "{" in value:
        raise ValueError(f"has a variable in it; make it a ResourceTemplate, {got(value)}")
    if not is_uri(value):
        raise ValueError(
            "must be an absolute URI like 'config://app', other characters percent-encoded"
            f" (RFC 3986), {got(value)}"
        )
    return value


def _read_uri_template(value: object) -> str:
    """Read a template of absolute URIs that tells its variables apart."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"must be a text like 'db://{{table}}/schema', {got(value)}")
    # Most servers have no templates; without this their import would pay for the parser.
    from ...uri import UriTemplate

    template = UriTemplate(value)
    if template.faults:
        raise ValueError("; ".join(template.faults))
    # Without variables it is one resource, and belongs into resources/list.
    if not template.variables:
        raise ValueError(f"has no variable in it; make it a Resource, {got(value)}")
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value):
        raise ValueError(f"must begin with a scheme, like 'db://{{table}}', {got(value)}")
    return value


def _read_mime_type(value: object) -> str:
    # RFC 6838, with parameters.
    if not isinstance(value, str) or not re.fullmatch(_MIME_TYPE, value):
        raise ValueError(f"must be a media type like 'application/json', {got(value)}")
    return value


def read_prefix(value: object) -> str:
    """Read a word that is put before names, and before the schemes of URIs."""
    if not isinstance(value, str) or not re.fullmatch(_PREFIX, value):
        raise ValueError(
            "must be a letter, then letters, digits, '_', '-' and '.', 64 characters at most,"
            f" {got(value)}"
        )
    return value


def add_prefix(prefix: str, option: str, value: str) -> str:
    """Add a prefix before the value of the option that identifies a component.

    Args:
        prefix: The prefix: `eu`, or `eu_`, which means the same.
        option: `name`, `uri` or `uri_template`.
        value: The value.

    Returns:
        `eu_charge` for a name, `eu+db://orders` for a URI.
    """
    if option == "name":
        return f"{prefix}{value}" if prefix[-1] in "_-." else f"{prefix}_{value}"
    # RFC 3986, section 3.1: a scheme has no underscore.
    return f"{prefix.rstrip('_-.').replace('_', '-')}+{value}"


# The places that options are written in: `Tool`, `Toolkit` and so on are class statements, the
# lower-case names are `@mcp(…)` and the functions that register: `tool(…)`; `tool_function` and so
# on have those options that `tool(…)` takes for a function only.
_ONE: Final = "Tool mcp Resource ResourceTemplate Prompt"
_ALL: Final = f"{_ONE} Toolkit tool resource resource_template prompt"
_TOOLS: Final = "Tool mcp Toolkit tool"
_CALLS: Final = "Tool mcp Toolkit tool_function"
_CONTENTS: Final = "Resource ResourceTemplate resource resource_template"

_SCHEMAS: Final = ("input", "output", "input_schema", "output_schema")

# Each option with its reader and with the places that have it.
_ROWS: Final[tuple[tuple[str, OptionReader, str], ...]] = (
    ("uri", _read_uri, "Resource resource"),
    ("uri_template", _read_uri_template, "ResourceTemplate template_function"),
    # A name in source code keeps the rule of the specification; a registration may compute a name,
    # and the name of a resource is for people.
    ("name", read_declared_name, "Tool mcp Prompt"),
    ("name", _read_run_time_name, f"{_CONTENTS} tool prompt"),
    ("title", read_text, _ALL),
    ("description", read_text, _ALL),
    ("prefix", read_prefix, "tool resource resource_template prompt"),
    ("category", lambda value: None if value is None else read_text(value), _TOOLS),
    ("mime_type", _read_mime_type, _CONTENTS),
    ("size", _whole("of bytes", optional=False), "Resource resource"),
    ("annotations", partial(_read_hints, Annotations), _TOOLS),
    ("annotations", _read_content_annotations, _CONTENTS),
    ("icons", read_icons, _ALL),
    ("meta", _read_meta, _ALL),
    ("hidden", read_flag, _ALL),
    ("visible", read_flag, _ALL),
    ("timeout", read_seconds, _ALL),
    ("max_concurrency", _read_count, _TOOLS),
    ("max_queue", _whole("of calls, or None for the limit"), _TOOLS),
    ("max_result_bytes", _read_count, _TOOLS),
    ("coerce", read_flag, _TOOLS),
    ("requires", read_requires, _ALL),
    ("available", _read_available, _ALL),
    ("loop", read_loop, _ALL),
    ("subscribable", read_flag, _CONTENTS),
    ("traversal", read_flag, "ResourceTemplate template_function"),
    ("inline", read_flag, _CALLS),
    ("strict", read_flag, _CALLS),
    ("task", _read_task, _CALLS),
    ("starts_task", read_flag, _CALLS),
    ("restartable", read_flag, _CALLS),
    *((name, read_any, "Tool mcp tool_function") for name in _SCHEMAS),
    ("arguments", read_any, "ResourceTemplate Prompt template_function prompt_function"),
    # Refused with a text of their own: a list of the options of a kit would not help.
    *((name, _of_one_tool, "Toolkit") for name in ("name", "title", "description", *_SCHEMAS)),
    ("abstract", read_flag, "Tool Toolkit Resource ResourceTemplate Prompt"),
)

#: Options that do not become a field of the bound component, or not as they are written.
STATEMENT_ONLY: Final = frozenset(
    {"visible", "inline", "strict", "abstract", "traversal", "arguments", "uri_template", "prefix"}
    | {*_SCHEMAS}
)


def options_of(place: str) -> dict[str, OptionReader]:
    """Return the options of a place: `Tool`, `mcp`, `tool`.

    Returns:
        The reader of each.
    """
    return {name: read for name, read, places in _ROWS if place in places.split()}


def read_options(
    table: Table, given: Mapping[str, object]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Check options against a table.

    Args:
        table: The known options.
        given: The options as written.

    Returns:
        The good ones, read; then the bad ones, each with the text of its problem.
    """
    good: dict[str, object] = {}
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


def suggest(word: str, names: Iterable[str]) -> str:
    """Suggest the nearest known name for an unknown word; without one, list all."""
    known = list(names)
    # A name cut short is too far away for `nearest`: `mime` for `mime_type`.
    longer = next((name for name in known if name.startswith(f"{word}_")), None)
    near = nearest(word, known) or longer
    return f"did you mean {near!r}?" if near else f"there are: {', '.join(known)}"


def is_hidden(*rows: Mapping[str, object]) -> bool:
    """Tell whether options hide a component.

    Args:
        *rows: Options, the later ones before the earlier ones; in a row `hidden` wins over
            `visible`.
    """
    # A registration that says `visible=True` wins over a class that says `hidden=True`.
    for options in reversed(rows):
        if "hidden" in options:
            return bool(options["hidden"])
        if "visible" in options:
            return not options["visible"]
    return False
