"""The checks: what must hold for every answer, each with a name and a sentence.

A check of one answer is a function of the outcome and the component. Checks that compare several
answers, of two eras or of two lists, are procedures in `_probes`, and are listed here with their
names and sentences.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from ..._util import is_number
from ...jsonrpc import INTERNAL_ERROR
from ...schema import describe
from ._case import Listed, Replies
from ._forms import fault_in_notification, fault_in_result

#: The variable with which a command is started, and its value: no answer may contain it.
CANARY_NAME: Final = "NOIZU_MCP_FUZZ_API_KEY"
CANARY: Final = "noizu-mcp-fuzz-0b8f1f6c"

#: The first lines of exceptions that are never raised on purpose, in several languages.
_CRASH: Final = re.compile(
    r"""
    \ATool\ execution\ failed\Z | \AError\ executing\ tool\ \S+\Z
    | \b(?:list|string|tuple|bytearray)\ (?:assignment\ )?index\ out\ of\ range
    | 'NoneType'\ object | \bobject\ has\ no\ attribute
    | \bobject\ is\ not\ (?:subscriptable|iterable|callable)
    | \bunhashable\ type | \bdivision\ (?:or\ modulo\ )?by\ zero | \bmaximum\ recursion\ depth
    | \binvalid\ literal\ for\ int\(\) | \bcould\ not\ convert\ string\ to\ float
    | codec\ can't\ (?:en|de)code | \bunsupported\ operand\ type
    | \bnot\ supported\ between\ instances
    | \b(?:Key|Index|Type|Attribute|Name|ZeroDivision|Recursion|Assertion|UnboundLocal)Error\b
    | \bCannot\ read\ propert(?:y|ies)\ of\ (?:undefined|null) | \bis\ not\ a\ function\b
    | \bis\ not\ iterable\b | \bMaximum\ call\ stack\ size | \bReferenceError\b
    | \bruntime\ error:\ | \bnil\ pointer\ dereference | \bpanicked\ at\b | \bgoroutine\ \d+\ \[
    | \bNullPointerException\b | \bIndexOutOfBounds | \bClassCastException\b
    | \bNullReferenceException\b | \bIndexOutOfRangeException\b | \bundefined\ method\ [`']
    """,
    re.VERBOSE,
)
_TRACEBACK: Final = re.compile(
    r"""
    Traceback\ \(most\ recent\ call\ last\)
    | ^\s*File\ ".+",\ line\ \d+
    | ^\s+at\ .+(?:\(|\ )\S+:\d+(?::\d+)?\)?$
    | \bgoroutine\ \d+\ \[
    """,
    re.VERBOSE | re.MULTILINE,
)
#: Folders of programs and of people; files that a server uses are elsewhere.
_PATH: Final = re.compile(
    r"(?:/(?:home|Users|root)/|[A-Z]:\\\\?(?:Users|Program Files)\\|/usr/(?:local/)?lib/"
    r"|/(?:site|dist)-packages/|/node_modules/)[^\s'\":,;)]*"
)
_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|\bsk-[A-Za-z0-9_-]{20,}"
)
#: Typical texts of servers for arguments that do not match their schema.
_SCHEMA_REFUSAL: Final = re.compile(
    r"\bvalidation error|\bInvalid arguments? for (?:tool|prompt)|\bis a required property"
    r"|\bis not of type\b|\bis not one of\b|\bInput should be\b|\bdoes not match the schema"
    r"|\"code\":\s*\"(?:invalid_type|too_small|too_big|invalid_value|unrecognized_keys)\"",
    re.IGNORECASE,
)


class FuzzCheck(NamedTuple):
    """One check.

    Attributes:
        sentence: What must hold.
        source: Its source: a page of the specification, or another document.
        judge: Returns the fault of an answer, or None; None for a check of several answers.
    """

    sentence: str
    source: str
    judge: Callable[[Replies, Listed], str | None] | None = None


def _find_crash(outcome: Replies, component: Listed) -> str | None:
    del component
    found = outcome.exchange
    if found.ended:
        return found.failure or "the connection ended"
    if found.status is not None and found.status >= 500:
        return f"HTTP {found.status}"
    text = outcome.error_text
    if found.code == INTERNAL_ERROR or _CRASH.search(text):
        return text or found.seen
    return None


def _find_silence(outcome: Replies, component: Listed) -> str | None:
    del component
    found = outcome.exchange
    # A cancelled request needs no answer; a status that refuses it is an answer.
    if found.replied or found.ended or outcome.step.cancel_after is not None:
        return None
    if outcome.responsive is False:
        return "no answer, and none to the next request"
    # A request that takes long may report progress (basic/lifecycle, Timeouts).
    if any(each.get("progressToken") == outcome.token for each in outcome.progress):
        return None
    return found.failure or "no answer"


def _is_count(fault: str) -> bool:
    return fault.startswith(("a second answer", "an answer to no request"))


def _find_more_answers(outcome: Replies, component: Listed) -> str | None:
    del component
    return next((seen for _, seen in outcome.faults if _is_count(seen)), None)


def _find_malformed(outcome: Replies, component: Listed) -> str | None:
    del component
    for rule, seen in outcome.faults:
        if not _is_count(seen):
            return f"{rule}: {seen}"
    return find_wrong_form(outcome)


def find_wrong_form(outcome: Replies) -> str | None:
    """Describe a result, or a notification, that does not have the form of the revision."""
    result, version = outcome.result, outcome.version
    found = None if result is None else fault_in_result(version, outcome.step.method, result)
    if found is not None:
        return found
    for each in outcome.notifications:
        found = fault_in_notification(version, each)
        if found is not None:
            return f"{each['method']}: {found}"
    return None


def _find_wrong_output(outcome: Replies, component: Listed) -> str | None:
    if outcome.broke_output:
        return outcome.error_text
    schema, result = component.definition.get("outputSchema"), outcome.result
    if component.kind != "tool" or schema is None or result is None or outcome.refused:
        return None
    if result.get("resultType", "complete") != "complete" or "task" in result:
        return None
    if "structuredContent" not in result:
        return "it has no structuredContent"
    judge = component.judge("outputSchema", schema)
    violations = None if judge is None else judge.violations(result["structuredContent"])
    return "; ".join(describe(violations)) if violations else None


def _find_accepted(outcome: Replies, component: Listed) -> str | None:
    if component.kind not in ("tool", "prompt") or outcome.result is None or outcome.refused:
        return None
    value = component.value_of(outcome.step)
    violations = component.violations(value)
    if not violations or component.is_read_as_valid(value):
        return None
    return f"a result, although {'; '.join(describe(violations))}"


def _find_refused(outcome: Replies, component: Listed) -> str | None:
    # The arguments of a prompt may have rules that are not listed.
    if component.kind != "tool" or not outcome.refused or outcome.broke_output:
        return None
    text = outcome.error_text
    value = component.value_of(outcome.step)
    if component.violations(value) != [] or not _SCHEMA_REFUSAL.search(text):
        return None
    return None if component.has_format(value) else text


def _find_wrong_progress(outcome: Replies, component: Listed) -> str | None:
    del component
    last: float | None = None
    for each in outcome.progress:
        token, value = each.get("progressToken"), each.get("progress")
        if token != outcome.token:
            return f"progress with the token {token!r}, of no request that runs"
        if not is_number(value):
            continue  # its form is a separate fault
        if last is not None and value <= last:
            return f"the progress {value} after {last}"
        last = value
    return None


def _find_uninvited_log(outcome: Replies, component: Listed) -> str | None:
    del component
    found = [each for each in outcome.notifications if each["method"] == "notifications/message"]
    return f"the log message {found[0].get('params')}" if found and not outcome.can_log else None


def _find_leak(outcome: Replies, component: Listed) -> str | None:
    text = outcome.error_text
    if CANARY in text:
        return f"an environment variable: {text}"
    if _TRACEBACK.search(text) or _KEY.search(text):
        return text
    sent = f"{outcome.step.params} {component.definition}"
    paths = [each for each in _PATH.findall(text) if each not in sent]
    return f"the path {paths[0]}" if paths else None


#: Every check by its name, in the order of a report.
CHECKS: Final = {
    "crash": FuzzCheck(
        "An answer is a result or a deliberate error, and the server lives on.",
        "JSON-RPC 2.0 section 5.1",
        _find_crash,
    ),
    "silence": FuzzCheck("Every request is answered in time.", "JSON-RPC 2.0", _find_silence),
    "one-answer": FuzzCheck(
        "Every request is answered once.", "JSON-RPC 2.0 section 5", _find_more_answers
    ),
    "message": FuzzCheck(
        "Messages have the form of the specification.", "schema of the revision", _find_malformed
    ),
    "output": FuzzCheck(
        "The structured content of a result fits outputSchema.",
        "server/tools, Output Schema",
        _find_wrong_output,
    ),
    "accepts-invalid": FuzzCheck(
        "Arguments that break the input schema are refused.",
        "server/tools, Security Considerations",
        _find_accepted,
    ),
    "refuses-valid": FuzzCheck(
        "Arguments that fit the input schema pass the check of arguments.",
        "server/tools, Data Types",
        _find_refused,
    ),
    "leak": FuzzCheck(
        "Errors have no traceback, no path of the program and no secret.",
        "server/tools, Security Considerations",
        _find_leak,
    ),
    "progress": FuzzCheck(
        "Progress is that of a request that runs, and grows.",
        "basic/utilities/progress",
        _find_wrong_progress,
    ),
    "log": FuzzCheck(
        "Log messages come where logging is declared; on 2026-07-28 where a request asks for them.",
        "server/utilities/logging",
        _find_uninvited_log,
    ),
    "eras": FuzzCheck("The same call has the same result in each era.", "basic/versioning"),
    "cancel": FuzzCheck(
        "A request that was cancelled ends, and has no result.",
        "basic/utilities/cancellation",
    ),
    "order": FuzzCheck("A list is in the same order each time.", "server/tools, Listing Tools"),
    "cursors": FuzzCheck(
        "The pages of a list end, and a cursor leads to the same page each time.",
        "server/utilities/pagination",
    ),
    "notice": FuzzCheck(
        "A change of a list is announced where listChanged is declared.",
        "server/tools, List Changed Notification",
    ),
    "revisions": FuzzCheck(
        "An older revision that the server agrees to is served by its rules.",
        "basic/lifecycle, Version Negotiation",
    ),
    "protocol": FuzzCheck(
        "Malformed messages are refused or ignored, and the server lives on.",
        "basic, Messages; JSON-RPC 2.0",
    ),
}


def judge(outcome: Replies, component: Listed) -> dict[str, str]:
    """Check one answer by every check of one answer.

    Returns:
        The faults, by the name of the check; a crash hides all others.
    """
    found: dict[str, str] = {}
    for name, check in CHECKS.items():
        seen = None if check.judge is None else check.judge(outcome, component)
        if seen is not None:
            found[name] = seen
    if "crash" in found:
        # A leak says more about the same answer; the other checks would repeat it.
        return {name: seen for name, seen in found.items() if name in ("crash", "leak")}
    return found


def judge_one(name: str, outcome: Replies, component: Listed) -> str | None:
    """Check one answer by one check; None if it holds."""
    return judge(outcome, component).get(name)
