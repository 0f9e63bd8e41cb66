"""JWTs signed by holders of API keys."""

import base64
import json

import jwt
import pytest
import trio

from noizu_mcp.auth import (
    AuthRequest,
    BearerAuth,
    Challenge,
    CompoundJWTVerifier,
    InvalidToken,
    VerifierUnavailable,
)

from .issuer import AUDIENCE, ISSUER, REQUEST, claims, public_pem, signed

SECRET = "a secret of thirty-two bytes, or more"
LONG = SECRET * 2


def in_use(key):
    return key == "k1"


def verifier(**options):
    given = {"issuer": ISSUER, "audience": AUDIENCE, "check_api_key": in_use, **options}
    return CompoundJWTVerifier(given.pop("secret", SECRET), **given)


def issued(secret=SECRET, alg="HS256", **changed):
    return jwt.encode(claims(**{"api_key_id": "k1", **changed}), secret, alg)


async def refusal(token, **options):
    with pytest.raises(InvalidToken) as caught:
        await verifier(**options).verify(token, REQUEST)
    return caught.value.reason


async def test_good_tokens():
    """The holder of the key names the user."""
    who = await verifier().verify(issued(scope="read"), REQUEST)

    assert (who.subject, who.issuer, who.scopes) == ("ada", ISSUER, {"read"})
    assert who["api_key_id"] == "k1"


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
async def test_algorithms(alg):
    """Only listed algorithms are accepted."""
    assert await verifier(secret=LONG, algorithms=alg).verify(issued(LONG, alg), REQUEST)
    others = [each for each in ("HS256", "HS384", "HS512") if each != alg]
    reason = await refusal(issued(LONG, alg), secret=LONG, algorithms=others)
    assert reason == f"the algorithm '{alg}' is not allowed"


async def test_tokens_that_are_not_signed_with_the_secret():
    """Unsigned tokens, and tokens signed with a private key or another secret, are refused."""
    parts = [{"alg": "none"}, claims(api_key_id="k1")]
    unsigned = [base64.urlsafe_b64encode(json.dumps(part).encode()).strip(b"=") for part in parts]

    assert "'none' is not allowed" in await refusal(b".".join([*unsigned, b""]).decode())
    assert "'RS256' is not allowed" in await refusal(signed())
    assert "no trusted key has signed it" in await refusal(issued(SECRET + "x"))
    assert "it is not a JWT" in await refusal("x")


@pytest.mark.parametrize("claim", ["sub", "exp", "iss", "aud", "api_key_id"])
async def test_every_claim_is_needed(claim):
    """Subject, expiry, issuer, audience and key are required."""
    assert await refusal(issued(**{claim: None})) == f"claims are missing: {claim}"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": 1}, "it expired"),
        ({"exp": "9999999999"}, "`exp` is not a number"),
        ({"exp": True}, "`exp` is not a number"),
        ({"nbf": 9999999999}, "not valid yet"),
        ({"aud": "https://other.example.com"}, "for another server"),
        ({"sub": ""}, "`sub` is not a string"),
        ({"api_key_id": ""}, "`api_key_id` is not a string"),
        ({"api_key_id": 5}, "`api_key_id` is not a string"),
        ({"api_key_id": "k2"}, "the API key 'k2' is not in use"),
    ],
)
async def test_claims_that_are_wrong(changed, reason):
    """All claims are checked strictly."""
    assert reason in await refusal(issued(**changed))


async def test_the_issuer_is_checked():
    """The issuer must be equal in every character."""
    assert "from another issuer" in await refusal(issued(iss="https://other.example.com"))


@pytest.mark.parametrize("answer", [False, None, 1, "yes", {"revoked": True}])
async def test_anything_but_true_is_no(answer):
    """Only True accepts a key: a database row is truthy for a revoked key, too."""

    async def check(key):
        await trio.lowlevel.checkpoint()
        return answer

    assert "is not in use" in await refusal(issued(), check_api_key=lambda key: answer)
    assert "is not in use" in await refusal(issued(), check_api_key=check)


async def test_keys_may_be_checked_elsewhere():
    """The check of a key may be async."""

    async def check(key):
        await trio.lowlevel.checkpoint()
        return key == "k1"

    assert await verifier(check_api_key=check).verify(issued(), REQUEST)
    assert "is not in use" in await refusal(issued(api_key_id="k2"), check_api_key=check)


def failing(error, *, waits):
    """Make a callback that fails, at once or later."""

    def now(*_):
        raise error

    async def later(*_):
        await trio.lowlevel.checkpoint()
        raise error

    return later if waits else now


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("error", [VerifierUnavailable("no database"), LookupError("bug")])
async def test_who_cannot_check_a_key_does_not_say_that_it_is_bad(error, waits):
    """Otherwise clients would discard valid tokens during an outage."""
    with pytest.raises(type(error)) as caught:
        await verifier(check_api_key=failing(error, waits=waits)).verify(issued(), REQUEST)
    assert caught.value is error


@pytest.mark.parametrize("error", [VerifierUnavailable("no vault"), LookupError("bug")])
async def test_nor_does_who_has_no_secret(error):
    """A missing secret may be available again later."""
    with pytest.raises(type(error)) as caught:
        await verifier(secret=failing(error, waits=False)).verify(issued(), REQUEST)
    assert caught.value is error


@pytest.mark.parametrize("option", ["secret", "check_api_key"])
@pytest.mark.parametrize(
    ("error", "status"), [(VerifierUnavailable("down"), 503), (LookupError("bug"), 500)]
)
async def test_an_outage_is_no_fault_of_the_token(option, error, status, caplog):
    """The client gets 503 or 500; the log has the reason, or the traceback."""
    broken = verifier(**{option: failing(error, waits=False)})
    auth = BearerAuth(broken, resource=AUDIENCE, authorization_servers=[ISSUER])
    request = AuthRequest("POST", "/mcp", [("authorization", f"Bearer {issued()}")])

    with pytest.raises(Challenge) as caught:
        await auth.authenticate(request)
    assert caught.value.status == status
    assert str(error) in caplog.text


async def test_the_secret_may_change():
    """A function returns the current secret; an invalid one refuses every token."""
    now = [SECRET]
    check = verifier(secret=lambda: now[0])

    assert await check.verify(issued(), REQUEST)
    now[0] = LONG.encode()
    assert await check.verify(issued(LONG), REQUEST)
    now[0] = SECRET
    with pytest.raises(InvalidToken, match="no trusted key has signed it"):
        await check.verify(issued(LONG), REQUEST)
    for wrong, error in (("short", ValueError), (None, TypeError), (True, TypeError)):
        now[0] = wrong
        with pytest.raises(error, match="the secret "):
            await check.verify(issued(LONG), REQUEST)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"secret": "short"}, "needs 32 bytes for HS256, not 5"),
        ({"secret": SECRET, "algorithms": ["HS256", "HS512"]}, "needs 64 bytes for HS256, HS512"),
        ({"secret": public_pem("rsa")}, "this cannot be a shared secret"),
        ({"audience": None}, "needs audience="),
        ({"issuer": None}, "needs issuer="),
        ({"algorithms": []}, r"may hold HS256, HS384, HS512, not \(\)"),
        ({"algorithms": ["HS256", "RS256"]}, "may hold HS256"),
        ({"algorithms": "none"}, "may hold HS256"),
        ({"leeway": float("nan")}, "leeway must be seconds from 0 to 300, not nan"),
    ],
)
def test_what_is_not_safe_cannot_be_made(options, message):
    """The error says why, and does not contain the secret."""
    with pytest.raises(ValueError, match=message) as caught:
        verifier(**options)
    assert "short" not in str(caught.value)
