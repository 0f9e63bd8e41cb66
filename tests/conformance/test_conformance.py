"""The official conformance suite passes on every revision, without a failure and a warning."""

import pytest

from .suite import LEAST, LEGS, Missing, find_node, find_suite, run_leg, served

#: Every leg on our own host, and one of each era on the other server.
RUNS = [("noizu", leg) for leg in LEGS]
RUNS += [("hypercorn", leg) for leg in ("2025-11-25", "required 2026-07-28")]


@pytest.fixture(scope="module")
def url(request):
    """Serve the everything server on one server, once for all of its legs."""
    try:
        find_node()
        for package, _ in LEGS.values():
            find_suite(package)
    except Missing as error:
        pytest.skip(str(error))
    with served(request.param) as url:
        yield url


@pytest.mark.parametrize(("url", "leg"), RUNS, indirect=["url"])
def test_a_leg_passes(url, leg):
    """No expected failures, and as many scenarios as the suite has."""
    outcome = run_leg(leg, url)
    assert outcome.problems == []
    assert outcome.scenarios >= LEAST[leg]
    assert outcome.passed
