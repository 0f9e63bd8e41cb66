"""Turns suspicions into findings: confirms them on a new connection, and minimises them.

Theory of operation. A suspicion is a step whose answer fails a check, and the steps before it.
First the step is repeated alone on a new connection, then with more and more of the steps before
it, until the check fails again. Then steps are removed, and the arguments of the rest are made
smaller, as long as the check still fails. A smaller case must stay of its kind: valid arguments
stay valid, and wrong ones break the same keyword.

Single steps are tried on the current connection, which is faster; the result is confirmed on a new
one. Each improvement is reported at once, so that nothing is lost when the time is over.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from ..._value import JSON
from ._case import Case, Finding, Listed, Step
from ._fuzzed_server import FuzzedServer
from ._probes import PROBES, find
from ._shrink import shrink

#: Numbers of preceding steps that are tried with a step.
TAILS: Final = (1, 7, 500)
#: Smaller values that are tried; fewer if each needs a new connection.
ATTEMPTS: Final = 120
ATTEMPTS_ANEW: Final = 30

Used = tuple[Listed, Step]


@attrs.frozen
class Suspicion:
    """A step whose answer fails a check.

    Attributes:
        check: The name of the check.
        stateless: The era.
        steps: The steps on the connection, with their components; the last one is checked.
        seen: What was received.
        keyword: The keyword that wrong arguments break.
    """

    check: str
    stateless: bool
    steps: Sequence[Used]
    seen: str
    keyword: str | None = None


async def minimise(
    server: FuzzedServer, suspicion: Suspicion, tell: Callable[[Finding], None]
) -> None:
    """Confirm a suspicion and minimise it.

    Args:
        server: The server.
        suspicion: The suspicion.
        tell: Called with the finding, and again with each smaller one.
    """
    await _CaseSearch(server, suspicion, tell).run()


class _CaseSearch:
    def __init__(
        self, server: FuzzedServer, suspicion: Suspicion, tell: Callable[[Finding], None]
    ) -> None:
        self._server = server
        self._check = suspicion.check
        self._suspicion = suspicion
        self._tell = tell
        self._patience = server.quick

    async def run(self) -> None:
        steps = await self._confirm()
        if steps is None:
            # A server that is slow only for a moment is no finding.
            if self._check not in PROBES and self._check != "silence":
                last = self._suspicion.steps[-1:]
                self._report(last, self._suspicion.seen, steady=False)
            return
        steps = await self._fewer(steps)
        if len(steps) > 1:
            steps = await self._shared(steps)
        for index in range(len(steps)):
            steps = await self._smaller(steps, index)

    def _report(self, steps: Sequence[Used], seen: str, *, steady: bool = True) -> None:
        component = steps[-1][0]
        case = self._case(steps)
        self._tell(Finding(self._check, component.kind, component.name, case, seen, steady))

    def _case(self, steps: Sequence[Used]) -> Case:
        return Case(self._suspicion.stateless, tuple(step for _, step in steps))

    async def _holds(
        self, steps: Sequence[Used], *, anew: bool = True, is_last: bool = False
    ) -> str | None:
        # The final check of silence waits as long as a call.
        patience = None if is_last else self._patience
        case = self._case(steps)
        return await find(self._server, self._check, steps[-1][0], case, patience, anew=anew)

    async def _confirm(self) -> Sequence[Used] | None:
        """Find the last step, or the last steps, that reproduce the fault."""
        steps = self._suspicion.steps
        tails = [steps[-1:]]
        # A late message may arrive after the next request: the step before may be the cause.
        if self._check in ("one-answer", "message", "progress", "log") and len(steps) > 1:
            tails.append(steps[-2:-1])
        # Steps with a common value are the most likely causes.
        own = _leaves_of(steps[-1])
        related = [each for each in steps[:-1] if own & _leaves_of(each)]
        tails += [[*related, steps[-1]]] if related else []
        lengths = {min(length, len(steps) - 1) for length in TAILS}
        tails += [steps[-1 - length :] for length in sorted(lengths) if length]
        for tail in tails:
            # Silence has lasted for the whole time once, and is checked again at the end.
            seen = await self._holds(tail, is_last=self._check != "silence")
            if seen is not None:
                self._report(tail, seen)
                return tail
        return None

    async def _fewer(self, steps: Sequence[Used]) -> Sequence[Used]:
        """Remove steps before the last one: half of them, a quarter, and so on."""
        size = len(steps) // 2
        while size:
            index = 0
            while index < len(steps) - 1:
                end = min(index + size, len(steps) - 1)
                fewer = [*steps[:index], *steps[end:]]
                seen = await self._holds(fewer)
                if seen is None:
                    index = end
                    continue
                steps = fewer
                self._report(steps, seen)
            size //= 2
        return steps

    async def _shared(self, steps: Sequence[Used]) -> Sequence[Used]:
        """Shrink the values that several steps have in common, in all of them at once."""
        leaves = [_leaves_of(each) for each in steps]
        texts = set[str]().union(*leaves)
        for text in sorted(text for text in texts if sum(text in each for each in leaves) > 1):
            steps = await self._swap(steps, json.loads(text))
        return steps

    async def _swap(self, steps: Sequence[Used], old: JSON) -> Sequence[Used]:
        def changed(new: JSON) -> Sequence[Used]:
            return [_replace(each, old, new) for each in steps]

        async def holds(new: JSON) -> bool:
            other = changed(new)
            seen = await self._holds(other) if _are_like(steps, other) else None
            if seen is not None:
                self._report(other, seen)
            return seen is not None

        return changed(await shrink(old, holds, attempts=ATTEMPTS_ANEW))

    async def _smaller(self, steps: Sequence[Used], index: int) -> Sequence[Used]:
        """Shrink the arguments of one step."""
        component, step = steps[index]
        if component.kind not in ("tool", "prompt", "completion"):
            return steps
        value = component.value_of(step)
        is_last = index == len(steps) - 1
        # Other steps keep their values valid or wrong.
        keyword = self._suspicion.keyword if is_last else None
        is_like = _likeness(component, value, keyword)
        anew = len(steps) > 1 or self._check == "notice"

        def changed(candidate: JSON) -> Sequence[Used]:
            other = attrs.evolve(component.step(candidate), cancel_after=step.cancel_after)
            return [*steps[:index], (component, other), *steps[index + 1 :]]

        async def holds(candidate: JSON) -> bool:
            if not is_like(candidate):
                return False
            # After the server has ended, the next call is the first one.
            is_first = anew or self._server.is_fresh(stateless=self._suspicion.stateless)
            seen = await self._holds(changed(candidate), anew=anew)
            if seen is not None and is_first:
                self._report(changed(candidate), seen)
            return seen is not None

        attempts = ATTEMPTS_ANEW if anew else ATTEMPTS
        least = changed(await shrink(value, holds, attempts=attempts))
        if anew:
            return least
        # Earlier calls may have contributed.
        seen = await self._holds(least, is_last=True)
        if seen is None:
            return steps
        self._report(least, seen)
        return least


def _leaves_of(used: Used) -> set[str]:
    """Return the texts and numbers among the arguments of a step, as JSON."""
    component, step = used
    return {json.dumps(each) for each in _leaves(component.value_of(step))}


def _leaves(value: JSON) -> Iterator[JSON]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def _are_like(steps: Sequence[Used], others: Sequence[Used]) -> bool:
    """Tell whether valid arguments stay valid in other steps, and wrong ones wrong."""
    pairs = zip(steps, others, strict=True)
    return all(
        _likeness(component, component.value_of(old), None)(component.value_of(new))
        for (component, old), (_, new) in pairs
    )


def _replace(used: Used, old: JSON, new: JSON) -> Used:
    """Replace a value everywhere in the arguments of a step."""
    component, step = used
    if component.kind not in ("tool", "prompt"):
        return used
    value = _replace_in(component.value_of(step), json.dumps(old), new)
    return component, attrs.evolve(component.step(value), cancel_after=step.cancel_after)


def _replace_in(value: JSON, old: str, new: JSON) -> JSON:
    if isinstance(value, dict):
        return {name: _replace_in(part, old, new) for name, part in value.items()}
    if isinstance(value, list):
        return [_replace_in(part, old, new) for part in value]
    return new if json.dumps(value) == old else value


def _likeness(component: Listed, value: JSON, keyword: str | None) -> Callable[[JSON], bool]:
    """Make the test that keeps valid arguments valid, and wrong ones wrong in the same way."""
    was_valid = component.violations(value) == []

    def is_like(candidate: JSON) -> bool:
        violations = component.violations(candidate)
        if was_valid or not violations:
            return was_valid == (violations == [])
        return keyword is None or any(each.keyword == keyword for each in violations)

    return is_like
