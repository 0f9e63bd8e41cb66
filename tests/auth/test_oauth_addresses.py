"""Addresses that a client connects to for URLs from a server."""

import ssl

import pytest
import trio

from noizu_mcp.auth import FetchError, FetchRequest, ProtectedServer
from noizu_mcp.auth.client import _credentials
from noizu_mcp.auth.client._credentials import ClientFetcher

PUBLIC = ProtectedServer("https://public.example/mcp")
PRIVATE = ProtectedServer("https://private.example:8443/mcp")


@pytest.fixture(autouse=True)
def names(monkeypatch):
    """Names with one address each; the list of the lookups."""
    addresses = {"public.example": "93.184.216.34", "private.example": "10.0.0.1"}
    looked_up = []

    async def getaddrinfo(host, port, **options):
        looked_up.append((host, port))
        return [(2, 1, 6, "", (addresses.get(host, host), port))]

    monkeypatch.setattr(trio.socket, "getaddrinfo", getaddrinfo)
    return looked_up


async def test_a_server_on_the_internet_names_no_private_address(peer):
    """Otherwise it could make the client send requests into its own network."""
    fetcher = ClientFetcher(PUBLIC, allow_private=False)

    with pytest.raises(FetchError, match=r"127.0.0.1, which is no public address; allow_private="):
        await fetcher.fetch(FetchRequest(url=peer.url("/")))

    assert peer.received == []


async def test_a_private_server_names_any_address(peer, names):
    """A client of a private server is in that network. The server is looked up once."""
    fetcher = ClientFetcher(PRIVATE, allow_private=False)
    for _ in range(2):
        assert (await fetcher.fetch(FetchRequest(url=peer.url("/")))).status == 404

    assert [each for each in names if each[0] == "private.example"] == [("private.example", 8443)]


async def test_private_addresses_may_be_allowed(peer, names):
    """Then nothing is looked up in advance."""
    fetcher = ClientFetcher(PUBLIC, allow_private=True)

    assert (await fetcher.fetch(FetchRequest(url=peer.url("/")))).status == 404
    assert ("public.example", 443) not in names


async def test_certificates_for_the_server_are_for_the_server(monkeypatch):
    """Other origins are verified with the system's certificates."""
    made = []

    class Fetcher:
        def __init__(self, **options):
            self.options = options

        async def fetch(self, request):
            made.append((request.url, self.options["ssl_context"]))

    monkeypatch.setattr(_credentials, "HTTPFetcher", Fetcher)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    fetcher = ClientFetcher(ProtectedServer(PUBLIC.url, context), allow_private=False)
    urls = ["https://public.example/x", "https://login.example/x", "https://public.example/y"]
    for url in urls:
        await fetcher.fetch(FetchRequest(url=url))

    assert made == [(urls[0], context), (urls[1], None), (urls[2], context)]
