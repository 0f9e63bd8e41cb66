"""Requests to a token endpoint, and their responses."""

import base64
import json
from urllib.parse import parse_qsl

import pytest
import trio

from noizu_mcp import AuthError
from noizu_mcp.auth import FetchResponse
from noizu_mcp.auth.client._discovery import IssuerMetadata
from noizu_mcp.auth.client._tokens import (
    EXPIRY_MARGIN,
    ClientRegistration,
    Login,
    TokenClient,
    TokenRefused,
    Tokens,
    choose_auth_method,
    read_tokens,
)

URL = "https://login.example.com/token"
GOOD = {"access_token": "t", "token_type": "bearer"}
LOGIN = Login(
    issuer="https://login.example.com",
    token_endpoint=URL,
    revocation_endpoint="https://login.example.com/revoke",
    resource=None,
    requested=("a", "b"),
    client=ClientRegistration(client_id="c"),
    tokens=Tokens(access_token="t", refresh_token="r", scopes="a b", expires_at=5.0),
)


def issuer(*methods):
    return IssuerMetadata(
        issuer="https://login.example.com",
        authorization_endpoint="",
        token_endpoint=URL,
        auth_methods=methods or None,
    )


class Endpoint:
    """A fetcher with one response for every request."""

    def __init__(self, document=GOOD, status=200):
        self.document, self.status, self.requests = document, status, []

    async def fetch(self, request):
        self.requests.append(request)
        if self.document is None:
            await trio.sleep_forever()
        return FetchResponse(self.status, json.dumps(self.document).encode())

    @property
    def sent(self):
        (request,) = self.requests
        return dict(parse_qsl(request.body.decode())), dict(request.headers)


async def request(endpoint, **client):
    params = {"grant_type": "x", "resource": None, "scope": ""}
    registration = ClientRegistration(client_id="id:1", **client)
    return await TokenClient(endpoint).request(URL, params, client=registration)


async def test_a_client_without_a_secret():
    """Its id is sent in the form; empty parameters are left out."""
    endpoint = Endpoint()
    await request(endpoint)

    form, headers = endpoint.sent
    assert form == {"grant_type": "x", "client_id": "id:1"}
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert "authorization" not in headers


async def test_a_secret_in_the_form():
    """`client_secret_post` sends it in the form."""
    endpoint = Endpoint()
    await request(endpoint, client_secret="s", auth_method="client_secret_post")

    assert endpoint.sent[0] == {"grant_type": "x", "client_id": "id:1", "client_secret": "s"}


async def test_a_secret_in_the_header():
    """`client_secret_basic` sends both, form-encoded, in the header only."""
    endpoint = Endpoint()
    await request(endpoint, client_secret="s é", auth_method="client_secret_basic")

    form, headers = endpoint.sent
    assert form == {"grant_type": "x", "client_id": "id:1"}
    kind, _, value = headers["authorization"].partition(" ")
    assert (kind, base64.b64decode(value)) == ("Basic", b"id%3A1:s%20%C3%A9")


@pytest.mark.parametrize(
    ("methods", "secret", "registered", "chosen"),
    [
        ((), "", None, "none"),
        (("client_secret_post",), "", None, "none"),
        ((), "s", None, "client_secret_basic"),
        (("client_secret_post", "client_secret_basic"), "s", None, "client_secret_basic"),
        (("client_secret_post", "none"), "s", None, "client_secret_post"),
        (("client_secret_basic",), "s", "client_secret_post", "client_secret_post"),
        (("client_secret_basic",), "s", 5, "client_secret_basic"),
        (("none",), "s", None, "none"),
    ],
)
def test_the_way_to_authenticate(methods, secret, registered, chosen):
    """The registration decides, then the metadata; the default is Basic."""
    assert choose_auth_method(issuer(*methods), secret, registered) == chosen


def test_no_way_to_authenticate():
    """The error lists the methods of the server."""
    with pytest.raises(AuthError, match="takes no client secret, but private_key_jwt"):
        choose_auth_method(issuer("private_key_jwt"), "s")


def read(document, status=200, requested=("a",)):
    return read_tokens(FetchResponse(status, json.dumps(document).encode()), URL, requested)


@pytest.mark.parametrize(
    ("expires_in", "expires_at", "renew_at"),
    [
        (3600, 1_003_600.0, 1_003_600.0 - EXPIRY_MARGIN),
        ("3600", 1_003_600.0, 1_003_600.0 - EXPIRY_MARGIN),
        (20.0, 1_000_020.0, 1_000_015.0),
        (0, 1_000_000.0, 1_000_000.0),
        (None, None, None),
        (-5, None, None),
        (True, None, None),
        ("soon", None, None),
        (10**400, None, None),
    ],
)
def test_the_end_of_a_token(clock, expires_in, expires_at, renew_at):
    """It is renewed before it expires, but a short-lived token not at once."""
    tokens = read({**GOOD, "expires_in": expires_in})

    assert (tokens.expires_at, tokens.renew_at) == (expires_at, renew_at)
    assert tokens.is_over() is (expires_at == clock.now)
    assert tokens.is_stale() is (expires_at == clock.now)


def test_the_scopes_of_a_token():
    """They are the granted scopes, or the requested ones."""
    assert read(GOOD).scopes == ("a",)
    assert read({**GOOD, "scope": "b c"}).scopes == ("b", "c")
    assert read({**GOOD, "scope": 5}).scopes == ("a",)


def test_the_type_of_a_token():
    """Bearer and DPoP are accepted in any case."""
    assert read({**GOOD, "token_type": "BEARER"}).token_type == "Bearer"
    assert read({**GOOD, "token_type": "dpop"}).token_type == "DPoP"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "gave no access token"),
        ([], "gave no access token"),
        ({**GOOD, "access_token": "a b"}, "gave no access token"),
        ({**GOOD, "access_token": "a\r\nb"}, "gave no access token"),
        ({**GOOD, "access_token": ""}, "of the type 'bearer'"),
        ({**GOOD, "token_type": "mac"}, "of the type 'mac'"),
        ({"access_token": "t"}, "of the type ''"),
    ],
)
def test_what_is_no_token(document, said):
    """An invalid token is never put into a header."""
    with pytest.raises(AuthError, match=said):
        read(document)


def test_a_refusal():
    """The error has its code and description, on one line."""
    with pytest.raises(TokenRefused) as caught:
        read({"error": "invalid_grant", "error_description": "used\ntwice"}, 400)
    assert (
        str(caught.value) == f"the token endpoint {URL} refused: invalid_grant: used\\u{{A}}twice"
    )
    assert caught.value.code == "invalid_grant"

    with pytest.raises(TokenRefused, match="refused: status 500"):
        read_tokens(FetchResponse(500, b"<html>"), URL, ())


async def test_an_endpoint_that_hangs(autojump_clock):
    """The request has its own timeout, besides that of the fetcher."""
    with pytest.raises(AuthError, match=f"{URL} did not answer within 30 s"):
        await request(Endpoint(None))


async def test_revocation():
    """The refresh token is revoked, if there is one; without an endpoint nothing is sent."""
    endpoint = Endpoint()
    await TokenClient(endpoint).revoke(LOGIN)
    form, _ = endpoint.sent
    assert form == {"token": "r", "token_type_hint": "refresh_token", "client_id": "c"}

    document = {**LOGIN.to_json(), "revocation_endpoint": ""}
    await TokenClient(endpoint).revoke(Login.from_json(document))
    assert len(endpoint.requests) == 1

    document = LOGIN.to_json()
    document["tokens"]["refresh_token"] = ""
    endpoint = Endpoint()
    await TokenClient(endpoint).revoke(Login.from_json(document))
    assert endpoint.sent[0]["token_type_hint"] == "access_token"

    with pytest.raises(AuthError, match="revoke answered 503"):
        await TokenClient(Endpoint(status=503)).revoke(LOGIN)


def test_records_go_through_json():
    """Records are restored from JSON, and their `repr` shows no secret."""
    assert Login.from_json(json.loads(json.dumps(LOGIN.to_json()))) == LOGIN
    assert "'t'" not in repr(LOGIN)
    assert "'r'" not in repr(LOGIN)


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"client": 5},
        {**LOGIN.to_json(), "more": 1},
        {**LOGIN.to_json(), "requested": 5},
        {**LOGIN.to_json(), "requested": [5]},
        {**LOGIN.to_json(), "issuer": None},
        {**LOGIN.to_json(), "tokens": {"access_token": "t", "expires_at": "soon"}},
    ],
)
def test_records_of_another_form(document):
    """An older or newer release may have written them: they count as missing."""
    assert Login.from_json(document) is None
