"""`fuzz`: calls everything that a server offers, and reports what breaks.

Theory of operation. A run has stages: the lists, hostile messages, and then rounds until the time
is over or all examples were tried. A round calls each component with new values, twice as many as
the round before, so that each component gets its share of a short run; then it looks for lists that
changed without a notice, cancels a slow call, and plays sequences of calls. Answers are judged at
once; a suspicion is confirmed and made small before the run goes on, and each component has at most
one finding for each check and keyword.
"""

import os
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import attrs
import trio

from ..._errors import TransportError
from ..._value import JSON
from ...engine import single_failure
from ...transports import Http, Stdio
from ...uri import UriTemplate
from ._case import Case, Component, Finding, Kind, Outcome, Step
from ._checks import CHECKS, judge
from ._hostile import HOSTILE, attack
from ._minimise import Suspicion, Used, minimise
from ._pool import Pool
from ._probes import LISTS, discover, essence, find, names_of, read_list, variables_of
from ._report import Report
from ._subject import Subject
from ._values import Value, Values

#: Seconds for a whole run, and for one answer.
BUDGET: Final = 30.0
TIMEOUT: Final = 5.0
#: Valid values that each component is called with in the end.
EXAMPLES: Final = 100
#: Those of the first round.
FIRST: Final = 4
#: Seconds for the first answer in the second era, besides those that the server took to start.
PROBE_TIMEOUT: Final = 5.0
#: Seconds from which on a call is slow enough to be cancelled, and when it is.
SLOW: Final = 0.25
CANCEL_AFTER: Final = 0.05
#: Steps of a connection that are remembered: one of them may be the cause of a later fault.
REMEMBERED: Final = 500
#: Sequences in each round, and their longest.
SEQUENCES: Final = 20
LONGEST: Final = 5
#: The share of the time that is left which one finding may take.
SHARE: Final = 0.4
#: Deaths of a server by one component, after which it is left alone.
MAX_DEATHS: Final = 3
#: Suspicions of one check for one component that come to nothing.
MAX_MISSES: Final = 3
#: Findings of one check for one component.
MAX_SAME: Final = 3
#: Valid arguments of one tool for sequences.
MAX_VALID: Final = 50
#: Calls that are tried to find the one that changed a list.
MAX_BLAMED: Final = 12

Target = str | Stdio | Http


def program_of(target: Target) -> Stdio | Http:
    """Return the command or the URL of a server.

    Args:
        target: `module:Server`, `path/to/file.py:Server`, a URL, or a command. A server in Python
            is started as a process, which may crash or hang.
    """
    if not isinstance(target, str):
        return target
    if "://" in target:
        return Http(target)
    words = (sys.executable, "-m", __name__.partition(".")[0], "run", target)
    return Stdio(*words, env=dict(os.environ))


async def fuzz(
    target: Target,
    *,
    seed: int = 0,
    budget: float = BUDGET,
    timeout: float = TIMEOUT,
    examples: int = EXAMPLES,
    destructive: bool = False,
    on_progress: Callable[[float, str], None] | None = None,
) -> Report:
    """Call everything that a server offers, and report what breaks.

    Args:
        target: The server; see `program_of`.
        seed: The seed of all values; the same seed makes the same calls.
        budget: Seconds for the whole run.
        timeout: Seconds for one answer.
        examples: Valid values for each component; there are about as many wrong ones.
        destructive: True to call tools whose annotations say that they may destroy something.
        on_progress: Called with the share of the time that is over, and the name of the work.

    Raises:
        TransportError: The server cannot be started, or answers in neither era.
    """
    report = Report(target, seed)
    with single_failure():
        async with trio.open_nursery() as nursery:
            subject = Subject(program_of(target), timeout, nursery)
            run = _Run(subject, report, budget, examples, on_progress)
            try:
                await run.start()
                with trio.move_on_after(budget):
                    await run.work(destructive=destructive)
                    report.is_complete = True
            finally:
                run.sum_up()
                await subject.aclose()
    return report


class _Run:
    """One run; see the module.

    Args:
        subject: The server.
        report: Gets the findings.
        budget: See `fuzz`.
        examples: See `fuzz`.
        on_progress: See `fuzz`.
    """

    def __init__(
        self,
        subject: Subject,
        report: Report,
        budget: float,
        examples: int,
        on_progress: Callable[[float, str], None] | None,
    ) -> None:
        self._subject = subject
        self._report = report
        self._budget = budget
        self._examples = examples
        self._on_progress = on_progress
        self._began = trio.current_time()
        self._eras: list[bool] = []
        # By kind and name, with the eras that list the component.
        self._components: dict[tuple[Kind, str], Component] = {}
        self._listed: dict[tuple[Kind, str], list[bool]] = {}
        self._known: dict[tuple[str, Kind, str], set[str | None]] = {}
        self._misses: dict[tuple[str, Kind, str], int] = {}
        self._deaths: dict[tuple[Kind, str], int] = {}
        self._sent: dict[tuple[Kind, str], set[str]] = {}
        self._slow: dict[tuple[Kind, str], Step] = {}
        self._history: dict[bool, deque[Used]] = {
            era: deque(maxlen=REMEMBERED) for era in (False, True)
        }
        self._values = Values(report.seed)
        self._turns: dict[tuple[Kind, str], int] = {}
        # Templates as components whose arguments are their variables.
        self._variables: dict[str, Component] = {}
        # Arguments for sequences, and the names in the lists when they were last read.
        self._valid: dict[tuple[Kind, str], list[JSON]] = {}
        self._names: tuple[int, Any] | None = None
        self._pool = Pool()
        self._chance = random.Random(report.seed)  # noqa: S311 - repeatable, and no secret

    async def start(self) -> None:
        """Connect in both eras; the time of the run begins afterwards.

        Raises:
            TransportError: The server answers in neither era.
        """
        began = trio.current_time()
        first = await self._subject.connect(stateless=False)
        took = trio.current_time() - began
        wait = min(2 * took, self._budget) + PROBE_TIMEOUT
        second = await self._subject.connect(stateless=True, patience=wait)
        found = [each for each in (second, first) if each is not None]
        if not found:
            raise TransportError("the server answers neither initialize nor server/discover")
        self._eras = [each.talk.stateless for each in found]
        info = found[0].info
        facts = self._report.facts
        facts["server"] = f"{info.get('name', '')} {info.get('version', '')}".strip()
        facts["revisions"] = ", ".join(each.talk.version for each in found)
        self._began = trio.current_time()

    def sum_up(self) -> None:
        """Note what the run did."""
        counts: dict[Kind, int] = {}
        for kind, _ in self._components:
            counts[kind] = counts.get(kind, 0) + 1
        facts = self._report.facts
        facts["components"] = (
            ", ".join(f"{n} {kind}{'s' * (n != 1)}" for kind, n in counts.items()) or "none"
        )
        took = trio.current_time() - self._began
        facts["run"] = f"{self._subject.calls} requests in {took:.1f} s, seed {self._report.seed}"

    async def work(self, *, destructive: bool) -> None:
        """Take all stages."""
        for era in self._eras:
            found, kinds = await discover(self._subject, stateless=era)
            for each in found:
                self._components.setdefault((each.kind, each.name), each)
                self._listed.setdefault((each.kind, each.name), []).append(era)
            await self._check_lists(era, kinds)
        self._choose(destructive=destructive)
        for era in self._eras:
            await self._attack(era)
        drawn, count = 0, FIRST
        while drawn < self._examples:
            count = min(count, self._examples - drawn)
            for component in list(self._components.values()):
                await self._call(component, count)
            await self._check_cancellation()
            await self._play_sequences()
            drawn += count
            count *= 2

    def _tell(self, what: str) -> None:
        if self._on_progress is not None:
            share = (trio.current_time() - self._began) / self._budget
            self._on_progress(min(1.0, share), what)

    async def _check_lists(self, era: bool, kinds: set[Kind]) -> None:
        for which in LISTS:
            if which.kind not in kinds:
                continue
            self._tell(which.method)
            component = Component("list", which.method, {}, {})
            case = Case(era, (Step(which.method),))
            pages = await read_list(self._subject, which, stateless=era)
            if pages.malformed is not None:
                self._add(Finding("message", "list", which.method, case, pages.malformed))
            for check in ("cursors", "order"):
                seen = await find(self._subject, check, component, case)
                if seen is not None:
                    self._add(Finding(check, "list", which.method, case, seen))
                    break  # pages that differ from call to call are also in another order
            else:
                if len(self._eras) == 2 and era == self._eras[-1]:
                    seen = await find(self._subject, "eras", component, case)
                    if seen is not None:
                        self._add(Finding("eras", "list", which.method, case, seen))

    def _choose(self, *, destructive: bool) -> None:
        for key, component in list(self._components.items()):
            if component.kind != "tool":
                continue
            if component.is_destructive and not destructive:
                self._report.skipped.append(component.name)
                del self._components[key]
            elif not component.is_annotated:
                self._report.unannotated.append(component.name)

    async def _attack(self, era: bool) -> None:
        connection = await self._subject.connect(stateless=era)
        capabilities = {} if connection is None else connection.capabilities
        before = ""
        for hostile in HOSTILE:
            if (hostile.handshake_only and era) or (
                hostile.capability and hostile.capability not in capabilities
            ):
                continue
            self._tell(hostile.name)
            seen, _ = await attack(self._subject, hostile.name, stateless=era)
            # Again on a new connection: the message before may be to blame.
            for name in (hostile.name, before) if seen is not None else ():
                await self._subject.renew(stateless=era)
                case = Case(era, (Step(name),))
                component = Component("message", name, {}, {})
                again = await find(self._subject, "protocol", component, case) if name else None
                if again is not None:
                    self._add(Finding("protocol", "message", name, case, again))
                    break
            before = hostile.name

    def _add(self, finding: Finding) -> None:
        """Add a finding; one of the other era is the same."""
        key = (finding.check, finding.kind, finding.name)
        if key not in self._known:
            self._known[key] = {None}
            self._report.findings.append(finding)

    async def _call(self, component: Component, count: int) -> None:
        """Call a component with the values of a round that it did not have yet."""
        key = (component.kind, component.name)
        self._tell(f"{component.kind} {component.name}")
        values = self._draw(component, count)
        if not values and component.kind == "tool" and component.name not in self._report.unusable:
            self._report.unusable.append(component.name)
        sent = self._sent.setdefault(key, set())
        self._valid[key] = [each.value for each in values if each.keyword is None][:MAX_VALID]
        eras, steps = self._listed[key], list[Step]()
        for index, value in enumerate(values):
            if self._is_hopeless(key):
                return
            text = repr(value)
            if text in sent:
                continue
            sent.add(text)
            era = eras[index % len(eras)]
            step = component.step(value.value)
            outcome = await self._take(component, step, era, value.keyword)
            if False in eras and value.keyword is None and not outcome.refused:
                steps.append(step)
            if len(eras) == 2 and value.keyword is None and not self._is_hopeless(key):
                await self._compare(component, outcome, era)
        if component.kind == "tool" and steps:
            await self._check_notice(component, steps[:MAX_BLAMED])

    def _is_hopeless(self, key: tuple[Kind, str]) -> bool:
        """Tell whether more calls would only cost time: each hangs, or kills the server."""
        is_silent = self._known.get(("silence", *key))
        return bool(is_silent) or self._deaths.get(key, 0) >= MAX_DEATHS

    def _draw(self, component: Component, count: int) -> list[Value]:
        key = (component.kind, component.name)
        turn = self._turns[key] = self._turns.get(key, -1) + 1
        if component.kind == "resource":
            return [Value(component.name)]
        if component.kind != "template":
            return self._values.draw(component, count, turn)
        names = variables_of(component)
        schema = {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": names,
        }
        variables = self._variables.setdefault(
            component.name, Component("template", component.name, component.definition, schema)
        )
        found = []
        for each in self._values.draw(variables, count, turn):
            if isinstance(each.value, dict):
                with suppress(ValueError):  # half a surrogate pair has no place in a URI
                    found.append(Value(UriTemplate(component.name).expand(each.value)))
        return found

    async def _take(
        self, component: Component, step: Step, era: bool, keyword: str | None = None
    ) -> Outcome:
        """Take a step, judge the answer, and look into every suspicion."""
        history = self._history[era]
        history.append((component, step))
        outcome = await self._subject.ask(step, stateless=era)
        steps = list(history)
        key = (component.kind, component.name)
        if outcome.exchange.ended or outcome.responsive is False:
            history.clear()
            self._deaths[key] = self._deaths.get(key, 0) + 1
        if outcome.exchange.answer is not None and outcome.exchange.seconds > SLOW:
            self._slow.setdefault(key, step)
        self._pool.learn(component, outcome)
        for check, seen in judge(outcome, component).items():
            await self._suspect(Suspicion(check, era, steps, seen, keyword))
        return outcome

    async def _suspect(self, suspicion: Suspicion) -> None:
        component = suspicion.steps[-1][0]
        key = (suspicion.check, component.kind, component.name)
        keywords = self._known.setdefault(key, set())
        # Only acceptance has causes of several kinds in one tool, one for each keyword.
        keyword = suspicion.keyword if suspicion.check == "accepts-invalid" else None
        if keyword in keywords or len(keywords) >= MAX_SAME:
            return
        keywords.add(keyword)
        self._tell(f"{suspicion.check} of {component.name}")
        findings = self._report.findings
        place = len(findings)

        def tell(finding: Finding) -> None:
            findings[place:] = [finding]

        left = self._began + self._budget - trio.current_time()
        with trio.move_on_after(max(2 * self._subject.timeout, SHARE * left)):
            await minimise(self._subject, suspicion, tell)
            if not findings[place:] or not findings[-1].steady:
                self._misses[key] = self._misses.get(key, 0) + 1
                if self._misses[key] < MAX_MISSES:
                    keywords.discard(keyword)
                    del findings[place:]
        for era, history in self._history.items():
            # The steps of the search are in no history.
            await self._subject.renew(stateless=era)
            history.clear()

    async def _compare(self, component: Component, outcome: Outcome, era: bool) -> None:
        if self._known.get(("eras", component.kind, component.name)):
            return
        other = await self._take(component, outcome.step, not era)
        parts = {essence(outcome), essence(other)}
        if len(parts) == 2 and "silence" not in parts:
            steps = [(component, outcome.step)]
            await self._suspect(Suspicion("eras", era, steps, "different results"))

    async def _check_notice(self, component: Component, steps: Iterable[Step]) -> None:
        """Look for a list that changed by calls of a component, and find the call that did it.

        Args:
            component: The component.
            steps: The calls on the connection since the last look.
        """
        # The notifications of 2026-07-28, and of HTTP, come on another stream.
        if False not in self._eras or not self._subject.is_command:
            return
        names = await names_of(self._subject)
        before, self._names = self._names, (self._subject.restarts, names)
        if before is None or before == self._names or before[0] != self._names[0]:
            return
        for step in steps:
            case = Case(False, (step,))
            seen = await find(self._subject, "notice", component, case)
            if seen is not None:
                await self._suspect(Suspicion("notice", False, [(component, step)], seen))
                break
        self._names = None

    async def _check_cancellation(self) -> None:
        for key, step in list(self._slow.items()):
            component = self._components[key]
            if self._is_hopeless(key) or self._known.get(("cancel", *key)):
                continue
            self._tell(f"cancellation of {component.name}")
            for era in self._listed[key]:
                cancelled = attrs.evolve(step, cancel_after=CANCEL_AFTER)
                case = Case(era, (cancelled,))
                seen = await find(self._subject, "cancel", component, case, self._subject.quick)
                if seen is not None:
                    steps = [(component, cancelled)]
                    await self._suspect(Suspicion("cancel", era, steps, seen))
                    break

    async def _play_sequences(self) -> None:
        tools = [
            each
            for key, each in self._components.items()
            if each.kind == "tool" and not self._is_hopeless(key)
        ]
        if len(tools) < 2:
            return
        self._tell("sequences of calls")
        for _ in range(SEQUENCES):
            era = self._chance.choice(self._eras)
            listed = [each for each in tools if era in self._listed[(each.kind, each.name)]]
            for _ in range(self._chance.randint(2, LONGEST)):
                if not listed:
                    break
                component = self._chance.choice(listed)
                key = (component.kind, component.name)
                valid = self._valid.get(key)
                if not valid or self._is_hopeless(key):
                    continue
                value = self._pool.fill(component, self._chance.choice(valid), self._chance)
                await self._take(component, component.step(value), era)


async def replay(target: Target, finding: Finding | Mapping[str, Any]) -> None:
    """Take the steps of a finding again.

    Args:
        target: The server; see `program_of`.
        finding: The finding, or its JSON.

    Raises:
        AssertionError: The check does not hold: the fault is still there.
        TransportError: The server cannot be started.
        ValueError: It is no finding.
    """
    known = finding if isinstance(finding, Finding) else Finding.from_json(finding)
    seen: str | None = None
    with single_failure():
        async with trio.open_nursery() as nursery:
            subject = Subject(program_of(target), TIMEOUT, nursery)
            try:
                if await subject.connect(stateless=known.case.stateless) is None:
                    raise TransportError("the server does not speak the era of the finding")
                component = await _component_of(subject, known)
                # The lists were read on this connection: the steps need a new one.
                seen = await find(subject, known.check, component, known.case)
            finally:
                await subject.aclose()
    if seen is not None:
        check = CHECKS[known.check]
        raise AssertionError(f"{known.kind} {known.name}: {check.sentence} It shows: {seen}")


async def _component_of(subject: Subject, finding: Finding) -> Component:
    """Find the component of a finding; one that is gone has a schema that allows anything."""
    listed, _ = await discover(subject, stateless=finding.case.stateless)
    same = [each for each in listed if (each.kind, each.name) == (finding.kind, finding.name)]
    return same[0] if same else Component(finding.kind, finding.name, {}, {})
