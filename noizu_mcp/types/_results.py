"""What results have in common: the envelope that 2026-07-28 puts around each of them."""

from collections.abc import Mapping
from typing import Any, Self

from ._common import META_SERVER_INFO
from ._wire import Wire


def without_envelope(result: Any) -> Any:
    """Take out what 2026-07-28 adds to every result: its type, and who answered.

    The session reads both; they are no part of the value.

    Args:
        result: What a peer sent.

    Returns:
        The result without them; the same if it is no object.
    """
    if not isinstance(result, Mapping):
        return result
    bare = {key: value for key, value in result.items() if key != "resultType"}
    meta = bare.get("_meta")
    if isinstance(meta, Mapping) and META_SERVER_INFO in meta:
        bare["_meta"] = {k: v for k, v in meta.items() if k != META_SERVER_INFO} or None
    return bare


class Result(Wire):
    """The base of results; subclasses are the values that they hold."""

    __slots__ = ()

    @classmethod
    def from_wire(cls, value: Any, where: str | None = None) -> Self:
        """Read a result.

        Args:
            value: The decoded JSON value.
            where: What errors call it; `result` by default.

        Returns:
            The value, without the envelope of 2026-07-28.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        return super().from_wire(without_envelope(value), where or "result")
