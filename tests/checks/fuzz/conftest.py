"""Servers without a process, as targets of the fuzzer."""

import pytest

from .in_process import InProcess


@pytest.fixture
def in_process(monkeypatch):
    """Make a target of the name of a fault, or of a class of seeded servers."""

    async def link(self, faults):
        found = InProcess(self._target, faults)
        self._nursery.start_soon(found.serve)
        return found

    monkeypatch.setattr("noizu_mcp.check.fuzz._fuzz.read_target", lambda target: target)
    monkeypatch.setattr("noizu_mcp.check.fuzz._fuzzed_server.FuzzedServer._link", link)
