"""One run: the stages of `fuzz`, in order.

Theory of operation. A run has stages: the lists, hostile messages, and then rounds until the time
is over or all examples were tried. A round calls each component with new values, twice as many as
the previous round, so that each component gets its share of a short run; then it cancels slow calls
and plays sequences of calls. Answers are checked at once. A suspicion is confirmed and minimised
before the run continues (`_minimise`), and the findings of one check for each component are
limited.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import attrs
import trio

from ..._errors import TransportError
from ..._value import JSON, JSONObject
from ...uri import UriTemplate
from .._offers import LISTS
from ._case import Case, CaseKind, Finding, Listed, Replies, Step, Use
from ._checks import judge
from ._fuzzed_server import FuzzedServer
from ._hostile import HOSTILE, attack
from ._minimise import Suspicion, Used, minimise
from ._pool import SeenValues
from ._probes import (
    discover,
    essence,
    find,
    find_in_beginning,
    is_same,
    names_of,
    read_list,
)
from ._report import Report
from ._revisions import OLDER
from ._values import Drawer, Sent, has_half_pair

#: Valid values for each component in the first round.
FIRST: Final = 4
#: Seconds for the first answer in the second era, in addition to the start time.
PROBE_TIMEOUT: Final = 5.0
#: Minimum seconds of a call that is cancelled, and when it is cancelled.
SLOW: Final = 0.25
CANCEL_AFTER: Final = 0.05
#: Steps of a connection that are stored: one of them may cause a later fault.
REMEMBERED: Final = 500
#: Sequences in each round, and their maximum length.
SEQUENCES: Final = 20
LONGEST: Final = 5
#: The share of the remaining time that one finding may take, and the number of new connections that
#: it may always use.
SHARE: Final = 0.4
STARTS: Final = 12
#: Minimum seconds for the answers of one component.
MIN_SHARE: Final = 1.0
#: Maximum suspicions of one check for one component that are not confirmed.
MAX_MISSES: Final = 3
#: Maximum findings of one check for one component.
MAX_SAME: Final = 3
#: Calls in each older revision.
MAX_OLDER: Final = 20
#: Maximum calls that are tried to find which of them changed a list.
MAX_BLAMED: Final = 12

#: The name of a check, the kind of a component and its name.
FindingKey = tuple[str, CaseKind, str]


class FuzzRun:
    """One run.

    Args:
        server: The server.
        report: Gets the findings.
        budget: Seconds for the run.
        examples: Valid values for each component.
        on_progress: Called with the share of the elapsed time, and the name of the work.
    """

    def __init__(
        self,
        server: FuzzedServer,
        report: Report,
        budget: float,
        examples: int,
        on_progress: Callable[[float, str], None] | None,
    ) -> None:
        self._server = server
        self._report = report
        self._budget = budget
        self._examples = examples
        self._on_progress = on_progress
        self._began = trio.current_time()
        self._eras: list[bool] = []
        # The revision with a handshake, and the result of `initialize`.
        self._beginning: tuple[str, JSONObject] = "", {}
        self._uses: dict[tuple[CaseKind, str], Use] = {}
        # The keywords of findings; only findings of `accepts-invalid` have keywords.
        self._known: dict[FindingKey, set[str | None]] = {}
        self._misses: dict[FindingKey, int] = {}
        self._history: dict[bool, deque[Used]] = {
            era: deque(maxlen=REMEMBERED) for era in (False, True)
        }
        self._values = Drawer(report.seed)
        # The names in the lists when they were last read, and the number of the connection.
        self._names: tuple[int, dict[tuple[str, str], JSON]] | None = None
        # The methods of the notifications since then.
        self._noticed: set[str] = set()
        self._pool = SeenValues()
        # True if half a surrogate pair was not answered with an id: then tool calls are not either.
        self._is_deaf_to_halves = False
        self._chance = random.Random(report.seed)  # noqa: S311 - repeatable, and no secret

    async def start(self) -> None:
        """Connect in both eras. The time of the run begins afterwards.

        Raises:
            TransportError: The server supports neither era.
        """
        began = trio.current_time()
        first = await self._server.connect(stateless=False)
        took = trio.current_time() - began
        wait = min(2 * took, self._budget) + PROBE_TIMEOUT
        second = await self._server.connect(stateless=True, patience=wait)
        found = [each for each in (second, first) if each is not None]
        if not found:
            text = "the server speaks no revision that is known"
            raise TransportError(f"{text}: {self._server.failure}")
        self._eras = [each.talk.stateless for each in found]
        self._beginning = found[-1].talk.version, found[-1].beginning
        info = found[0].info
        facts = self._report.facts
        facts["server"] = f"{info.get('name', '')} {info.get('version', '')}".strip()
        facts["revisions"] = ", ".join(each.talk.version for each in found)
        self._began = trio.current_time()

    def sum_up(self) -> None:
        """Record what the run did."""
        counts: dict[CaseKind, int] = {}
        for kind, _ in self._uses:
            counts[kind] = counts.get(kind, 0) + 1
        counted = [f"{n} {kind}{'s' * (n != 1)}" for kind, n in counts.items()]
        took = trio.current_time() - self._began
        uses = self._uses.values()
        self._report.unreached.extend(each.component.name for each in uses if not each.turns)
        facts = self._report.facts
        facts["components"] = ", ".join(counted) or "none"
        facts["run"] = f"{self._server.calls} requests in {took:.1f} s, seed {self._report.seed}"

    async def work(self, *, destructive: bool) -> None:
        """Run all stages."""
        for era in self._eras:
            found, kinds = await discover(self._server, stateless=era)
            for each in found:
                use = self._uses.setdefault((each.kind, each.name), Use())
                use.listed[era] = each
            wrong = await find_in_beginning(self._server, self._beginning, stateless=era)
            if wrong is not None:
                self._add(wrong)
            await self._check_lists(era, kinds)
        self._choose(destructive=destructive)
        for era in self._eras:
            await self._attack(era)
        drawn, count = 0, FIRST
        while drawn < self._examples:
            count = min(count, self._examples - drawn)
            # Completions first: they are known values for arguments.
            for use in sorted(
                self._uses.values(), key=lambda use: use.component.kind != "completion"
            ):
                await self._call(use, count)
            await self._check_cancellation()
            if not drawn and False in self._eras:
                await self._check_revisions()
            await self._play_sequences()
            drawn += count
            count *= 2

    @property
    def _fair_share(self) -> float:
        """Seconds for the answers of one component: a slow one must not take the time of all."""
        return max(MIN_SHARE, self._budget / max(1, len(self._uses)))

    def _tell(self, what: str) -> None:
        if self._on_progress is not None:
            share = (trio.current_time() - self._began) / self._budget
            self._on_progress(min(1.0, share), what)

    # Lists and hostile messages

    async def _check_lists(self, era: bool, kinds: set[CaseKind]) -> None:
        for which in LISTS:
            if which.kind not in kinds:
                continue
            self._tell(which.method)
            component = Listed("list", which.method, {}, {})
            case = Case(era, (Step(which.method),))
            pages = await read_list(self._server, which, stateless=era)
            if pages.malformed is not None:
                page, fault = pages.malformed
                self._add(Finding("message", "list", which.method, Case(era, (page,)), fault))
            checks = ["cursors", "order"]
            if len(self._eras) > 1 and era == self._eras[-1]:
                checks.append("eras")
            for check in checks:
                seen = await find(self._server, check, component, case)
                if seen is not None:
                    self._add(Finding(check, "list", which.method, case, seen))
                    break  # pages that differ between calls are also in another order

    async def _attack(self, era: bool) -> None:
        connection = await self._server.connect(stateless=era)
        capabilities = {} if connection is None else connection.capabilities
        before: list[str] = []
        for hostile in HOSTILE:
            if hostile.handshake_only and era:
                continue
            if hostile.capability and hostile.capability not in capabilities:
                continue
            if ("protocol", "message", hostile.name) in self._known:
                continue  # found in the other era
            self._tell(hostile.name)
            seen, outcome = await attack(self._server, hostile.name, stateless=era)
            answer = outcome.exchange.answer or {}
            if hostile.reaction == "rejection" and answer.get("id") is None:
                self._is_deaf_to_halves = True
            # Again on a new connection: the previous message may be the cause.
            for name in [hostile.name, *before] if seen is not None else []:
                await self._server.renew(stateless=era)
                case = Case(era, (Step(name),))
                component = Listed("message", name, {}, {})
                again = await find(self._server, "protocol", component, case)
                if again is not None:
                    self._add(Finding("protocol", "message", name, case, again))
                    break
            before = [hostile.name]

    def _add(self, finding: Finding) -> None:
        """Add a finding, unless the other era has the same."""
        key = (finding.check, finding.kind, finding.name)
        if key not in self._known:
            self._known[key] = {None}
            self._report.findings.append(finding)

    # Calls

    def _choose(self, *, destructive: bool) -> None:
        for key, use in list(self._uses.items()):
            component = use.component
            if component.kind != "tool":
                continue
            if any(each.is_destructive for each in use.listed.values()) and not destructive:
                self._report.skipped.append(component.name)
                del self._uses[key]
            elif not component.is_annotated:
                self._report.unannotated.append(component.name)

    async def _call(self, use: Use, count: int) -> None:
        """Call a component with new values of a round."""
        component = use.component
        self._tell(f"{component.kind} {component.name}")
        values = list(self._draw(component, count, use.turns))
        if self._is_deaf_to_halves:
            values = [each for each in values if not has_half_pair(each.value)]
        if not values and not use.turns and component.kind == "tool":
            self._report.unusable.append(component.name)
        use.turns += 1
        use.valid = [each.value for each in values if each.keyword is None]
        steps: list[Step] = []
        eras = list(use.listed)
        for index, value in enumerate(values):
            if use.is_hopeless:
                return
            if use.seconds > self._fair_share:
                self._report.slow[component.name] = None
                break
            text = repr(value)
            if text in use.sent:
                continue
            use.sent.add(text)
            era = eras[index % len(eras)]
            step = component.step(value.value)
            outcome = await self._take(use, step, era, value.keyword)
            if value.keyword is None:
                if not outcome.refused:
                    steps.append(step)
                    use.right = use.right or step
                await self._compare(use, outcome, era)
        if component.kind == "tool" and steps:
            await self._check_notice(use, steps[:MAX_BLAMED])

    def _draw(self, component: Listed, count: int, turn: int) -> Iterator[Sent]:
        fill = partial(self._pool.fill, component, chance=self._chance)
        if component.kind == "resource":
            yield Sent(component.name)
        elif component.kind == "template":
            for each in self._values.draw(component, count, turn, fill):
                # The template may be malformed; half a surrogate pair is not possible in a URI.
                with suppress(ValueError, TypeError):
                    yield Sent(UriTemplate(component.name).expand(each.value))
        else:
            yield from self._values.draw(component, count, turn, fill)

    async def _take(self, use: Use, step: Step, era: bool, keyword: str | None = None) -> Replies:
        """Run a step, check the answer, and investigate every suspicion."""
        component = use.listed[era]
        history = self._history[era]
        history.append((component, step))
        outcome = await self._server.ask(step, stateless=era)
        steps = list(history)
        if outcome.exchange.ended or outcome.responsive is False:
            history.clear()
            use.deaths += 1
        if outcome.exchange.answer is not None and outcome.exchange.seconds > SLOW:
            use.slow, use.is_slow = use.slow or step, True
        use.seconds += outcome.exchange.seconds
        self._noticed.update(outcome.notices)
        self._pool.learn(component, outcome)
        for check, seen in judge(outcome, component).items():
            await self._suspect(use, Suspicion(check, era, steps, seen, keyword))
        return outcome

    async def _suspect(self, use: Use, suspicion: Suspicion) -> None:
        key = (suspicion.check, use.component.kind, use.component.name)
        keywords = self._known.setdefault(key, set())
        # Only wrong acceptance has different causes in one tool, one for each keyword.
        keyword = suspicion.keyword if suspicion.check == "accepts-invalid" else None
        if keyword in keywords or len(keywords) >= MAX_SAME:
            return
        keywords.add(keyword)
        self._tell(f"{suspicion.check} of {use.component.name}")
        findings = self._report.findings
        place = len(findings)

        def tell(finding: Finding) -> None:
            findings[place:] = [finding]

        left = self._began + self._budget - trio.current_time()
        least = max(3 * self._server.timeout, STARTS * self._server.start)
        with trio.move_on_after(max(least, SHARE * left)):
            await minimise(self._server, suspicion, tell)
        is_steady = bool(findings[place:]) and findings[-1].steady
        if any(each.is_same(findings[-1]) for each in findings[:place]):
            # The message came so late that another component was suspected.
            del findings[place:]
        if suspicion.check == "silence" and is_steady:
            use.silent = True
        if not is_steady:
            # Another call may reproduce it better.
            self._misses[key] = self._misses.get(key, 0) + 1
            if self._misses[key] < MAX_MISSES:
                keywords.discard(keyword)
                del findings[place:]
        searched = self._eras if suspicion.check == "eras" else [suspicion.stateless]
        for era, history in ((each, self._history[each]) for each in searched):
            # The steps of the search are in no history.
            await self._server.renew(stateless=era)
            history.clear()

    async def _compare(self, use: Use, outcome: Replies, era: bool) -> None:
        """Repeat the step of an outcome in the other era, and compare the results."""
        if len(use.listed) < 2 or use.is_hopeless or use.varies:
            return
        other = await self._take(use, outcome.step, not era)
        if not is_same(outcome, other):
            again = await self._take(use, outcome.step, era)
            if essence(again) != essence(outcome):
                # For example a time or a counter: every comparison would need new connections.
                use.varies = True
                return
            steps = [(use.listed[era], outcome.step)]
            await self._suspect(use, Suspicion("eras", era, steps, "different results"))

    async def _check_notice(self, use: Use, steps: Iterable[Step]) -> None:
        """Check whether calls of a component changed a list, and find the call that did.

        Args:
            use: The component.
            steps: The calls that succeeded since the last check.
        """
        # The notifications of 2026-07-28, and of HTTP, arrive on another stream.
        if False not in use.listed or not self._server.is_stream:
            return
        names = await names_of(self._server)
        before, self._names = self._names, (self._server.restarts, names)
        noticed, self._noticed = self._noticed, set()
        if before is None or before[0] != self._names[0]:
            return
        changed = {key[0] for key, known in names.items() if before[1].get(key) != known}
        if changed <= noticed:
            return
        for step in steps:
            case = Case(False, (step,))
            seen = await find(self._server, "notice", use.listed[False], case)
            if seen is not None:
                steps_of_it = [(use.listed[False], step)]
                await self._suspect(use, Suspicion("notice", False, steps_of_it, seen))
                break
        self._names = None

    # Calls that depend on others, or end early

    async def _check_cancellation(self) -> None:
        for use in self._uses.values():
            step = use.slow
            if step is None or use.is_hopeless:
                continue
            use.slow = None
            self._tell(f"cancellation of {use.component.name}")
            for era, component in use.listed.items():
                cancelled = attrs.evolve(step, cancel_after=CANCEL_AFTER)
                case = Case(era, (cancelled,))
                seen = await find(self._server, "cancel", component, case)
                if seen is not None:
                    steps = [(component, cancelled)]
                    await self._suspect(use, Suspicion("cancel", era, steps, seen))
                    break

    async def _check_revisions(self) -> None:
        """Run a step of each component without a finding in each older revision."""
        faulty = {(each.kind, each.name) for each in self._report.findings}
        steps = [
            use.right
            for key, use in self._uses.items()
            if use.right is not None
            and False in use.listed
            and not use.is_slow
            and key not in faulty
        ][:MAX_OLDER]
        lists = [
            Step(each.method)
            for each in LISTS
            if ("list", each.method) not in faulty and any(k == each.kind for k, _ in self._uses)
        ]
        for version in OLDER:
            self._tell(f"revision {version}")
            component = Listed("revision", version, {}, {})
            whole = Case(False, (*lists, *steps))
            seen = await find(self._server, "revisions", component, whole)
            # The session without a step, each step alone, and all of them.
            parts = [Case(False, some) for some in ((), *((each,) for each in whole.steps))]
            for case in [*parts, whole] if seen is not None else []:
                seen = await find(self._server, "revisions", component, case)
                if seen is not None:
                    self._add(Finding("revisions", "revision", version, case, seen))
                    break
        self._history[False].clear()

    async def _play_sequences(self) -> None:
        self._tell("sequences of calls")
        for _ in range(SEQUENCES):
            era = self._chance.choice(self._eras)
            uses = [
                use
                for use in self._uses.values()
                if use.component.kind == "tool"
                and era in use.listed
                and use.valid
                and not (use.is_slow or use.is_hopeless)
            ]
            if len(uses) < 2:
                return
            for _ in range(self._chance.randint(2, LONGEST)):
                use = self._chance.choice(uses)
                value = self._chance.choice(use.valid)
                component = use.listed[era]
                filled = self._pool.fill(component, value, self._chance)
                await self._take(use, component.step(filled), era)
