"""Draw reproducible examples from strategies, and steps of state machines."""

from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import errors as hypothesis_errors
from hypothesis.stateful import run_state_machine_as_test

QUIET = settings(
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def draw(strategy, count=20):
    """Return up to `count` values, or none if the strategy has none."""
    found = []

    @settings(QUIET, max_examples=count)
    @given(strategy)
    def collect(value):
        found.append(value)

    try:
        collect()
    except hypothesis_errors.Unsatisfiable:
        return []
    return found


def least(strategy, condition):
    """Return the simplest value that satisfies a condition."""
    patient = settings(database=None, derandomize=True, max_examples=2_000, deadline=None)
    return find(strategy, condition, settings=patient)


def run_machine(machine, count=15, *, shrink=False):
    """Run a state machine with this many examples of a few steps."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    few = settings(QUIET, max_examples=count, stateful_step_count=8, phases=phases)
    run_state_machine_as_test(machine, settings=few)
