"""The base of what a class statement settles: values that are made once, by name.

attrs would generate a constructor for each, half a millisecond of the import of every program.
"""

from typing import Any


class Frozen:
    """A value whose fields are the annotations of its class; compared by identity."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be taken away")
