"""The answer to a connecting client, and skills, merged from a server and its providers.

Nothing is cached: there are few providers, and clients ask rarely. A provider that fails, or
exceeds its `timeout`, is left out and logged.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import trio

from ..._errors import PEER_FAILURES
from ..._value import JSONObject
from ...components import BaseProvider, Context, Introduction, SkillProvider
from ...engine import crashes_logged, run_user_code
from ._providers import ProvidingServer


async def introduce(server: ProvidingServer, ctx: Context) -> Introduction:
    """Merge the instructions and extensions of a server and of its providers.

    Args:
        server: The server.
        ctx: The request in the context of the server.
    """
    asked = await _ask_all(server, [*(server.registry.providers or ())], "introduce", ctx)
    found = [each for _, each in asked]
    texts = [server.options.instructions, *(each.instructions for each in found)]
    extensions: dict[str, JSONObject] = {}
    for offered in (server.registry.extensions(), *(each.extensions for each in found)):
        for id_, settings in offered.items():
            extensions[id_] = {**extensions.get(id_, {}), **settings}
    return Introduction("\n\n".join(filter(None, texts)) or None, extensions)


async def list_skills(server: ProvidingServer, ctx: Context) -> list[Any]:
    """List the skills of a server and of its providers; for equal URIs the first one is used.

    A URI with the prefix of a provider belongs to that provider alone.

    Returns:
        Specs, and entries in wire format.
    """
    registered = server.registry.skills
    skills: dict[str, Any] = {registered.key_of(each): each for each in registered.shown}
    providers = [*_skill_providers_of(server)]
    for provider, entries in await _ask_all(server, providers, "skills", ctx):
        others = _others_than(server, provider)
        for entry in entries:
            if not entry["uri"].startswith(others):
                skills.setdefault(entry["uri"], entry)
    return [*skills.values()]


async def find_skill(server: ProvidingServer, uri: str, ctx: Context) -> JSONObject | None:
    """Find the entry of a skill of a provider; None if no provider has it.

    Raises:
        McpError: The skill is not available now.
        InsufficientScope: The caller lacks a scope.
    """
    for provider in _skill_providers_of(server, uri):
        entry = await run_user_code(provider.skill(uri, ctx))
        if entry is not None:
            return entry
    return None


async def read_directory(
    server: ProvidingServer, uri: str, cursor: object, ctx: Context
) -> JSONObject | None:
    """Read a page of a directory of a provider; None if no provider has it.

    Raises:
        McpError: The cursor is invalid (-32602), or the directory is not available now.
        InsufficientScope: The caller lacks a scope.
    """
    for provider in _skill_providers_of(server, uri):
        page = await run_user_code(provider.directory(uri, cursor, ctx))
        if page is not None:
            return page
    return None


def _skill_providers_of(server: ProvidingServer, uri: str = "") -> Iterator[SkillProvider]:
    """Iterate over the providers with skills that may have this URI."""
    for each in server.registry.providers or ():
        if isinstance(each, SkillProvider) and not uri.startswith(_others_than(server, each)):
            yield each


def _others_than(server: ProvidingServer, provider: BaseProvider) -> tuple[str, ...]:
    """List the prefixes of the URIs of other providers."""
    # Not `server.providers`, whose first use makes an empty set.
    providers = server.registry.providers
    return () if providers is None else providers.others_than(provider, "uri")


async def _ask_all(
    server: ProvidingServer, providers: Sequence[BaseProvider], method: str, ctx: Context
) -> list[tuple[BaseProvider, Any]]:
    """Ask all providers concurrently. A provider that fails is left out."""
    answers: dict[int, Any] = {}

    async def ask(index: int, provider: BaseProvider) -> None:
        log, about = server.crash_log, (method, provider.name)
        with crashes_logged("%s of %s failed", *about, log=log):
            try:
                with trio.move_on_after(provider.timeout):
                    answers[index] = await run_user_code(getattr(provider, method)(ctx))
            except PEER_FAILURES as error:
                # Another program has failed, and its message says all that is known.
                log.warning(about, "%s of %s failed: %s", *about, error)

    async with trio.open_nursery() as nursery:
        for index, provider in enumerate(providers):
            nursery.start_soon(ask, index, provider)
    return [(providers[index], answers[index]) for index in sorted(answers)]
