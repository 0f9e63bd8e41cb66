"""Several verifiers as one."""

import pytest
import trio

from noizu_mcp.auth import (
    AnyVerifier,
    APIKeyVerifier,
    AuthRequest,
    InsufficientScope,
    InvalidToken,
    Principal,
    StaticVerifier,
    TokenVerifier,
    VerifierUnavailable,
)

from .issuer import REQUEST

ADA, CI = Principal(subject="ada"), Principal(subject="ci")
KEY = "an-api-key-of-some-length"
KEYED = AuthRequest("POST", "/mcp", header="x-api-key")


class Raising(TokenVerifier):
    def __init__(self, error):
        self.error = error
        self.seen = []

    async def verify(self, token, request):
        await trio.lowlevel.checkpoint()
        self.seen.append(token)
        raise self.error


async def test_the_first_that_takes_it():
    """They are called in order, until one accepts the token."""
    last = Raising(InvalidToken("last"))
    verifier = AnyVerifier(StaticVerifier({"a": ADA}), StaticVerifier({"a": CI, "b": CI}), last)

    assert await verifier.verify("a", REQUEST) is ADA
    assert await verifier.verify("b", REQUEST) is CI
    assert last.seen == []
    with pytest.raises(InvalidToken) as caught:
        await verifier.verify("c", REQUEST)
    assert caught.value.reason == (
        "StaticVerifier: it is not in the list; StaticVerifier: it is not in the list; "
        "Raising: last"
    )


async def test_tokens_reach_only_who_reads_their_header():
    """An API key is not sent to an issuer, nor a token used as a key."""
    bearer = Raising(InvalidToken("no"))
    verifier = AnyVerifier(bearer, APIKeyVerifier({KEY: CI}, header="X-API-Key"))

    assert verifier.headers == ("authorization", "x-api-key")
    assert await verifier.verify(KEY, KEYED) is CI
    assert bearer.seen == []
    with pytest.raises(InvalidToken, match="Raising: no"):
        await verifier.verify(KEY, REQUEST)
    with pytest.raises(InvalidToken, match="no verifier reads this header"):
        await AnyVerifier(bearer).verify(KEY, KEYED)


async def test_who_cannot_say_counts_last():
    """If a verifier is unavailable and no other one accepts the token, that is raised."""
    down = Raising(VerifierUnavailable("down"))
    no = Raising(InvalidToken("no"))

    assert await AnyVerifier(down, StaticVerifier({"a": ADA})).verify("a", REQUEST) is ADA
    for order in ((down, no), (no, down)):
        with pytest.raises(VerifierUnavailable, match="down"):
            await AnyVerifier(*order).verify("a", REQUEST)


async def test_who_is_known_and_may_not_is_not_tried_elsewhere():
    """Missing scopes are raised at once."""
    last = Raising(InvalidToken("last"))

    with pytest.raises(InsufficientScope):
        await AnyVerifier(Raising(InsufficientScope(["a"])), last).verify("a", REQUEST)
    assert last.seen == []


@pytest.mark.parametrize("answer", [None, {"sub": "ada"}])
async def test_what_is_no_principal_is_no_answer(answer):
    """Later verifiers are not called, so that a broken one is not hidden."""

    class Giving(TokenVerifier):
        async def verify(self, token, request):
            await trio.lowlevel.checkpoint()
            return answer

    last = Raising(InvalidToken("last"))

    with pytest.raises(TypeError, match=f"Giving.verify gave {type(answer).__name__}: return a"):
        await AnyVerifier(Giving(), last).verify("a", REQUEST)
    assert last.seen == []


def test_none_is_an_error():
    """An empty list would refuse every request, so it raises."""
    with pytest.raises(ValueError, match="at least one verifier"):
        AnyVerifier()
