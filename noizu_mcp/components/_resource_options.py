"""The options of resources, templates and prompts; what tools have too stands in `_options.py`."""

import re
from typing import Any, Final

from ..uri import UriTemplate
from ._options import (
    Reader,
    Table,
    got,
    read_any,
    read_content_annotations,
    read_declared_name,
    read_flag,
    read_icons,
    read_meta,
    read_requires,
    read_run_time_name,
    read_seconds,
    read_text,
)

# RFC 3986: a scheme, and something behind it made of the characters that a URI may have.
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:"
_URI: Final = rf"{_SCHEME}(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{{2}})+"
_RESTRICTED_NAME: Final = r"[A-Za-z0-9!#$&^_.+-]+"
_MIME_TYPE: Final = rf"{_RESTRICTED_NAME}/{_RESTRICTED_NAME}(?:\s*;[ -~]+)?"


def is_uri(value: Any) -> bool:
    """Tell an absolute URI."""
    return isinstance(value, str) and re.fullmatch(_URI, value) is not None


def read_uri(value: Any) -> str:
    """Take an absolute URI."""
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


def read_uri_template(value: Any) -> str:
    """Take a template of absolute URIs from which its variables can be told."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"must be a text like 'db://{{table}}/schema', {got(value)}")
    template = UriTemplate(value)
    if template.faults:
        raise ValueError("; ".join(template.faults))
    if not template.variables:
        raise ValueError(f"has no variable in it; make it a Resource, {got(value)}")
    if not re.match(_SCHEME, value):
        raise ValueError(f"must begin with a scheme, like 'db://{{table}}', {got(value)}")
    return value


def read_mime_type(value: Any) -> str:
    """Take a media type (RFC 6838)."""
    if not isinstance(value, str) or not re.fullmatch(_MIME_TYPE, value):
        raise ValueError(f"must be a media type like 'application/json', {got(value)}")
    return value


def read_size(value: Any) -> int:
    """Take a number of bytes."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"must be a whole number of bytes, {got(value)}")
    return value


_SHOWN: Final[dict[str, Reader]] = {
    "title": read_text,
    "description": read_text,
    "icons": read_icons,
    "meta": read_meta,
    "hidden": read_flag,
    "visible": read_flag,
    "timeout": read_seconds,
    "requires": read_requires,
}
_CONTENTS: Final[dict[str, Reader]] = {
    "name": read_run_time_name,
    **_SHOWN,
    "mime_type": read_mime_type,
    "annotations": read_content_annotations,
    "subscribable": read_flag,
}

#: What `resource(target, …)` takes.
RESOURCE_OVERRIDES: Final[Table] = {"uri": read_uri, **_CONTENTS, "size": read_size}
#: What `resource_template(target, …)` takes.
TEMPLATE_OVERRIDES: Final[Table] = _CONTENTS
#: What `prompt(target, …)` takes.
PROMPT_OVERRIDES: Final[Table] = {"name": read_run_time_name, **_SHOWN}
#: What the statement of a `Resource` takes.
RESOURCE_OPTIONS: Final[Table] = {**RESOURCE_OVERRIDES, "abstract": read_flag}
#: What the statement of a `ResourceTemplate` takes.
TEMPLATE_OPTIONS: Final[Table] = {
    "uri_template": read_uri_template,
    **_CONTENTS,
    "traversal": read_flag,
    "arguments": read_any,
    "abstract": read_flag,
}
#: What the statement of a `Prompt` takes.
PROMPT_OPTIONS: Final[Table] = {
    **PROMPT_OVERRIDES,
    "name": read_declared_name,
    "arguments": read_any,
    "abstract": read_flag,
}
