"""Offers of the servers beside tools: one resource, one prompt, one question, many to watch."""

import sys
from typing import Any

NAME = "bench"
NOTE = "bench://note"
NOTED = "a note of some forty letters, as notes go"
MIME = "text/plain"
TOPIC = "what to write about"
QUESTION = "How many?"
KEY = "count"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 10}},
    "required": ["count"],
}
#: Any string: the server gets it back as it was.
STATE = "asked"


def instruct(topic: str, style: str) -> str:
    """Write the message of the prompt."""
    return f"Write about {topic}, {style}."


def served(text: str, count: int) -> str:
    """Write the answer of the tools that ask."""
    return f"{count} of {text}"


def uris(count: int) -> list[str]:
    """Return the URIs that are watched."""
    return [f"bench://items/{number}" for number in range(count)]


def asked() -> int:
    """Return how many URIs the command line asks for."""
    return int(sys.argv[1])
