"""JWTs of an issuer: real keys, and known attacks."""

import base64
import contextlib
import hashlib
import hmac
import json
import sys
import time

import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.auth import InvalidToken, JWTVerifier

from .issuer import (
    AUDIENCE,
    ISSUER,
    REQUEST,
    claims,
    jwk,
    jwks,
    private,
    private_pem,
    public,
    public_pem,
    signed,
)

ALL = jwks(*(jwk(kind, kid=kind) for kind in ("rsa", "p256", "p384", "p521", "ed")))
NOT_SIGNED = "no trusted key has signed it: 'Signature verification failed'"


def verifier(**options):
    given = {"issuer": ISSUER, "audience": AUDIENCE, "keys": ALL, **options}
    return JWTVerifier(**{name: value for name, value in given.items() if value is not None})


async def refusal(token, **options):
    with pytest.raises(InvalidToken) as caught:
        await verifier(**options).verify(token, REQUEST)
    return caught.value.reason


def segment(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def forged(header, payload=None, signature=b""):
    """Build a token by hand."""
    return f"{segment(header)}.{segment(payload or claims())}.{segment(signature)}"


def signed_bytes(payload, kind="rsa", alg="RS256", **headers):
    """Sign any bytes as the payload of a token."""
    return jwt.PyJWS().encode(payload, private(kind), alg, headers)


@pytest.mark.parametrize(
    ("kind", "alg"),
    [
        *(("rsa", alg) for alg in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        *(("p256", "ES256"), ("p384", "ES384"), ("p521", "ES512"), ("ed", "EdDSA")),
    ],
)
async def test_good_tokens(kind, alg):
    """Each algorithm is accepted, with a named key and without a name."""
    for headers in ({"kid": kind}, None):
        token = signed(kind, alg, headers=headers, scope="read write", client_id="app")
        who = await verifier().verify(token, REQUEST)

        assert (who.subject, who.client_id, who.issuer) == ("ada", "app", ISSUER)
        assert who.scopes == {"read", "write"}
        assert who.expires_at == who["exp"]
        assert who["aud"] == AUDIENCE


@pytest.mark.parametrize(
    "keys",
    [
        public_pem("rsa"),
        public_pem("rsa").decode(),
        public("rsa"),
        jwk("rsa"),
        jwks(jwk("rsa")),
        [public_pem("p256"), jwk("rsa", kid="other", alg="RS256"), public("rsa")],
    ],
    ids=["pem", "text", "object", "jwk", "set", "list"],
)
async def test_forms_of_keys(keys):
    """A key without a name matches any name."""
    token = signed(headers={"kid": "rotating"})

    assert (await verifier(keys=keys).verify(token, REQUEST)).subject == "ada"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (private_pem("rsa"), "a public key in PEM"),
        ("a shared secret of some length", "a public key in PEM"),
        (b"", "a public key in PEM"),
        (private("rsa"), "is not a public key that can verify tokens"),
        (public("k1"), "is not a public key that can verify tokens"),
        (jwk("weak"), "an RSA key needs 2048 bits, not 1024"),
        (public_pem("weak"), "an RSA key needs 2048 bits, not 1024"),
        ({"kty": "oct", "k": "c2VjcmV0"}, "only public keys belong here"),
        ({**jwk("rsa"), "d": "AQAB"}, "only public keys belong here"),
        (jwk("rsa", use="enc"), "not for signatures"),
        (jwk("rsa", key_ops=["encrypt"]), "not for signatures"),
        (jwk("rsa", alg="HS256"), "not for 'HS256'"),
        (jwk("rsa", alg="none"), "not for 'none'"),
        (jwk("p256", crv="P-384"), "the JWK cannot be read"),
        (jwk("p256", crv="P-999"), "the JWK cannot be read"),
        ({"kty": "RSA", "n": 5}, "the JWK cannot be read"),
        ({}, "the JWK cannot be read"),
        ([], "keys= has no key"),
        ([[]], "list is not a public key"),
        (jwks(), "no key that could verify"),
        (jwks(jwk("weak"), {"kty": "new"}), "no key that could verify"),
        (jwks("text", jwk("weak")), "something else than keys"),
        ({"keys": {}}, "not a JWK Set"),
        (jwks(*[jwk("rsa")] * 65), "more than 64 keys"),
    ],
)
def test_unusable_keys(keys, message):
    """Private, symmetric, weak and malformed keys are refused where they are written."""
    with pytest.raises(ValueError, match=message):
        verifier(keys=keys)


async def test_keys_of_a_set_that_are_not_understood_are_left_out():
    """An issuer may have keys for other purposes (RFC 7517 section 5)."""
    keys = jwks("?", {"kty": "new"}, jwk("k1"), jwk("rsa", use="enc"), jwk("p256", kid=5))
    strict = verifier(keys=keys)

    named = signed("p256", "ES256", headers={"kid": "any"})
    assert (await strict.verify(named, REQUEST)).subject == "ada"
    with pytest.raises(InvalidToken, match="no key None for RS256 is trusted"):
        await strict.verify(signed(), REQUEST)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
members = st.sampled_from(["kty", "crv", "x", "y", "n", "e", "alg", "use", "key_ops", "kid"])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["rsa", "p256", "ed"]),
    st.dictionaries(members, json_values),
    st.lists(json_values, max_size=2),
)
def test_any_document_is_a_key_set_or_an_error(kind, changed, others):
    """A document of an issuer raises only `ValueError`."""
    with contextlib.suppress(ValueError):
        verifier(keys=jwks({**jwk(kind), **changed}, *others))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"audience": None}, r"needs audience=.*RFC 8707"),
        ({"audience": ""}, r"needs audience="),
        ({"audience": []}, r"needs audience="),
        ({"audience": [AUDIENCE, ""]}, r"needs audience="),
        ({"issuer": None}, r"needs issuer="),
        ({"issuer": ""}, r"needs issuer="),
        ({"keys": None}, r"jwks_uri= or keys=, one of them"),
        ({"jwks_uri": "https://a.example/keys"}, r"jwks_uri= or keys=, one of them"),
        ({"keys": None, "jwks_uri": "http://a.example/keys"}, r"jwks_uri .* must be https"),
        ({"algorithms": ["HS256"]}, r"not 'HS256': with HS256"),
        ({"algorithms": ["RS256", "none"]}, r"not 'none'"),
        ({"algorithms": "HS512"}, r"not 'HS512'"),
        ({"algorithms": []}, r"allows nothing"),
        ({"algorithms": "PS256", "keys": public("ed")}, r"EdDSA, which algorithms= does not allow"),
    ],
)
def test_what_is_not_safe_cannot_be_made(options, message):
    """The error says what is missing, and why it matters."""
    with pytest.raises(ValueError, match=message):
        verifier(**options)


async def test_a_public_key_is_no_secret():
    """HMAC with the public key as its secret is refused."""
    for pem in (public_pem("rsa"), public_pem("rsa").strip()):
        text = f"{segment({'alg': 'HS256', 'typ': 'JWT'})}.{segment(claims())}"
        signature = hmac.digest(pem, text.encode(), hashlib.sha256)

        reason = await refusal(f"{text}.{segment(signature)}", keys=public_pem("rsa"))
        assert reason == "the algorithm 'HS256' is not allowed"


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", "HS256", "rs256", "XX"])
async def test_algorithms_that_are_not_allowed(alg):
    """Such tokens are refused, whatever their header says."""
    assert "is not allowed" in await refusal(forged({"alg": alg}))


async def test_the_configuration_chooses_the_algorithm():
    """A valid signature with an algorithm that is not listed is refused."""
    for allowed in (["PS256", "ES256"], "PS256"):
        options = {"algorithms": allowed, "keys": public("rsa")}
        assert "is not allowed" in await refusal(signed("rsa", "RS256"), **options)
        token = signed("rsa", "PS256")
        assert (await verifier(**options).verify(token, REQUEST)).subject == "ada"


async def test_a_key_is_for_its_own_algorithm():
    """A key does not verify another algorithm, by its kind or its `alg`."""
    pinned = jwks(jwk("rsa", kid="rsa", alg="PS256"))

    reason = await refusal(signed("rsa", headers={"kid": "p256"}))
    assert reason == "no key 'p256' for RS256 is trusted"
    assert "no key 'rsa' for RS256" in await refusal(signed(headers={"kid": "rsa"}), keys=pinned)


@pytest.mark.parametrize(
    "header",
    [
        {"jwk": jwk("rsa-2")},
        {"jku": "https://evil.example/keys"},
        {"x5u": "https://evil.example/cert"},
        {"x5c": ["MIIB"]},
    ],
    ids=lambda header: next(iter(header)),
)
async def test_keys_that_tokens_bring_along_are_not_used(header):
    """A forged token could bring its own key (RFC 8725 section 3.10)."""
    assert await refusal(signed("rsa-2", headers=header)) == NOT_SIGNED


async def test_signatures():
    """Signatures of other keys or texts, cut ones, and missing ones are refused."""
    head, payload, signature = signed().split(".")

    assert await refusal(signed("rsa-2")) == NOT_SIGNED
    assert await refusal(f"{head}.{segment(claims(sub='eve'))}.{signature}") == NOT_SIGNED
    assert await refusal(f"{head}.{payload}.") == NOT_SIGNED
    assert await refusal(f"{head}.{payload}.{signature[:-2]}") == NOT_SIGNED
    # An EC signature of zeros was once valid for every text.
    for alg, size in (
        ("ES256", 64),
        ("ES256", 3),
        ("RS256", 255),
        ("EdDSA", 64),
        ("RS256", 256),
        ("PS256", 256),
    ):
        assert await refusal(forged({"alg": alg}, signature=bytes(size))) == NOT_SIGNED


@pytest.mark.parametrize(
    "token",
    [
        *("x", "..", "a.b", "a.b.c", "a.b.c.d", "\u20ac.\u20ac.\u20ac"),
        forged(b"\xff\xfe"),
        forged([]),
        forged({}),
        forged({"alg": 5}),
        forged({"alg": ["RS256"]}),
        forged({"alg": "RS256", "kid": 5}),
        forged({"alg": "RS256", "typ": 5}),
        forged({"alg": "RS256", "crit": ["exp"], "exp": 1}),
        forged({"alg": "RS256", "b64": False, "crit": ["b64"]}),
        forged(b"[" * 100_000),
    ],
    ids=range(16),
)
async def test_malformed_tokens(token):
    """Each is refused, and no other exception is raised."""
    assert await refusal(token)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60) | st.from_regex(r"[A-Za-z0-9_-]{2,9}\.[\w.-]{0,9}", fullmatch=True))
async def test_garbage(token):
    """Any text is refused with `InvalidToken`."""
    assert await refusal(token)


names = st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "iat", "scope", "scp", "client_id"])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.dictionaries(names, json_values, min_size=1))
async def test_signed_garbage(changed):
    """Claims of any type make a principal or raise `InvalidToken`."""
    payload = {**claims(), **changed}
    token = signed_bytes(json.dumps(payload).encode(), "ed", "EdDSA")
    try:
        who = await verifier().verify(token, REQUEST)
    except InvalidToken:
        return
    assert who.issuer == ISSUER
    assert who.expires_at == payload["exp"]
    assert AUDIENCE in payload["aud"]


@pytest.mark.parametrize("payload", [b"", b"[]", b"5", b"{", b"\xff", b"[" * 200 + b"]" * 200])
async def test_signed_texts_that_are_no_claims(payload):
    """A signature alone is not enough for a token."""
    assert (await refusal(signed_bytes(payload))).startswith("its claims are not")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": None}, "claims are missing: exp"),
        ({"iss": None, "aud": None}, "claims are missing: iss, aud"),
        ({"sub": None}, "claims are missing: sub"),
        ({"sub": ""}, "`sub` is not a string, or empty"),
        ({"sub": 5}, "its claims break RFC 7519: 'Subject must be a string'"),
        ({"client_id": []}, "`client_id` is not a string, or empty"),
        ({"azp": 1}, "`azp` is not a string, or empty"),
        ({"iss": ISSUER.rstrip("/")}, "it is from another issuer: 'https://issuer.example.com'"),
        ({"aud": "https://other.example.com"}, "for another server: ['https://other.example.com']"),
        ({"aud": [AUDIENCE + "/", AUDIENCE[:-1]]}, "for another server"),
        ({"aud": []}, "for another server"),
        ({"aud": {AUDIENCE: 1}}, "`aud` is neither a string nor a list"),
        ({"aud": [AUDIENCE, 5]}, "`aud` is neither a string nor a list"),
        ({"exp": str(int(time.time()) + 600)}, "`exp` is not a number of seconds"),
        ({"exp": True}, "`exp` is not a number of seconds"),
        ({"exp": [1]}, "`exp` is not a number of seconds"),
        ({"exp": 10**400}, "`exp` is not a number of seconds"),
        ({"nbf": "0"}, "`nbf` is not a number of seconds"),
        ({"iat": {}}, "`iat` is not a number of seconds"),
        ({"scope": 5}, "`scope` is neither a string nor a list"),
        ({"scp": ["a", 5]}, "`scp` is neither a string nor a list"),
        ({"nbf": float(10**15)}, "`nbf` is not a number of seconds"),
        ({"nbf": False}, "`nbf` is not a number of seconds"),
        ({"iat": "x" * 500}, "`iat` is not a number of seconds"),
        ({"iat": 10**400}, "`iat` is not a number of seconds"),
        ({"iss": [ISSUER]}, "it is from another issuer: ['https://issuer.example.com/']"),
        ({"aud": ""}, "for another server: ['']"),
        ({"aud": [[AUDIENCE]]}, "`aud` is neither a string nor a list"),
        ({"jti": 5}, "its claims break RFC 7519: 'JWT ID must be a string'"),
        ({"cnf": {"jkt": "x"}}, "bound to a key of its owner"),
        ({"typ": "ID"}, "`typ` says that it is not an access token: 'ID'"),
        ({"token_use": "id"}, "`token_use` says that it is not an access token: 'id'"),
        ({"token_type": "refresh"}, "`token_type` says that it is not an access token: 'refresh'"),
    ],
)
async def test_claims_that_are_wrong(changed, reason):
    """Each is refused for its own reason, which is logged."""
    assert reason in await refusal(signed_bytes(json.dumps(claims(**changed)).encode()))


@pytest.mark.parametrize("claim", ["exp", "nbf"])
async def test_the_last_of_two_claims_counts(claim):
    """RFC 7519 section 4 allows that; all readers of a token agree."""
    good, bad = {"exp": (9999999999, 1), "nbf": (1, 9999999999)}[claim]
    text = json.dumps(claims(**{claim: "two"}))
    ends_good, ends_bad = (
        text.replace('"two"', f'{first}, "{claim}": {last}').encode()
        for first, last in ((bad, good), (good, bad))
    )

    assert (await verifier().verify(signed_bytes(ends_good), REQUEST))[claim] == good
    assert await refusal(signed_bytes(ends_bad))


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", '"\\ud800"', "9" * 5000])
async def test_json_that_python_reads_and_others_do_not(value):
    """PyJWT accepts it; a server must not."""
    text = json.dumps(claims(extra="value")).replace('"value"', value)

    assert (await refusal(signed_bytes(text.encode()))).startswith("its claims are not JSON")


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("nbf", "`nbf` is not a number of seconds"),
        ("iat", "`iat` is not a number of seconds"),
        ("jti", "its claims break RFC 7519: 'JWT ID must be a string'"),
        ("sub", "its claims break RFC 7519: 'Subject must be a string'"),
    ],
)
async def test_null_is_not_a_registered_claim(claim, reason):
    """A claim is absent or of its type (RFC 7519 section 4.1)."""
    payload = json.dumps({**claims(client_id="app"), claim: None}).encode()

    assert await refusal(signed_bytes(payload), required_claims=()) == reason


async def test_a_token_has_three_parts():
    """PyJWT ignores the dot in a payload of two parts; other readers use the first part."""
    header, payload, _ = signed().split(".")
    text = f"{header}.{payload[:8]}.{payload[8:]}".encode()
    algorithm = jwt.get_algorithm_by_name("RS256")
    signature = base64.urlsafe_b64encode(algorithm.sign(text, private("rsa"))).rstrip(b"=")

    token = f"{text.decode()}.{signature.decode()}"
    assert await refusal(token) == "it is not a JWT: it must have three parts"


async def test_a_time_beyond_all_times():
    """JSON allows 1e999, which Python reads as infinity."""
    text = json.dumps(claims(exp="end")).replace('"end"', "1e999")

    assert "its claims are not JSON" in await refusal(signed_bytes(text.encode()))


@pytest.mark.parametrize(
    ("claim", "after", "leeway", "reason"),
    [
        *(("exp", -30, 30, "it expired 3"), ("exp", -1, 30, None), ("exp", -200, 300, None)),
        *(("exp", 0, 0, "it expired "), ("exp", -300, 300, "it expired 30")),
        *(("exp", 60, 0, None), ("exp", 60.5, 0, None), ("exp", -30.5, 30, "it expired 3")),
        *(("nbf", 20, 30, None), ("nbf", 0, 0, None), ("nbf", 20.5, 30, None)),
        *(("nbf", 90, 30, "it is not valid yet: `nbf` is "), ("nbf", 60, 0, "not valid yet")),
        *(("iat", 20, 30, None), ("iat", 0, 0, None), ("iat", -(10**9), 0, None)),
        *(("iat", 90, 30, "it is not valid yet: `iat` is "), ("iat", 60, 0, "not valid yet")),
    ],
)
async def test_clocks_may_differ_by_the_leeway(claim, after, leeway, reason):
    """Seconds before and after now are accepted within the leeway, in both directions."""
    token = signed(**{"iat": None, claim: int(time.time()) + after})

    if reason is None:
        assert (await verifier(leeway=leeway).verify(token, REQUEST)).subject == "ada"
    else:
        assert reason in await refusal(token, leeway=leeway)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, set()),
        ({"scope": "a  b a"}, {"a", "b"}),
        ({"scope": ["a", "b"]}, {"a", "b"}),
        ({"scp": "a b"}, {"a", "b"}),
        ({"scp": ["a", "b"]}, {"a", "b"}),
        ({"scope": "a", "scp": "b"}, {"a"}),
        ({"scope": "", "scp": "b"}, set()),
    ],
)
async def test_scopes(changed, expected):
    """`scope` is used, or else `scp`; as a string or a list."""
    assert (await verifier().verify(signed(**changed), REQUEST)).scopes == expected


async def test_audiences():
    """One of the server's names in the audience is enough."""
    check = verifier(audience=["urn:mcp", AUDIENCE])

    for aud in ("urn:mcp", [AUDIENCE], ["x", "urn:mcp"]):
        assert (await check.verify(signed(aud=aud), REQUEST)).subject == "ada"


async def test_required_claims():
    """A token without a user is accepted if configured; other claims can be required."""
    machines = verifier(required_claims=())
    who = await machines.verify(signed(sub=None, azp="robot"), REQUEST)

    assert (who.subject, who.client_id) == (None, "robot")
    reason = await refusal(signed(sub=None), required_claims=())
    assert reason == "it names neither a user nor a client"
    reason = await refusal(signed(), required_claims=["sub", "tenant"])
    assert reason == "claims are missing: tenant"


async def test_types_of_tokens():
    """A logout token or a proof of the same issuer is not an access token."""
    untyped = signed_bytes(json.dumps(claims()).encode(), typ=None)
    strict = verifier(only_access_tokens=True)

    for typ in ("JWT", "jwt", "at+jwt", "application/AT+JWT"):
        assert await verifier().verify(signed(headers={"typ": typ}), REQUEST)
    assert await verifier().verify(untyped, REQUEST)
    for typ in ("logout+jwt", "dpop+jwt", "oauth-id-jag+jwt"):
        assert "is not an access token" in await refusal(signed(headers={"typ": typ}))
    assert await strict.verify(signed(headers={"typ": "at+jwt"}), REQUEST)
    for token in (signed(), untyped):
        assert "is not an access token" in await refusal(token, only_access_tokens=True)


async def test_the_log_shows_what_a_client_chose_on_one_line():
    """Claims and headers from a client are logged in one short line."""
    line = "x\n2026-01-01 all is well" + "y" * 500
    for token in (
        signed(headers={"kid": line}),
        signed(headers={"typ": line}),
        signed(headers={"crit": [line]}),
        signed(iss=line),
        signed(aud=line),
        forged({"alg": line}),
    ):
        reason = await refusal(token)
        assert "\n" not in reason
        assert len(reason) < 200


def test_the_library_may_be_missing(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.auth._jose", None)
    monkeypatch.delattr("noizu_mcp.auth._jose", raising=False)

    with pytest.raises(ImportError, match=r"needs PyJWT: pip install 'noizu-mcp\[auth\]'"):
        verifier()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"leeway": value}, r"leeway must be seconds from 0 to 300, not ")
            for value in (float("nan"), float("inf"), -1, 301, 1e9, True, "30")
        ),
        *(
            ({name: value}, f"{name} must be a number of seconds above 0, not ")
            for name in ("jwks_ttl", "jwks_cooldown")
            for value in (float("nan"), float("inf"), -1, 0, True, "30")
        ),
        *(
            ({"required_claims": value}, r"required_claims must be a list of names .* \['sub'\]")
            for value in ("sub", "", ["sub", ""], [5])
        ),
    ],
)
def test_invalid_options(options, message):
    """NaN compares with nothing, and would accept every old token."""
    with pytest.raises(ValueError, match=message):
        verifier(**options)


def test_options_at_their_bounds():
    """Integers and limits of options are accepted."""
    assert verifier(leeway=300, jwks_ttl=1, jwks_cooldown=0.5, required_claims=())
    assert verifier(leeway=0, required_claims={"sub"})
