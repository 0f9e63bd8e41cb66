"""The options that only resources and templates have; loaded with the first of these classes."""

import re
from typing import Any, Final

from ..._util import got, is_uri
from ...uri import UriTemplate
from ._options import Reader, options_of, read_content_annotations, read_flag

_RESTRICTED_NAME: Final = r"[A-Za-z0-9!#$&^_.+-]+"
_MIME_TYPE: Final = rf"{_RESTRICTED_NAME}/{_RESTRICTED_NAME}(?:\s*;[ -~]+)?"


def _read_uri(value: Any) -> str:
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


def _read_uri_template(value: Any) -> str:
    """Take a template of absolute URIs from which its variables can be told."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"must be a text like 'db://{{table}}/schema', {got(value)}")
    template = UriTemplate(value)
    if template.faults:
        raise ValueError("; ".join(template.faults))
    if not template.variables:
        raise ValueError(f"has no variable in it; make it a Resource, {got(value)}")
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value):
        raise ValueError(f"must begin with a scheme, like 'db://{{table}}', {got(value)}")
    return value


def _read_mime_type(value: Any) -> str:
    # RFC 6838, with parameters.
    if not isinstance(value, str) or not re.fullmatch(_MIME_TYPE, value):
        raise ValueError(f"must be a media type like 'application/json', {got(value)}")
    return value


def _read_size(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"must be a whole number of bytes, {got(value)}")
    return value


_CONTENTS: Final[dict[str, Reader]] = {
    "mime_type": _read_mime_type,
    "annotations": read_content_annotations,
    "subscribable": read_flag,
}
_RESOURCE: Final[dict[str, Reader]] = {**_CONTENTS, "size": _read_size}

RESOURCE_OPTIONS: Final = {"uri": _read_uri, **options_of("Resource"), **_RESOURCE}
TEMPLATE_OPTIONS: Final = {
    "uri_template": _read_uri_template,
    **options_of("ResourceTemplate"),
    **_CONTENTS,
    "traversal": read_flag,
}
RESOURCE_OVERRIDES: Final = {"uri": _read_uri, **options_of("resource"), **_RESOURCE}
TEMPLATE_OVERRIDES: Final = options_of("resource_template") | _CONTENTS
