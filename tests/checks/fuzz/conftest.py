"""Servers without a process as targets of the fuzzer."""

import pytest

from .in_process import InProcess


@pytest.fixture
def in_process(monkeypatch):
    """Make the name of a fault, and a class of seeded servers, a target."""

    async def link(self, faults):
        found = InProcess(self._target, faults)
        self._nursery.start_soon(found.serve)
        return found

    monkeypatch.setattr("noizu_mcp.check.fuzz._fuzz.read_target", lambda target: target)
    monkeypatch.setattr("noizu_mcp.check.fuzz._subject.FuzzedServer._link", link)
