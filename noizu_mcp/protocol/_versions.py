"""The revisions of the protocol and their differences, as a table.

Other code asks for a feature (`revision.titles`) rather than a date, so that a new revision is
little more than a new row.
"""

from typing import Final, Literal, NamedTuple

#: The values allowed as structured output: none at all, an object, or any JSON value.
Structured = Literal["none", "object", "any"]


class Revision(NamedTuple):
    """One revision of the protocol.

    Attributes:
        name: Its date, as sent on the wire.
        stateless: No handshake: every request carries its context in `_meta` (2026-07-28).
        batches: Arrays of messages are allowed (2025-03-26 only).
        structured: The values allowed as structured tool output.
        titles: `title` stands beside `name`, and `_meta` on definitions and content blocks.
        icons: `icons` on definitions; description, website and icons on an implementation.
        resource_links: The content block `resource_link` exists, and `lastModified` among the
            annotations of content.
        elicitation: A server may ask the user of a client (2025-06-18 and later).
        modes: Elicitation has modes, sampling has tools, and the choices of a form have titles.
        tasks: `execution` on tools, of the experimental tasks (2025-11-25 only).
        polling: An HTTP answer may end before its message; the client comes back for it.
    """

    name: str
    stateless: bool = False
    batches: bool = False
    structured: Structured = "object"
    titles: bool = True
    icons: bool = True
    resource_links: bool = True
    elicitation: bool = True
    modes: bool = True
    tasks: bool = False
    polling: bool = False


_ALL = (
    # Newest first, as `supportedVersions` lists them (2026-07-28 `server/discover`).
    Revision(name="2026-07-28", stateless=True, structured="any"),
    Revision(name="2025-11-25", tasks=True, polling=True),
    Revision(name="2025-06-18", icons=False, modes=False),
    Revision(
        name="2025-03-26",
        batches=True,
        structured="none",
        titles=False,
        icons=False,
        resource_links=False,
        elicitation=False,
        modes=False,
    ),
)

#: Every revision served here, by name, newest first.
REVISIONS: Final[dict[str, Revision]] = {revision.name: revision for revision in _ALL}
SUPPORTED_VERSIONS: Final = tuple(REVISIONS)
STATELESS: Final = _ALL[0]
LATEST_HANDSHAKE: Final = _ALL[1]
HANDSHAKE_VERSIONS: Final = tuple(r.name for r in _ALL if not r.stateless)


def negotiate(requested: str) -> Revision:
    """Choose the revision that answers `initialize`: the requested one, else the latest.

    A client that asks for 2026-07-28 here gets the latest revision that has a handshake
    (2025-11-25 `basic/lifecycle`, "Version Negotiation").
    """
    # A revision that is not served gets the latest; the client disconnects if it cannot use it.
    revision = REVISIONS.get(requested, LATEST_HANDSHAKE)
    # `initialize` exists in handshake revisions only, so no other revision may be its answer.
    return LATEST_HANDSHAKE if revision.stateless else revision
