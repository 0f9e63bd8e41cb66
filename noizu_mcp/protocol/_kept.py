"""What a peer says once, and is kept for as long as it stays: it must not be large."""

from typing import Any, Final

from ..jsonrpc import holds_more_values, render

#: Bytes of JSON in which a client says who it is and what it can do; real ones have a few hundred.
MAX_CLIENT: Final = 64 * 1024
#: Bytes of JSON of a listen request: a thousand URIs of some length.
MAX_LISTEN: Final = 256 * 1024
#: Values in either, beside the resources and tasks that are watched: they take many times as much
#: as their text.
MAX_KEPT_VALUES: Final = 2000


def is_too_much(value: Any, size: int, values: int = MAX_KEPT_VALUES) -> bool:
    """Tell whether what came in a message is more than may be kept of it.

    Args:
        value: A JSON value.
        size: Bytes that its text may have.
        values: Members and elements that it may have, at any depth.
    """
    text = render(value)
    return len(text) > size or holds_more_values(text, values)
