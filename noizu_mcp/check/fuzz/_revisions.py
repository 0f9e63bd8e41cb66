"""The check of older revisions: a server must follow the rules of each one that it accepts."""

from typing import Final

from ...protocol import HANDSHAKE_VERSIONS, REVISIONS
from ._case import Case, Listed
from ._checks import judge
from ._forms import fault_in_result
from ._fuzzed_server import FuzzedServer

#: The revisions before the latest one with a handshake.
OLDER: Final = HANDSHAKE_VERSIONS[1:]


async def find_in_revision(
    server: FuzzedServer, component: Listed, case: Case, patience: float | None
) -> str | None:
    """Begin a session of an older revision, and run the steps of a case in it.

    Args:
        server: The server.
        component: Its name is the revision.
        case: The steps.
        patience: Seconds for one answer.

    Returns:
        The fault, or None; None also if the server offers another revision instead.
    """
    await server.renew(stateless=False)
    server.version = component.name
    try:
        found = await server.connect(stateless=False)
        if found is None:
            return f"no session: {server.failure}"
        if found.talk.version != component.name:
            known = found.talk.version in REVISIONS
            return None if known else f"the revision {found.talk.version!r}"
        wrong = fault_in_result(component.name, "initialize", found.beginning)
        if wrong is not None:
            return f"initialize: {wrong}"
        if REVISIONS[component.name].batches:
            pings = [
                {"jsonrpc": "2.0", "id": found.talk.new_id(), "method": "ping"} for _ in range(2)
            ]
            both = await found.talk.send(pings, None, server.timeout)
            if both.result is None:
                return f"two requests in a list: {both.seen}"
        for step in case.steps:
            outcome = await server.ask(step, stateless=False, patience=patience, settle=True)
            for check, seen in judge(outcome, component).items():
                return f"{step.method}: {check}: {seen}"
    finally:
        server.version = None
        await server.renew(stateless=False)
    return None
