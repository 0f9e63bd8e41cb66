"""The official conformance suite passes on every revision, without a failure and a warning."""

import pytest

from .suite import LEAST, LEGS, Missing, find_node, find_suite, run_leg, served


@pytest.fixture(scope="module")
def url():
    """Serve the everything server once for all legs."""
    try:
        find_node()
        for package, _ in LEGS.values():
            find_suite(package)
    except Missing as error:
        pytest.skip(str(error))
    with served() as url:
        yield url


@pytest.mark.parametrize("leg", LEGS)
def test_a_leg_passes(url, leg):
    """No expected failures, and as many scenarios as the suite has."""
    outcome = run_leg(leg, url)
    assert outcome.problems == []
    assert outcome.scenarios >= LEAST[leg]
    assert outcome.passed
