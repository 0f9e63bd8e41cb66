"""The official conformance suite passes on every revision, without failures and warnings."""

import pytest

from .suite import (
    CLIENT_LEAST,
    CONTAINED,
    LEAST,
    LEGS,
    Missing,
    find_node,
    find_suite,
    list_scenarios,
    run_client_leg,
    run_leg,
    served,
    started_clients,
)

#: The legs that together run every scenario on each of its revisions.
NEEDED = [leg for leg in LEGS if leg not in CONTAINED]
#: All of these on our own host, and one of each era on the other server.
RUNS = [("noizu", leg) for leg in NEEDED]
RUNS += [("hypercorn", leg) for leg in ("2025-11-25", "required 2026-07-28")]


def need_suite():
    """Skip if the suite, or a suitable Node.js, is missing."""
    try:
        find_node()
        for package, _ in LEGS.values():
            find_suite(package)
    except Missing as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("leg", "container"), CONTAINED.items())
def test_a_leg_is_contained_in_another(leg, container):
    """A leg that is not run here is covered by another one."""
    need_suite()
    scenarios = list_scenarios(leg)
    assert len(scenarios) >= LEAST[leg] + CLIENT_LEAST[leg]
    assert scenarios <= list_scenarios(container)


@pytest.fixture(scope="module")
def url(request):
    """Serve the everything server on one server, once for all of its legs."""
    need_suite()
    with served(request.param) as url:
        yield url


@pytest.mark.parametrize(("url", "leg"), RUNS, indirect=["url"])
def test_a_leg_passes(url, leg):
    """There are no expected failures, and as many scenarios as in the suite."""
    outcome = run_leg(leg, url)
    assert outcome.problems == []
    assert outcome.scenarios >= LEAST[leg]
    assert outcome.passed


@pytest.mark.parametrize(
    ("behind", "leg"),
    [("2026-07-28", "all"), ("2025-11-25", "2025-06-18")],
)
def test_a_leg_of_a_gateway_passes(behind, leg):
    """A gateway to the server passes where the server does, also across eras."""
    need_suite()
    with served("noizu", behind) as url:
        outcome = run_leg(leg, url)
    assert outcome.problems == []
    assert outcome.passed


@pytest.fixture(scope="module")
def command():
    """Start the process that starts the clients, once for all legs."""
    need_suite()
    with started_clients() as command:
        yield command


@pytest.mark.parametrize("leg", NEEDED)
def test_a_leg_of_the_client_passes(command, leg):
    """There are no expected failures, every scenario ends as expected, and none is missing."""
    outcome = run_client_leg(leg, command)
    assert outcome.problems == []
    assert outcome.scenarios >= CLIENT_LEAST[leg]
    assert outcome.passed
