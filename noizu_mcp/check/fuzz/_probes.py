"""The lists of a server, and the checks that compare several answers."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import attrs

from ..._errors import ProtocolError
from ..._util import json_text, part_of
from ..._value import JSON, JSONObject
from ...client import ListBudget
from ...schema import header_faults, header_paths
from .._offers import LIMITS, LISTS, MAX_PAGES, OfferedList, read_template
from ._case import Case, CaseKind, Finding, Listed, Replies, Step
from ._checks import find_wrong_form, judge_one
from ._forms import fault_in_result
from ._fuzzed_server import FuzzedServer
from ._hostile import attack
from ._revisions import find_in_revision

#: Maximum components of one kind that are tried.
MAX_COMPONENTS: Final = 100
#: Seconds after a cancellation in which a result may already be on its way.
GRACE: Final = 0.1
#: Members of a result that differ between eras.
_ERA_MEMBERS: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope", "isError"})
_NAMES: Final = {False: "with a handshake", True: "2026-07-28"}


class Pages(NamedTuple):
    """A list that was read to its end.

    Attributes:
        items: The definitions, malformed ones left out.
        seen: The fault of the pages, or None.
        malformed: The step to the first page without the form of the specification, and its fault;
            None if there is no such page.
    """

    items: list[JSONObject]
    seen: str | None = None
    malformed: tuple[Step, str] | None = None


async def find_in_beginning(
    server: FuzzedServer, beginning: tuple[str, JSONObject], *, stateless: bool
) -> Finding | None:
    """Check the form of the first result of an era.

    Args:
        server: The server.
        beginning: The revision with a handshake, and the result of `initialize`.
        stateless: The era.

    Returns:
        The finding, or None.
    """
    if stateless:
        step = Step("server/discover")
        seen = find_wrong_form(await server.ask(step, stateless=True))
        finding = Finding("message", "list", step.method, Case(True, (step,)), seen or "")
    else:
        version, result = beginning
        seen = fault_in_result(version, "initialize", result)
        finding = Finding("message", "revision", version, Case(False, ()), seen or "")
    return None if seen is None else finding


async def read_list(server: FuzzedServer, which: OfferedList, *, stateless: bool) -> Pages:
    """Read all pages of a list.

    Each page after the first is read twice: the same cursor leads to the same page.
    """
    items: list[JSONObject] = []
    malformed: tuple[Step, str] | None = None
    cursor: JSON = None
    given: set[str] = set()
    budget = ListBudget(which.method, LIMITS)
    for _ in range(MAX_PAGES):
        step = Step(which.method, {} if cursor is None else {"cursor": cursor})
        found = await server.ask(step, stateless=stateless)
        result = found.result
        page = None if result is None else result.get(which.key)
        if result is None or not isinstance(page, list):
            seen = (
                None if cursor is None else f"the cursor {cursor!r} leads to {found.exchange.seen}"
            )
            return Pages(items, seen, malformed)
        wrong = find_wrong_form(found)
        if wrong is not None and malformed is None:
            malformed = step, wrong
        if cursor is not None:
            again = (await server.ask(step, stateless=stateless)).result or {}
            if again.get(which.key) != page:
                return Pages(items, f"the cursor {cursor!r} leads to another page the second time")
        for item in page:
            with suppress(ProtocolError):
                which.definition.from_wire(item)
                items.append(item)
        cursor = result.get("nextCursor")
        if cursor is None:
            return Pages(items, None, malformed)
        if not isinstance(cursor, str) or cursor in given:
            return Pages(items, f"nextCursor {cursor!r} again, or no text", malformed)
        try:
            budget.take(result, len(page), is_last=False)
        except ProtocolError as error:
            return Pages(items, str(error), malformed)
        given.add(cursor)
    return Pages(items, f"no end after {MAX_PAGES} pages", malformed)


async def discover(server: FuzzedServer, *, stateless: bool) -> tuple[list[Listed], set[CaseKind]]:
    """List the components of a server.

    Returns:
        The components; and the kinds whose list is declared.
    """
    connection = await server.connect(stateless=stateless)
    capabilities = {} if connection is None else connection.capabilities
    found: list[Listed] = []
    kinds: set[CaseKind] = set()
    for which in LISTS:
        if which.capability not in capabilities:
            continue
        pages = await read_list(server, which, stateless=stateless)
        kinds.add(which.kind)
        items = pages.items[:MAX_COMPONENTS]
        found += [_component(which, item) for item in items]
    if "completions" in capabilities:
        found += [each for component in found for each in _completions(component)]
    for each in found:
        if each.kind == "tool" and not list(header_faults(each.schema)):
            server.mirror(each.name, header_paths(each.schema))
    return found, kinds


def _component(which: OfferedList, item: JSONObject) -> Listed:
    name = str(item[which.name])
    schema: JSONObject = {"type": "object"}
    if which.kind == "tool":
        schema = item["inputSchema"]
    elif which.kind == "prompt":
        arguments = [each for each in item.get("arguments") or () if isinstance(each, Mapping)]
        schema |= {
            "properties": {each["name"]: {"type": "string"} for each in arguments},
            "required": [each["name"] for each in arguments if each.get("required") is True],
            "additionalProperties": False,
        }
    elif which.kind == "resource":
        schema = {"const": name}
    else:
        template = read_template(name)
        names = [] if template is None else list(template.variables)
        schema |= {"properties": {each: {"type": "string"} for each in names}, "required": names}
    return Listed(which.kind, name, item, schema)


def _completions(component: Listed) -> list[Listed]:
    """Return what can be completed in a prompt or a template."""
    if component.kind == "prompt":
        ref: JSONObject = {"type": "ref/prompt", "name": component.name}
    elif component.kind == "template":
        ref = {"type": "ref/resource", "uri": component.name}
    else:
        return []
    text = {"type": "string"}
    return [
        Listed(
            "completion",
            f"{component.name} {name}",
            {"ref": ref, "argument": {"name": name}},
            text,
        )
        for name in component.schema["properties"]
    ]


def _list_of(step: Step) -> OfferedList:
    return next(each for each in LISTS if each.method == step.method)


class Attempt(NamedTuple):
    """Steps that a check takes; see `find`."""

    server: FuzzedServer
    component: Listed
    case: Case
    patience: float | None
    anew: bool


Probe = Callable[[Attempt], Awaitable[str | None]]


async def _order(at: Attempt) -> str | None:
    which = _list_of(at.case.steps[-1])
    first = await read_list(at.server, which, stateless=at.case.stateless)
    second = await read_list(at.server, which, stateless=at.case.stateless)
    names = [[item[which.name] for item in each.items] for each in (first, second)]
    return None if names[0] == names[1] else f"{names[0]}, then {names[1]}"


async def _cursors(at: Attempt) -> str | None:
    which = _list_of(at.case.steps[-1])
    return (await read_list(at.server, which, stateless=at.case.stateless)).seen


async def _protocol(at: Attempt) -> str | None:
    return (await attack(at.server, at.component.name, stateless=at.case.stateless))[0]


async def _eras(at: Attempt) -> str | None:
    if at.component.kind == "list":
        return await _lists_of_eras(at.server, at.case)
    # Twice in each era: results that differ between calls cannot be compared.
    seen: list[Replies] = []
    for stateless, again in ((False, False), (False, True), (True, False), (True, True)):
        other = attrs.evolve(at.case, stateless=stateless)
        is_first = len(at.case.steps) > 1 or not again
        outcomes = await at.server.run(other, at.patience, anew=at.anew and is_first, settle=False)
        if len(outcomes) < len(at.case.steps):
            return None
        seen.append(outcomes[-1])
    parts = [essence(each) for each in seen]
    if parts[0] != parts[1] or parts[2] != parts[3] or is_same(seen[0], seen[2]):
        return None
    shown = [f"{_NAMES[i]}: {seen[2 * i].exchange.seen}" for i in (False, True)]
    return "; ".join(shown)


async def _lists_of_eras(server: FuzzedServer, case: Case) -> str | None:
    which = _list_of(case.steps[-1])
    names = []
    for stateless in (False, True):
        pages = await read_list(server, which, stateless=stateless)
        names.append(sorted(str(item[which.name]) for item in pages.items))
    if names[0] == names[1]:
        return None
    return f"{_NAMES[False]}: {names[0]}; {_NAMES[True]}: {names[1]}"


def essence(outcome: Replies) -> JSON:
    """Reduce an answer to the part on which eras must agree."""
    result = outcome.result
    if result is None or outcome.refused:
        # Error codes differ between revisions by design.
        return "refused" if outcome.exchange.replied else "silence"
    return _common_text(result)


def is_same(first: Replies, second: Replies) -> bool:
    """Tell whether the answers of two eras agree. Silence agrees with everything."""
    parts = [essence(first), essence(second)]
    if "silence" in parts or parts[0] == parts[1]:
        return True
    results = [dict(each.result or {}) for each in (first, second)]
    values = [each.pop("structuredContent", None) for each in results]
    if "refused" in parts or all(isinstance(each, dict) for each in values):
        return False
    # Only 2026-07-28 allows a list, a text or a number; a server may wrap it for others.
    return _common_text(results[0]) == _common_text(results[1])


def _common_text(result: JSONObject) -> str:
    return json_text({name: part for name, part in result.items() if name not in _ERA_MEMBERS})


async def _cancel(at: Attempt) -> str | None:
    outcomes = await at.server.run(at.case, at.patience, anew=at.anew)
    if len(outcomes) < len(at.case.steps):
        return None
    last = outcomes[-1]
    if last.exchange.ended or last.responsive is False:
        return "the server answers no more"
    late = last.exchange.seconds - (at.case.steps[-1].cancel_after or 0.0)
    if last.result is None or last.refused or late < GRACE:
        return None
    return f"a result, {late:.1f} s after the cancellation"


async def _notice(at: Attempt) -> str | None:
    # On a new connection in any case: a list that has changed would not change again.
    connection = await at.server.fresh(stateless=False)
    if connection is None:
        return None
    declared = _announced(connection.capabilities)
    before = [await _names(at.server, each) for each in declared]
    notices: set[str] = set()
    for step in at.case.steps:
        outcome = await at.server.ask(step, stateless=False, patience=at.patience, settle=True)
        notices.update(outcome.notices)
        if outcome.exchange.ended:
            return None
    for which, names in zip(declared, before, strict=True):
        after = await _names(at.server, which)
        if after != names and which.notice not in notices:
            return f"{which.method} lists {after} instead of {names}, without {which.notice}"
    return None


async def names_of(server: FuzzedServer) -> dict[tuple[str, str], JSON]:
    """Return the names in all lists whose changes are announced.

    Returns:
        The names, by the notification and the method of the list.
    """
    connection = await server.connect(stateless=False)
    capabilities = {} if connection is None else connection.capabilities
    return {
        (each.notice, each.method): await _names(server, each) for each in _announced(capabilities)
    }


def _announced(capabilities: JSONObject) -> list[OfferedList]:
    return [
        each
        for each in LISTS
        if part_of(capabilities, each.capability, dict).get("listChanged") is True
    ]


async def _names(server: FuzzedServer, which: OfferedList) -> list[JSON]:
    pages = await read_list(server, which, stateless=False)
    return sorted(str(item[which.name]) for item in pages.items)


async def _revisions(at: Attempt) -> str | None:
    return await find_in_revision(at.server, at.component, at.case, at.patience)


PROBES: Final[dict[str, Probe]] = {
    "eras": _eras,
    "cancel": _cancel,
    "order": _order,
    "cursors": _cursors,
    "notice": _notice,
    "protocol": _protocol,
    "revisions": _revisions,
}


#: Checks that need time for messages after the answer to a step.
_SETTLING: Final = frozenset({"one-answer", "silence", "message", "progress", "log"})


async def find(
    server: FuzzedServer,
    check: str,
    component: Listed,
    case: Case,
    patience: float | None = None,
    *,
    anew: bool = True,
) -> str | None:
    """Run the steps of a case, and check the last one.

    Args:
        server: The server.
        check: The name of the check.
        component: The component that the last step uses.
        case: The case.
        patience: Seconds for one answer.
        anew: True for a connection on which nothing was called.

    Returns:
        The fault, or None.
    """
    if component.kind == "revision":
        check = "revisions"
    if check in PROBES:
        return await PROBES[check](Attempt(server, component, case, patience, anew))
    outcomes = await server.run(case, patience, anew=anew, settle=check in _SETTLING)
    if len(outcomes) < len(case.steps):
        return None
    return judge_one(check, outcomes[-1], component)
