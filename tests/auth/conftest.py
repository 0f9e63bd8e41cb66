"""What the tests of authorisation share: an issuer with real keys, and a real HTTP server."""

import contextlib
import functools
import json
import time
from typing import NamedTuple

import h11
import jwt
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from noizu_mcp.auth import AuthRequest

ISSUER = "https://issuer.example.com/"
AUDIENCE = "https://mcp.example.com/mcp"
REQUEST = AuthRequest("POST", "/mcp")
MAKERS = {
    "rsa": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "rsa-2": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "weak": lambda: rsa.generate_private_key(public_exponent=65537, key_size=1024),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "k1": lambda: ec.generate_private_key(ec.SECP256K1()),
    "ed": ed25519.Ed25519PrivateKey.generate,
}


@functools.cache
def private(kind):
    """A private key, made once for all tests."""
    return MAKERS[kind]()


def public(kind):
    return private(kind).public_key()


def public_pem(kind):
    return public(kind).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_pem(kind):
    return private(kind).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def jwk(kind, **members):
    """The public key as a JWK, made by the library that made the key."""
    algorithm = {"r": "RS256", "w": "RS256", "p": "ES256", "k": "ES256K", "e": "EdDSA"}[kind[0]]
    shape = jwt.get_algorithm_by_name(algorithm).to_jwk(public(kind), as_dict=True)
    shape.pop("key_ops", None)
    return {**shape, **members}


def jwks(*keys):
    return {"keys": list(keys)}


def claims(**changed):
    """Good claims; what is given as None is left out."""
    now = int(time.time())
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600}
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def signed(kind="rsa", alg="RS256", *, headers=None, **changed):
    """A token of the issuer."""
    return jwt.encode(claims(**changed), private(kind), alg, headers=headers)


class Received(NamedTuple):
    """A request that the peer got."""

    method: str
    target: str
    headers: dict
    body: bytes


class Peer:
    """A real HTTP server that answers what the test tells it to.

    Attributes:
        answers: Path → (status, headers, body), or what to do with the stream instead.
        received: What came, in order.
        started: Set with each request.
        go: Answers wait for it.
    """

    def __init__(self, port):
        self.port = port
        self.answers = {}
        self.received = []
        self.started = trio.Event()
        self.go = trio.Event()
        self.go.set()

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def say(self, path, document, status=200, **headers):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.answers[path] = (status, named, body)

    async def handle(self, stream):
        async with stream:
            with contextlib.suppress(h11.RemoteProtocolError):  # TLS, say
                await self._serve(stream)

    async def _serve(self, stream):
        connection = h11.Connection(h11.SERVER)
        body, request = b"", None
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Request):
                request = event
            else:
                body += event.data
        headers = {name.decode(): value.decode() for name, value in request.headers}
        target = request.target.decode()
        self.received.append(Received(request.method.decode(), target, headers, body))
        self.started.set()
        await self.go.wait()
        await self._answer(connection, stream, target)

    async def _answer(self, connection, stream, target):
        answer = self.answers.get(target, (404, [], b""))
        if callable(answer):
            await answer(stream)
            return
        status, headers, body = answer
        headers = [*headers, ("content-length", str(len(body))), ("connection", "close")]
        data = connection.send(h11.Response(status_code=status, headers=headers))
        data += connection.send(h11.Data(body)) + connection.send(h11.EndOfMessage())
        try:
            await stream.send_all(data)
        except trio.BrokenResourceError:
            pass  # who has heard enough hangs up


@pytest.fixture
async def peer(nursery):
    """A real HTTP server on a free port."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    found = Peer(listener.socket.getsockname()[1])
    nursery.start_soon(trio.serve_listeners, found.handle, [listener])
    return found


class Clock:
    """A clock that the test moves."""

    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def reasons(caplog):
    """Give what reads the warnings and errors since the last time."""
    caplog.set_level("WARNING", "noizu_mcp.auth")

    def read():
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return read
