"""What a request says beside its own params, in `_meta`."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from ..jsonrpc import Id
from ..types import META_PROGRESS_TOKEN


def is_id(value: Any) -> TypeGuard[Id]:
    """Tell whether a value can be a request id or a progress token: a string or an integer."""
    # Not isinstance: True is an int, and equal to 1.
    return type(value) is str or type(value) is int


def mapping(value: Any) -> dict[str, Any]:
    """Take a JSON object as it is, and anything else as an empty one of its own."""
    return value if type(value) is dict else {}


def meta_of(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Find the `_meta` of a message; one that is no object counts as absent."""
    return mapping(params.get("_meta")) if params else {}


def token_of(meta: Mapping[str, Any]) -> Id | None:
    """Find the progress token; one that is neither string nor integer counts as absent."""
    token = meta.get(META_PROGRESS_TOKEN)
    return token if is_id(token) else None
