"""Tokens from a list."""

import hmac

import pytest

from noizu_mcp.auth import (
    APIKeyVerifier,
    InvalidToken,
    Principal,
    StaticVerifier,
    api_key_digest,
)

from .issuer import REQUEST

CI, OPS = Principal(subject="ci"), Principal(subject="ops", scopes=["admin"])
CI_KEY, OPS_KEY = "key-of-the-continuous-integration", "key-of-the-operators"


async def refusal(verifier, token):
    with pytest.raises(InvalidToken) as caught:
        await verifier.verify(token, REQUEST)
    return caught.value.reason


@pytest.mark.parametrize("stored", [OPS_KEY, api_key_digest(OPS_KEY)])
async def test_keys_are_known(stored):
    """A key is stored in clear text, or as its digest."""
    verifier = APIKeyVerifier({CI_KEY: CI, stored: OPS})

    assert await verifier.verify(CI_KEY, REQUEST) is CI
    assert await verifier.verify(OPS_KEY, REQUEST) is OPS
    for wrong in (CI_KEY[:-1], CI_KEY + "x", CI_KEY.upper(), "\u20ac", "\ud800"):
        assert await refusal(verifier, wrong) == "it is not in the list"
    assert await refusal(verifier, api_key_digest(OPS_KEY)) == "it is not in the list"


@pytest.mark.parametrize("token", [CI_KEY, OPS_KEY, "none-of-them", ""])
async def test_every_key_is_compared(monkeypatch, token):
    """Every digest is compared, in constant time, also after a match."""
    verifier = APIKeyVerifier({CI_KEY: CI, OPS_KEY: OPS, "another-key-of-somebody": OPS})
    compared = []
    real = hmac.compare_digest

    def compare(one, other):
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    try:
        await verifier.verify(token, REQUEST)
    except InvalidToken:
        assert token not in {CI_KEY, OPS_KEY}

    assert len(compared) == 3
    assert len({one for one, _ in compared}) == 3
    assert {len(one) for pair in compared for one in pair} == {32}


async def test_keys_may_end(clock):
    """A key expires at its second."""
    until = Principal(subject="guest", expires_at=clock.now + 10)
    keys = APIKeyVerifier({CI_KEY: until})
    tokens = StaticVerifier({"t": until})

    assert await keys.verify(CI_KEY, REQUEST) is await tokens.verify("t", REQUEST) is until
    clock.now += 10
    assert await refusal(keys, CI_KEY) == await refusal(tokens, "t") == "it has expired"


async def test_static_tokens():
    """Static tokens may have any length: they are for tests."""
    verifier = StaticVerifier({"t": CI})

    assert await verifier.verify("t", REQUEST) is CI
    assert await refusal(verifier, "u") == "it is not in the list"
    assert verifier.headers == ("authorization",)


def test_headers():
    """A header for keys is read as a whole."""
    assert APIKeyVerifier({CI_KEY: CI}).headers == ("authorization",)
    assert APIKeyVerifier({CI_KEY: CI}, header="X-API-Key").headers == ("x-api-key",)
    for wrong in ("", "x key", "x:"):
        with pytest.raises(ValueError, match="is not the name of a header"):
            APIKeyVerifier({CI_KEY: CI}, header=wrong)


def test_keys_that_can_be_guessed():
    """Short keys are refused where they are written, and not shown."""
    with pytest.raises(ValueError, match="at least 16 characters") as caught:
        APIKeyVerifier({"short-key": CI})
    assert "short-key" not in str(caught.value)
    for wrong in ("sha256:", "sha256:abc", f"{api_key_digest(CI_KEY)}0", "sha256:" + "g" * 64):
        with pytest.raises(ValueError, match="a digest of an API key is"):
            APIKeyVerifier({wrong: CI})


async def test_a_key_that_looks_like_a_digest():
    """The error says how to write a digest, and how to write a key."""
    digits = api_key_digest(CI_KEY).removeprefix("sha256:")
    for wrong in (digits, digits.upper()):
        with pytest.raises(
            ValueError, match="write `sha256:` before a digest, and api_key"
        ) as caught:
            APIKeyVerifier({wrong: CI})
        assert wrong not in str(caught.value)

    assert await APIKeyVerifier({f"sha256:{digits}": CI}).verify(CI_KEY, REQUEST) is CI
    assert await APIKeyVerifier({api_key_digest(digits): OPS}).verify(digits, REQUEST) is OPS


BOTH = ["key with spaces 0123", "key-with-\u00e4-0123456", "key\nwith-a-line-0123", "k" * 16385]
TOKEN68_ONLY = ["sk:live:0123456789abcdef", "a-key!with$chars-0123", "=0123456789abcdef"]


@pytest.mark.parametrize("key", [*BOTH, *TOKEN68_ONLY])
def test_keys_that_cannot_be_sent_as_bearer_tokens(key):
    """Such a key could never be sent, so it is refused where it is written."""
    with pytest.raises(ValueError, match=r"an API key .* has ") as caught:
        APIKeyVerifier({CI_KEY: CI, key: OPS})
    assert key not in str(caught.value)
    with pytest.raises(ValueError, match=r"a token .* in authorization has letters, digits and - "):
        StaticVerifier({key: OPS})


@pytest.mark.parametrize("key", BOTH)
def test_keys_that_no_header_can_carry(key):
    """A header for keys allows more characters, but not all; other keys have no digests."""
    with pytest.raises(ValueError, match="visible ASCII characters only, no spaces") as caught:
        APIKeyVerifier({key: CI}, header="X-API-Key")
    assert key not in str(caught.value)
    with pytest.raises(ValueError, match="visible ASCII characters only, no spaces"):
        api_key_digest(key)


@pytest.mark.parametrize("key", TOKEN68_ONLY)
async def test_keys_of_a_header_of_their_own(key):
    """Keys may have any visible character."""
    for stored in (key, api_key_digest(key)):
        assert await APIKeyVerifier({stored: CI}, header="X-API-Key").verify(key, REQUEST) is CI


def test_a_token_is_not_empty():
    """An empty token is refused, since a client could not send it."""
    with pytest.raises(ValueError, match="a token that is sent in authorization has"):
        StaticVerifier({"": CI})
