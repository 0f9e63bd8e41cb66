"""From the refusal of a server to the endpoints of its authorization server."""

from urllib.parse import parse_qs, urlsplit

import pytest

from noizu_mcp import AuthError
from noizu_mcp.auth import ProtectedServer

from .oauth_kit import LOGIN, MCP, RESOURCE, SERVER, World, logged_in, refusal

OAUTH = f"{LOGIN}/.well-known/oauth-authorization-server"
OPENID = f"{LOGIN}/.well-known/openid-configuration"
CUSTOM = "https://api.example.com/custom/metadata.json"
TO_CUSTOM = f'Bearer resource_metadata="{CUSTOM}"'


async def login(world, server=SERVER, challenge="Bearer", **options):
    """Log in at the authorization server of a server; return the parameters of the login."""
    await world.oauth(**options).bind(server).handle(refusal(challenge))
    return world.opened


async def failure(world, server=SERVER, challenge="Bearer", **options):
    with pytest.raises(AuthError) as caught:
        await login(world, server, challenge, **options)
    return str(caught.value)


async def test_the_challenge_says_where_to_begin():
    """Its URL is requested first, and no other if it answers."""
    world = World()
    world.documents[CUSTOM] = 200, world.resource

    opened = await login(world, challenge=TO_CUSTOM)

    assert world.asked == [CUSTOM, OAUTH, f"{LOGIN}/register", f"{LOGIN}/token"]
    assert opened["resource"] == MCP


async def test_without_it_the_path_comes_before_the_root():
    """Without it the well-known URL of the path comes first, then that of the origin."""
    world = World()
    world.resource = None
    document = {"resource": "https://api.example.com", "authorization_servers": [LOGIN]}
    world.documents[RESOURCE] = 200, {**document, "scopes_supported": ["a", "b", 5]}

    opened = await login(world)

    assert world.asked[:3] == [f"{RESOURCE}/mcp", RESOURCE, OAUTH]
    assert opened["resource"] == "https://api.example.com"
    assert opened["scope"].split()[:2] == ["a", "b"]


@pytest.mark.parametrize(
    ("issuer", "urls"),
    [
        (LOGIN, [OAUTH, OPENID]),
        (f"{LOGIN}/", [OAUTH, OPENID]),
        (
            f"{LOGIN}/t1",
            [f"{OAUTH}/t1", f"{OPENID}/t1", f"{LOGIN}/t1/.well-known/openid-configuration"],
        ),
    ],
)
async def test_the_metadata_of_an_issuer_is_at_these_urls(issuer, urls):
    """They are requested in order; never the root for an issuer with a path."""
    world = World()
    world.resource["authorization_servers"] = [issuer]
    world.logins = []

    said = await failure(world)

    assert said.startswith(f"the authorization server {issuer} has no metadata: {urls[0]} (404), ")
    assert world.asked[1:] == urls


async def test_only_the_last_url_may_have_an_answer():
    """It is used like any other."""
    world = World()
    issuer = f"{LOGIN}/t1"
    world.resource["authorization_servers"] = [issuer]
    metadata = {**world.login.metadata, "issuer": issuer}
    world.documents[f"{issuer}/.well-known/openid-configuration"] = 200, metadata
    for url in (f"{OAUTH}/t1", f"{OPENID}/t1"):
        world.documents[url] = 404, {}

    await failure(world)  # the answer of the browser comes from another issuer

    assert world.asked[-1] == f"{LOGIN}/register"


async def test_a_known_issuer_is_preferred():
    """Of several authorization servers the one where the client is known is used."""
    world = World()
    credentials, sent = await logged_in(world)
    world.resource["authorization_servers"] = ["https://other.example.com", LOGIN]

    assert await credentials.handle(refusal(sent=sent))

    assert not [url for url in world.asked if "other.example.com" in url]


@pytest.mark.parametrize(
    ("resource", "url", "is_covered"),
    [
        (MCP, MCP, True),
        ("https://api.example.com", MCP, True),
        ("https://api.example.com/", MCP, True),
        ("https://API.example.com:443/mcp/", MCP, True),
        ("https://api.example.com/mcp?a=1", f"{MCP}?a=1", True),
        ("https://api.example.com/mcp?a=1", MCP, False),
        ("https://api.example.com/mc", MCP, False),
        ("https://api.example.com/mcp/deep", MCP, False),
        ("https://evil.example.com/mcp", MCP, False),
        ("https://api.example.com:444/mcp", MCP, False),
        ("http://api.example.com/mcp", MCP, False),
        ("https://api.example.com:x/mcp", MCP, False),
        ("", MCP, False),
    ],
)
async def test_what_stands_for_a_server(resource, url, is_covered):
    """The resource is the server's URL, or a parent of it at the same origin."""
    world = World()
    world.documents[CUSTOM] = 200, {**world.resource, "resource": resource}

    if is_covered:
        assert (await login(world, ProtectedServer(url), TO_CUSTOM))["resource"] == resource
    else:
        assert "that of another server" in await failure(world, ProtectedServer(url), TO_CUSTOM)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"resource": "https://evil.example.com/mcp"}, "that of another server, 'https://evil"),
        ({"resource": 5}, "that of another server, 5"),
        ({"authorization_servers": []}, "names no authorization server"),
        ({"authorization_servers": "x"}, "names no authorization server"),
        ({"authorization_servers": ["http://login.example.com"]}, "must be https.*it is not used"),
        ({"authorization_servers": ["javascript:alert(1)"]}, "it is not used"),
    ],
)
async def test_wrong_resource_metadata(change, said):
    """The client stops before it requests anything from an authorization server."""
    world = World()
    world.resource.update(change)

    with pytest.raises(AuthError, match=said):
        await login(world)

    assert world.asked == [f"{RESOURCE}/mcp"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"issuer": f"{LOGIN}/"}, "its endpoints are not used"),
        ({"issuer": None}, "its endpoints are not used"),
        ({"token_endpoint": None}, "names no token_endpoint"),
        ({"token_endpoint": "http://login.example.com/token"}, "token_endpoint at .*must be https"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint at .*not used"),
        ({"registration_endpoint": 5}, "registration_endpoint at .*is not a URL"),
    ],
)
async def test_wrong_metadata_of_an_issuer(change, said):
    """None of its endpoints is used."""
    world = World()
    world.login.metadata.update(change)

    with pytest.raises(AuthError, match=said):
        await login(world)


async def test_what_is_no_json():
    """An HTML page instead of a document is an error."""
    world = World()
    world.documents[f"{RESOURCE}/mcp"] = 200, b"<html>"
    assert await failure(world) == f"the metadata at {RESOURCE}/mcp is not a JSON object"

    world.documents[f"{RESOURCE}/mcp"] = 200, []
    assert await failure(world) == f"the metadata at {RESOURCE}/mcp is not a JSON object"


async def test_a_server_that_cannot_answer_now():
    """A failure does not mean that the server is an old one."""
    world = World()
    world.documents[f"{RESOURCE}/mcp"] = 503, {}
    assert await failure(world) == f"the resource metadata at {RESOURCE}/mcp cannot be had: 503"

    world.down = True
    said = f"{RESOURCE}/mcp cannot be reached: no answer within 5 s"
    assert await failure(world) == said


async def test_a_url_without_https_is_not_asked():
    """A URL without https in a challenge is refused, too."""
    world = World()

    said = await failure(world, challenge='Bearer resource_metadata="http://api.example.com/x"')

    assert "must be https" in said
    assert world.asked == []


async def test_a_server_of_2025_03_26():
    """It is its own authorization server; the issuer in its metadata may differ."""
    world = World()
    world.resource = None
    origin = SERVER.origin
    document = {**world.login.metadata, "issuer": "http://localhost/wrong"}
    del document["code_challenge_methods_supported"]
    world.documents[f"{origin}/.well-known/oauth-authorization-server"] = 200, document

    said = await failure(world)

    # All endpoints are used, without PKCE in the metadata; only its issuer is not believed.
    assert said.startswith(f"the answer of the browser comes from {LOGIN!r}, not from {origin};")
    assert "resource" not in world.opened


async def test_a_server_of_2025_03_26_without_metadata():
    """The default endpoints are at its origin."""
    world, opened = World(), []
    world.resource = None
    origin = "http://[::1]:8000"
    server = ProtectedServer(f"{origin}/mcp?a=1")

    async def open_browser(url):
        opened.append(url)
        return "code", parse_qs(urlsplit(url).query)["state"][0]

    await failure(world, server)
    assert world.asked[0] == f"{origin}/.well-known/oauth-protected-resource/mcp"
    assert world.asked[-1] == f"{origin}/register"
    await failure(world, server, client_id="c", open_browser=open_browser)
    assert opened[0].startswith(f"{origin}/authorize?")
    assert world.asked[-1] == f"{origin}/token"
