"""Requests with and without tokens: which are accepted, and the challenges of the others."""

import logging

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.auth import (
    AnyVerifier,
    APIKeyVerifier,
    AuthRequest,
    BearerAuth,
    Challenge,
    InsufficientScope,
    InvalidToken,
    JWTVerifier,
    Principal,
    RequireScopes,
    StaticVerifier,
    TokenVerifier,
    VerifierUnavailable,
    parse_challenges,
)

from .issuer import AUDIENCE, ISSUER, public, signed

METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
ADA = Principal(subject="ada", scopes=["read"])
KEY = "an-api-key-of-some-length"


def auth(verifier=None, **options):
    verifier = verifier or StaticVerifier({"good-token": ADA})
    given = {"resource": AUDIENCE, "authorization_servers": [ISSUER], **options}
    return BearerAuth(verifier, **given)


def request(*authorization, **headers):
    pairs = [("authorization", value) for value in authorization]
    pairs += [(name.replace("_", "-"), value) for name, value in headers.items()]
    return AuthRequest("POST", "/mcp", pairs, "192.0.2.1")


async def refused(auth, request):
    """Return status and parameters of the challenge, and check everything else."""
    with pytest.raises(Challenge) as caught:
        await auth.authenticate(request)
    return heard(caught.value)


def heard(challenge):
    headers = dict(challenge.headers)
    assert len(headers) == len(challenge.headers)
    assert headers[b"content-type"] == b"text/plain; charset=utf-8"
    assert headers[b"cache-control"] == b"no-store"
    assert challenge.body.endswith(b"\n")
    assert str(challenge.status) in str(challenge)
    (found,) = parse_challenges(headers[b"www-authenticate"].decode())
    assert found.is_scheme("bearer")
    params = dict(found.params)
    assert params.pop("resource_metadata", METADATA) == METADATA
    description = params.pop("error_description", None)
    assert (description is None) == ("error" not in params)
    return challenge.status, params


class Raising(TokenVerifier):
    def __init__(self, error):
        self.error = error

    async def verify(self, token, request):
        await trio.lowlevel.checkpoint()
        raise self.error


@pytest.mark.parametrize(
    "value",
    ["Bearer good-token", "bearer good-token", "BEARER   good-token", " Bearer good-token \t"],
)
async def test_a_good_token(value):
    """The scheme is case-insensitive (RFC 9110 section 11.1)."""
    assert await auth().authenticate(request(value)) is ADA


async def test_with_a_real_token():
    """A token from the header becomes the principal."""
    verifier = JWTVerifier(issuer=ISSUER, audience=AUDIENCE, keys=public("p256"))
    token = signed("p256", "ES256", scope="read")

    who = await auth(verifier, required_scopes=["read"]).authenticate(request(f"Bearer {token}"))
    assert (who["sub"], who.scopes) == ("ada", {"read"})


async def test_without_a_token():
    """Without a token there is no error code, but metadata and scopes (RFC 6750 section 3.1)."""
    for missing in (request(), request("Basic dXNlcjpwdw=="), request("")):
        assert await refused(auth(), missing) == (401, {})
        assert await refused(auth(required_scopes=["a", "b"]), missing) == (401, {"scope": "a b"})


async def test_tokens_in_the_url_or_elsewhere_do_not_count():
    """MCP allows tokens in the header only."""
    for place in (
        AuthRequest("POST", "/mcp?access_token=good-token", ()),
        request(x_api_key="good-token"),
        request(cookie="access_token=good-token"),
        request(proxy_authorization="Bearer good-token"),
    ):
        assert await refused(auth(), place) == (401, {})


@pytest.mark.parametrize(
    "values",
    [
        ["Bearer"],
        ["Bearer "],
        ["Bearer two words"],
        ["Bearer good-token, Bearer good-token"],
        ["Bearer g\u00f6od"],
        ["Bearer =good"],
        ['Bearer "good-token"'],
        ["Bearer good-token", "Bearer good-token"],
        ["Bearer good-token", "Basic dXNlcjpwdw=="],
        ["Basic dXNlcjpwdw==", "Basic dXNlcjpwdw=="],
        ["Bearer " + "x" * (16 * 1024 + 1)],
    ],
)
async def test_malformed_requests(values):
    """Two credentials, or a malformed one, are an invalid request."""
    assert await refused(auth(), request(*values)) == (400, {"error": "invalid_request"})


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(max_codepoint=255), max_size=30), max_size=3))
async def test_any_header(values):
    """The challenge for any header can be parsed."""
    for value in (*values, *(f"Bearer {value}" for value in values)):
        status, _ = await refused(auth(), request(value))
        assert status in {400, 401}
    status, _ = await refused(auth(), request(*values))
    assert status in {400, 401}


async def test_bad_tokens_all_sound_alike(reasons):
    """Only the log has the reason."""
    verifier = JWTVerifier(issuer=ISSUER, audience=AUDIENCE, keys=public("rsa"))
    tokens = {
        "x.y.z": "it is not a JWT",
        signed(exp=1): "it expired",
        signed(aud="x"): "it is for another server",
        signed("rsa-2"): "no trusted key has signed it",
    }
    bodies = set()
    for token, reason in tokens.items():
        with pytest.raises(Challenge) as caught:
            await auth(verifier, required_scopes=["read"]).authenticate(request(f"Bearer {token}"))
        bodies.add((caught.value.body, tuple(caught.value.headers)))
        assert heard(caught.value) == (401, {"error": "invalid_token", "scope": "read"})
        assert caught.value.__cause__ is None
        (logged,) = reasons()
        assert logged.startswith(f"a token was refused: {reason}")
        assert token not in logged
    assert len(bodies) == 1


async def test_missing_scopes():
    """The 403 lists every scope that is needed, so that one new token is enough."""
    bearer = request("Bearer good-token")
    need = {"error": "insufficient_scope", "scope": "read write"}

    assert await auth(required_scopes=["read"]).authenticate(bearer) is ADA
    assert await refused(auth(required_scopes=["read", "write"]), bearer) == (403, need)
    own = Raising(InsufficientScope(["write"]))
    assert await refused(auth(own, required_scopes=["read"]), bearer) == (403, need)


async def test_a_hierarchy_of_scopes():
    """A scope may include others."""
    bearer = request("Bearer good-token")

    ranks = RequireScopes("list", hierarchy={"read": ["list"]})
    assert await auth(required_scopes=ranks).authenticate(bearer) is ADA
    assert (await refused(auth(required_scopes=RequireScopes("list")), bearer))[0] == 403
    with pytest.raises(ValueError, match="offline_access"):
        auth(required_scopes=RequireScopes("offline_access"))


def test_step_up():
    """A challenge includes the scopes of all requests, each once."""
    challenge = auth(required_scopes=["read"]).challenge(["write", "read", "admin"])
    need = {"error": "insufficient_scope", "scope": "read write admin"}

    assert heard(challenge) == (403, need)
    assert (
        dict(challenge.headers)[b"www-authenticate"]
        == b'Bearer error="insufficient_scope", error_description="The access token does not '
        b'allow this", scope="read write admin", resource_metadata="' + METADATA.encode() + b'"'
    )
    assert challenge.body == b"Insufficient scope\n"


async def test_who_cannot_say(reasons):
    """If keys cannot be fetched the status is 503, so that a valid token is not discarded."""
    with pytest.raises(Challenge) as caught:
        await auth(Raising(VerifierUnavailable("no keys"))).authenticate(request("Bearer x"))

    assert caught.value.status == 503
    assert (b"retry-after", b"5") in caught.value.headers
    assert b"www-authenticate" not in dict(caught.value.headers)
    assert reasons() == ["tokens cannot be verified: no keys"]


@pytest.mark.parametrize(
    "error", [RuntimeError("s3cret"), ExceptionGroup("s3cret", [ValueError("s3cret")])]
)
async def test_a_broken_verifier_refuses_all_requests(error, caplog):
    """The traceback is in the log, and the client gets no details."""
    with pytest.raises(Challenge) as caught:
        await auth(Raising(error)).authenticate(request("Bearer x"))

    assert caught.value.status == 500
    assert "s3cret" not in f"{caught.value} {caught.value.body} {caught.value.headers}"
    assert caught.value.__suppress_context__
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info[1] is error


class Giving(TokenVerifier):
    def __init__(self, answer):
        self.answer = answer

    async def verify(self, token, request):
        await trio.lowlevel.checkpoint()
        return self.answer


@pytest.mark.parametrize("answer", [None, {"sub": "ada"}, True, "ada", Principal])
@pytest.mark.parametrize("nested", [False, True])
async def test_a_result_that_is_no_principal_is_refused(answer, nested, caplog):
    """A verifier that returns anything but a principal fails with 500; None is not anonymous."""
    verifier = Giving(answer)
    if nested:
        verifier = AnyVerifier(AnyVerifier(verifier), StaticVerifier({"x": ADA}))

    with pytest.raises(Challenge) as caught:
        await auth(verifier).authenticate(request("Bearer x"))

    assert caught.value.status == 500
    assert f"Giving.verify gave {type(answer).__name__}: return a Principal" in caplog.text
    assert "raise InvalidToken" in caplog.text
    assert type(verifier).__name__ in caplog.messages[0]
    assert "{'sub'" not in caplog.text


MORE = "more of these are counted, not shown, for up to a minute"


async def flood(guard, verifier, *errors):
    """Refuse one request for each error; return the responses."""
    statuses = set()
    for verifier.error in errors:
        with pytest.raises(Challenge) as caught:
            await guard.authenticate(request("Bearer x"))
        statuses.add(caught.value.status)
    return statuses


@pytest.mark.parametrize(
    ("make", "status", "text"),
    [
        (lambda: InvalidToken("expired"), 401, "a token was refused: expired"),
        (lambda: VerifierUnavailable("no keys"), 503, "tokens cannot be verified: no keys"),
        (lambda: RuntimeError("s3cret"), 500, "Raising failed"),
    ],
)
async def test_refused_tokens_do_not_flood_the_log(make, status, text, caplog):
    """The first refusals of each reason are logged, then counted; other reasons still appear."""
    verifier = Raising(None)
    guard = auth(verifier)
    assert await flood(guard, verifier, *(make() for _ in range(100))) == {status}
    assert caplog.messages == [*([text] * 5), f"{text}: {MORE}"]
    caplog.clear()
    await flood(guard, verifier, InvalidToken("no audience"), KeyError("other"))
    assert caplog.messages == ["a token was refused: no audience", "Raising failed"]


async def test_reasons_that_a_client_chooses_are_bounded_too(caplog):
    """A verifier may quote the token, so that each reason differs."""
    verifier = Raising(None)
    guard = auth(verifier)
    await flood(guard, verifier, *(InvalidToken(f"unknown: {i}") for i in range(500)))
    assert len(caplog.messages) < 50
    assert caplog.messages[0] == "a token was refused: unknown: 0"
    assert caplog.messages[-1] == f"other entries: {MORE}"


async def test_cancelled_goes_through():
    """A cancelled request is not a failure of the verifier."""

    class Stuck(TokenVerifier):
        async def verify(self, token, request):
            await trio.sleep_forever()

    with trio.CancelScope() as scope:
        scope.cancel()
        await auth(Stuck()).authenticate(request("Bearer x"))
    assert scope.cancelled_caught


async def test_what_a_verifier_sees():
    """It gets the request, and the header of the token."""
    seen = []

    class Looking(TokenVerifier):
        async def verify(self, token, request):
            await trio.lowlevel.checkpoint()
            seen.append((token, request))
            raise InvalidToken("no")

    sent = request("Bearer x", user_agent="a")
    await refused(auth(Looking()), sent)
    assert seen == [("x", sent)]
    assert sent.header == "authorization"


async def test_keys_in_a_header_of_their_own():
    """Keys are accepted beside tokens or alone, but not both in one request."""
    keys = APIKeyVerifier({KEY: ADA}, header="X-API-Key")
    both = auth(AnyVerifier(StaticVerifier({"good-token": ADA}), keys))
    alone = auth(keys, authorization_servers=())

    for guard in (both, alone):
        assert await guard.authenticate(request(x_api_key=KEY)) is ADA
        assert await guard.authenticate(request("Basic dXNlcjpwdw==", x_api_key=KEY)) is ADA
        assert (await refused(guard, request(f"Bearer {KEY}")))[0] == 401
        assert (await refused(guard, request(x_api_key="wrong")))[0] == 401
        for malformed in ("", "two words", "umlaut-\u00e4"):
            assert (await refused(guard, request(x_api_key=malformed)))[0] == 400
    assert await both.authenticate(request("Bearer good-token")) is ADA
    assert (await refused(both, request("Bearer good-token", x_api_key=KEY)))[0] == 400


async def test_nowhere_to_get_a_token():
    """Without an authorization server the challenge has no metadata URL."""
    with pytest.raises(Challenge) as caught:
        await auth(authorization_servers=()).authenticate(request())

    assert (b"www-authenticate", b"Bearer") in caught.value.headers
