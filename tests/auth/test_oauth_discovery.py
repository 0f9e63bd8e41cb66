"""From the refusal of a server to the endpoints of its authorization server."""

import pytest

from noizu_mcp import AuthError
from noizu_mcp.auth import ProtectedServer
from noizu_mcp.auth.client._discovery import covers, discover, metadata_urls

from .oauth_kit import LOGIN, MCP, RESOURCE, SERVER, World, refusal

OAUTH = f"{LOGIN}/.well-known/oauth-authorization-server"
OPENID = f"{LOGIN}/.well-known/openid-configuration"


async def failure(world, server=SERVER, challenge="Bearer"):
    with pytest.raises(AuthError) as caught:
        await discover(server, refusal(challenge), world)
    return str(caught.value)


async def test_the_challenge_says_where_to_begin():
    """Its URL is requested first, and no other if it answers."""
    world = World()
    custom = "https://api.example.com/custom/metadata.json"
    world.documents[custom] = 200, world.resource

    found = await discover(SERVER, refusal(f'Bearer resource_metadata="{custom}"'), world)

    assert world.asked == [custom, OAUTH]
    assert (found.resource, found.issuer.issuer) == (MCP, LOGIN)
    assert found.issuer.token_endpoint == f"{LOGIN}/token"


async def test_without_it_the_path_comes_before_the_root():
    """Without it the well-known URL of the path comes first, then that of the origin."""
    world = World()
    world.resource = None
    document = {"resource": "https://api.example.com", "authorization_servers": [LOGIN]}
    world.documents[RESOURCE] = 200, {**document, "scopes_supported": ["a", "b", 5]}

    found = await discover(SERVER, refusal(), world)

    assert world.asked == [f"{RESOURCE}/mcp", RESOURCE, OAUTH]
    assert found.resource == "https://api.example.com"
    assert found.scopes_supported == ("a", "b")


def test_the_metadata_of_an_issuer_is_at_these_urls():
    """There are three URLs with a path, two without; never the root for an issuer with a path."""
    assert metadata_urls(LOGIN) == [OAUTH, OPENID]
    assert metadata_urls(f"{LOGIN}/") == [OAUTH, OPENID]
    assert metadata_urls(f"{LOGIN}/t1") == [
        f"{OAUTH}/t1",
        f"{OPENID}/t1",
        f"{LOGIN}/t1/.well-known/openid-configuration",
    ]


async def test_the_urls_are_asked_in_order():
    """Only the last one may have an answer."""
    world = World()
    issuer = f"{LOGIN}/t1"
    world.resource["authorization_servers"] = [issuer]
    world.logins = []
    world.documents[f"{issuer}/.well-known/openid-configuration"] = (
        200,
        {**world.login.metadata, "issuer": issuer},
    )

    found = await discover(SERVER, refusal(), world)

    assert found.issuer.issuer == issuer
    assert world.asked[1:] == metadata_urls(issuer)


async def test_a_known_issuer_is_preferred():
    """Of several authorization servers the one where the client is known is used."""
    world = World()
    world.resource["authorization_servers"] = ["https://other.example.com", LOGIN]

    found = await discover(SERVER, refusal(), world, preferred=LOGIN)

    assert found.issuer.issuer == LOGIN


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
def test_what_stands_for_a_server(resource, url, is_covered):
    """The resource is the server's URL, or a parent of it at the same origin."""
    assert covers(resource, url) is is_covered


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
        await discover(SERVER, refusal(), world)

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
        await discover(SERVER, refusal(), world)


async def test_no_metadata_at_all():
    """The error lists the requested URLs."""
    world = World()
    world.logins = []

    said = await failure(world)

    assert said.startswith(f"the authorization server {LOGIN} has no metadata: {OAUTH} (404), ")


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

    found = await discover(SERVER, refusal(), world)

    assert (found.resource, found.issuer.issuer, found.issuer.assumed) == (None, origin, True)
    assert found.issuer.token_endpoint == f"{LOGIN}/token"
    assert found.issuer.challenge_methods is None


async def test_a_server_of_2025_03_26_without_metadata():
    """The default endpoints are at its origin."""
    world = World()
    world.resource = None

    found = await discover(ProtectedServer("http://[::1]:8000/mcp?a=1"), refusal(), world)

    issuer = found.issuer
    assert issuer.issuer == "http://[::1]:8000"
    assert issuer.authorization_endpoint == "http://[::1]:8000/authorize"
    assert issuer.token_endpoint == "http://[::1]:8000/token"
    assert issuer.registration_endpoint == "http://[::1]:8000/register"
    assert world.asked[0] == "http://[::1]:8000/.well-known/oauth-protected-resource/mcp"
