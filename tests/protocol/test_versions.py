"""The table of revisions and the negotiation."""

import pytest

from noizu_mcp.protocol import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    REVISIONS,
    STATELESS,
    SUPPORTED_VERSIONS,
    negotiate,
)


def test_revisions():
    """There are four revisions, newest first; one of them has no handshake."""
    assert SUPPORTED_VERSIONS == ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
    assert SUPPORTED_VERSIONS[1:] == HANDSHAKE_VERSIONS
    assert STATELESS.name == "2026-07-28"
    assert LATEST_HANDSHAKE.name == "2025-11-25"


@pytest.mark.parametrize(
    ("name", "elicitation", "modes"),
    [
        ("2025-03-26", False, False),
        ("2025-06-18", True, False),
        ("2025-11-25", True, True),
        ("2026-07-28", True, True),
    ],
)
def test_what_a_client_can_be_asked(name, elicitation, modes):
    """Forms exist since 2025-06-18; URLs, and sampling with tools, since 2025-11-25."""
    revision = REVISIONS[name]
    assert (elicitation, modes) == (revision.elicitation, revision.modes)


@pytest.mark.parametrize(
    ("name", "batches", "structured", "titles", "icons", "links", "tasks"),
    [
        ("2025-03-26", True, "none", False, False, False, False),
        ("2025-06-18", False, "object", True, False, True, False),
        ("2025-11-25", False, "object", True, True, True, True),
        ("2026-07-28", False, "any", True, True, True, False),
    ],
)
def test_features(name, batches, structured, titles, icons, links, tasks):
    """Each revision has the features of its specification."""
    revision = REVISIONS[name]
    assert (batches, structured, titles) == (
        revision.batches,
        revision.structured,
        revision.titles,
    )
    assert (icons, links, tasks) == (revision.icons, revision.resource_links, revision.tasks)


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2020-01-01", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ],
)
def test_negotiation(requested, answer):
    """A supported revision is echoed; otherwise the answer is the latest with a handshake."""
    assert negotiate(requested).name == answer
