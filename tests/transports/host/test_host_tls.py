"""TLS and its errors, each reported in one line with the name of the file."""

import os
import re
import ssl
from pathlib import Path

import pytest
import trio

from noizu_mcp import Http, Server, connect
from noizu_mcp.transports.host import HostOptions, serve_asgi

CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE.*", re.DOTALL)


@pytest.fixture
def files(certificate, tmp_path):
    """Write files by their contents; return their folder."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def key(encryption):
        made = ec.generate_private_key(ec.SECP256R1())
        kind = serialization.PrivateFormat.PKCS8
        return made.private_bytes(serialization.Encoding.PEM, kind, encryption)

    whole = Path(certificate).read_bytes()
    (tmp_path / "chain").write_bytes(CERTIFICATE.search(whole)[0])
    (tmp_path / "key").write_bytes(CERTIFICATE.sub(b"", whole))
    (tmp_path / "other").write_bytes(key(serialization.NoEncryption()))
    (tmp_path / "locked").write_bytes(key(serialization.BestAvailableEncryption(b"secret")))
    (tmp_path / "text").write_text("hello")
    broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"
    (tmp_path / "broken").write_text(broken)
    return tmp_path


async def test_nothing_is_served_in_the_clear(echo):
    """If the certificate is missing, the host fails before it listens."""
    with pytest.raises(OSError, match="cannot read /nowhere: No such file or directory"):
        await serve_asgi(echo, port=0, config=HostOptions(certfile="/nowhere"))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"certfile": "no"}, "cannot read {no}: No such file or directory"),
        ({"certfile": "chain", "keyfile": "no"}, "cannot read {no}: No such file or directory"),
        ({"certfile": "chain"}, "there is no private key (PEM) in {chain}"),
        ({"certfile": "chain", "keyfile": "text"}, "there is no private key (PEM) in {text}"),
        ({"certfile": "text", "keyfile": "key"}, "there is no certificate (PEM) in {text}"),
        (
            {"certfile": "chain", "keyfile": "other"},
            "the private key in {other} does not belong to the certificate in {chain}",
        ),
        (
            {"certfile": "chain", "keyfile": "locked"},
            "keyfile_password does not open the private key in {locked}",
        ),
        ({"certfile": "host.pem", "ca_certs": "no"}, "cannot read {no}: No such file or directory"),
        ({"certfile": "host.pem", "ca_certs": "text"}, "there is no certificate (PEM) in {text}"),
        ({"certfile": "broken", "keyfile": "key"}, ", with {broken}, {key}"),
        ({"certfile": "pipe", "keyfile": "key"}, ", with {pipe}, {key}"),
    ],
)
async def test_the_file_to_blame(files, echo, given, text):
    """The error names the right file, although OpenSSL has the same message for most of them."""
    read, write = os.pipe()
    os.close(write)
    names = [*(each.name for each in files.iterdir()), "no"]
    paths = {name: str(files / name) for name in names} | {"pipe": f"/dev/fd/{read}"}
    options = {option: paths[name] for option, name in given.items()}
    given = HostOptions(**options, keyfile_password="wrong")
    with pytest.raises(OSError, match=r"^\[Errno \d+\] cannot set up TLS: ") as caught:
        await serve_asgi(echo, port=0, config=given)
    os.close(read)
    assert text.format(**paths) in str(caught.value)


@pytest.mark.parametrize("size", [100, 300_000])
async def test_our_client_over_tls(serve, certificate, size):
    """Small and large requests of our client work with a certificate that it trusts."""

    async def length(text: str) -> str:
        return str(len(text))

    class Counting(Server, name="counting", version="1"):
        tools = [length]

    app = Counting().asgi()
    host = await serve(app, certfile=certificate)
    context = ssl.create_default_context(cafile=certificate)
    target = Http(f"{host.urls[0]}/mcp", tls=context)
    with trio.fail_after(60):
        async with app.lifespan(), connect(target) as client:
            assert (await client.call_tool("length", {"text": "x" * size})).text == f"{size}"
