"""The log of the HTTP library: no request of the package, all requests of the user."""

import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
import trio

from noizu_mcp import Server, connect
from noizu_mcp.auth import FetchRequest, HTTPFetcher
from noizu_mcp.cli import main
from noizu_mcp.openapi import OpenAPI

SECRET = "topsecret"


class Api(BaseHTTPRequestHandler):
    """Answers everything with an error, and with a secret in its headers."""

    def do_GET(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(404)
        self.send_header("set-cookie", f"id={SECRET}")
        self.send_header("content-length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 - names of the library

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def url():
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def use_client(url):
    with pytest.raises(Exception, match="404"):
        async with connect(f"{url}/mcp?key={SECRET}"):
            pass


async def use_api(url):
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Api", "version": "1"},
        "servers": [{"url": url}],
        "paths": {
            "/x": {
                "get": {
                    "operationId": "get",
                    "parameters": [{"name": "key", "in": "query", "schema": {"type": "string"}}],
                    "responses": {},
                }
            }
        },
    }

    class Front(Server, name="front", version="1"):
        providers = [OpenAPI(document)]

    async with connect(Front) as client:
        [tool] = await client.list_tools()
        result = await client.call_tool(tool.name, {"key": SECRET})
        assert result.is_error


async def use_fetcher(url):
    found = await HTTPFetcher().fetch(FetchRequest(url=f"{url}/keys?key={SECRET}"))
    assert found.status == 404


@pytest.mark.parametrize("use", [use_client, use_api, use_fetcher])
@pytest.mark.parametrize("proxy", [False, True])
async def test_our_requests(proxy, use, url, caplog, monkeypatch):
    """No URL and no header is logged, at any level, with and without a proxy."""
    if proxy:
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
    with caplog.at_level(logging.DEBUG):
        await use(url)

    assert SECRET not in caplog.text
    assert "HTTP Request" not in caplog.text


def test_a_check_of_a_url(url, caplog, capsys):
    """Requests of `doctor` are not logged, either."""
    with caplog.at_level(logging.DEBUG):
        main(["doctor", f"{url}/mcp?key={SECRET}"])

    assert SECRET not in caplog.text
    assert SECRET in capsys.readouterr().out


async def test_requests_of_the_user(url, caplog):
    """They are logged as usual, also beside ours."""
    with caplog.at_level(logging.INFO):
        async with trio.open_nursery() as nursery, httpx2.AsyncClient() as client:
            nursery.start_soon(use_client, url)
            await client.get(f"{url}/mine")

    assert f"HTTP Request: GET {url}/mine" in caplog.text
    assert SECRET not in caplog.text
