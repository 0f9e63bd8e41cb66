"""An HTTP API that answers each request with a description of it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from noizu_mcp import Server
from noizu_mcp.openapi import OpenAPI


class Api(BaseHTTPRequestHandler):
    """Answers with the request as JSON, or with the response that the test has set for its path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = {"method": self.command, "path": self.path, "headers": headers}
        seen["body"] = body.decode("latin-1")
        self.server.seen.append(seen)
        answer = self.server.answers.get(self.path.partition("?")[0])
        status, own, data = answer or (200, {"content-type": "application/json"}, json.dumps(seen))
        data = data.encode() if isinstance(data, str) else data
        self.send_response(status)
        for name, value in own.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815 - names of the library

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def running_api():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def api(running_api):
    """The API: `seen` has the requests, `answers` the responses by path, `url` its address."""
    running_api.seen = []
    running_api.answers = {}
    running_api.url = f"http://127.0.0.1:{running_api.server_port}"
    return running_api


@pytest.fixture
def serving(api):
    """Return a function that makes the class of a server with the tools of a document."""

    def make(source, **options):
        if isinstance(source, dict):
            source.setdefault("servers", [{"url": api.url + "/v1"}])
        return type(Server)(
            "Front", (Server,), {"providers": [OpenAPI(source, **options)]}, name="f", version="1"
        )

    return make
