"""How the checks of a backend say what is wrong, and the times that they use."""

from typing import Final

#: Seconds of a short TTL, which the checks wait for.
SHORT: Final = 0.05
#: Seconds of a TTL that does not end in a check.
LONG: Final = 60.0


def must(condition: object, text: str) -> None:
    """Raise where the engine breaks the contract."""
    if not condition:
        raise AssertionError(text)


def must_equal(got: object, expected: object, text: str) -> None:
    """Raise where an answer is not the expected one."""
    must(got == expected, f"{text}: expected {expected!r}, got {got!r}")
