"""Offer of every server of the benchmarks: the same tool under as many names as asked for."""

import sys

NAME = "bench"
DESCRIPTION = "Echo a text a number of times, in a given letter case."
TEXT = "what to echo"


def apply(text: str, repeat: int, mode: str) -> str:
    """Do what the tool does."""
    out = text * repeat
    if mode == "upper":
        return out.upper()
    return out.lower() if mode == "lower" else out


def names(count: int) -> list[str]:
    """Return the names of the tools: `echo`, then `t001`, `t002` and so on."""
    return ["echo", *(f"t{number:03d}" for number in range(1, count))]


def asked() -> int:
    """Return how many tools the command line asks for."""
    return int(sys.argv[1])
