"""Scenarios and reports of the tests that drive our servers with the official clients."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

#: A kind of negotiation (`handshake`, `pin` or `auto`), a version, and the label of a connection.
Mode = dict[str, str]


def mode(kind: str, version: str, *, label: str | None = None) -> Mode:
    """Make a mode of a client; its label is the version if none is given."""
    return {"kind": kind, "version": version, "label": label or version}


def ways(modes: Mapping[str, Sequence[Mode]]) -> list[Any]:
    """Make the parameters of tests: each client with its transport, and each of its modes."""
    return [
        pytest.param((client, transport), each, id=f"{client}-{each['label']}-{transport}")
        for transport in ("stdio", "http")
        for client, listed in modes.items()
        for each in listed
    ]


def call(tool: str, name: str | None = None, **arguments: Any) -> dict[str, Any]:
    """Make the scenario of a call; by default it is reported under the name of the tool."""
    return {"name": name or tool, "kind": "call", "tool": tool, "arguments": arguments}


def look_up(report: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return a function that looks a scenario up in a report; a failed scenario fails there."""

    def look(name: str) -> Any:
        assert "connection" not in report, report["connection"]["failed"]
        value = report[name]
        if isinstance(value, dict):
            assert "failed" not in value, value["failed"]
        return value

    return look


def texts(result: Mapping[str, Any]) -> list[str]:
    """Return the text of a result that has only text and no error."""
    assert not result.get("isError"), result
    return [block["text"] for block in result["content"]]


def failure(result: Mapping[str, Any]) -> list[str]:
    """Return the text of an error result."""
    assert result["isError"] is True, result
    return [block["text"] for block in result["content"]]
