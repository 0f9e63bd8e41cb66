"""Starts nginx and HAProxy in front of a server of a test.

The listening socket of a proxy is made here and inherited, so that no other program can take the
port in between.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: Seconds for a proxy to end.
PATIENCE = 60
#: Seconds of silence after which an impatient proxy closes a client's connection.
IMPATIENCE = 1

#: As in `docs/how-to/deployment.md`.
NGINX_STREAMS = """
    proxy_http_version 1.1;
    proxy_set_header Host $host;
    proxy_set_header Connection "";
    proxy_buffering off;
    proxy_read_timeout 60s;
"""
#: Requests are forwarded while they arrive, also those that other servers refuse.
NGINX_LAX = """
    proxy_request_buffering off;
    ignore_invalid_headers off;
    underscores_in_headers on;
    merge_slashes off;
    large_client_header_buffers 4 32k;
"""
NGINX = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {content}
}}
"""
#: All clients share the connections to the server.
NGINX_SITE = """
client_max_body_size 16m;
upstream server {{
    server 127.0.0.1:{port};
    keepalive 4;
}}
server {{
    listen {address};
    {settings}
    location / {{ proxy_pass http://server; }}
}}
"""
HAPROXY = """
global
    maxconn 1000
defaults
    mode http
    timeout connect 10s
    timeout client {client}s
    timeout server 60s
    option abortonclose
    {settings}
frontend clients
    bind fd@{fd}
    default_backend mcp
{content}
"""
HAPROXY_SITE = """
backend mcp
    http-reuse always
    server one 127.0.0.1:{port}
"""
#: Proxies by name, with additions to their configuration. The lax ones forward what others refuse.
PROXIES = {
    "nginx": NGINX_STREAMS,
    "nginx-defaults": "",
    "nginx-lax": NGINX_STREAMS + NGINX_LAX,
    "haproxy": "",
    "haproxy-lax": "option accept-invalid-http-request",
}
#: The options for impatience.
HURRY = {
    "nginx": f"""
    client_header_timeout {IMPATIENCE}s;
    client_body_timeout {IMPATIENCE}s;
    keepalive_timeout {IMPATIENCE}s;
    lingering_timeout {IMPATIENCE}s;
    lingering_time {IMPATIENCE}s;
    """,
    "haproxy": f"""
    timeout http-request {IMPATIENCE}s
    timeout http-keep-alive {IMPATIENCE}s
    """,
}


def find_proxy(program: str) -> str:
    """Return the path of a proxy, or skip."""
    # Programs of the administrator may not be in the PATH of users.
    path = os.environ.get("PATH", os.defpath)
    found = shutil.which(program, path=os.pathsep.join([path, "/usr/sbin", "/usr/local/sbin"]))
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@contextmanager
def proxied(name: str, port: int, folder: Path, *, hurry: bool = False) -> Iterator[int]:
    """Run a proxy before a server.

    Args:
        name: One of `PROXIES`.
        port: The port of the server.
        folder: Where the proxy keeps its files.
        hurry: End a connection of a client that is silent for `IMPATIENCE` seconds.

    Yields:
        The port of the proxy.
    """
    kind = name.partition("-")[0]
    settings = PROXIES[name] + (HURRY[kind] if hurry else "")

    def write(address: str, fd: int) -> str:
        if kind == "nginx":
            return NGINX_SITE.format(port=port, address=address, settings=settings)
        # A long timeout for clients, since a client that waits for its answer is silent, too.
        given = {"fd": fd, "settings": settings, "client": 10 if hurry else 60}
        return HAPROXY.format(content=HAPROXY_SITE.format(port=port), **given)

    with running(kind, folder, write) as address:
        yield address


@contextmanager
def running(kind: str, folder: Path, write: Callable[[str, int], str]) -> Iterator[int]:
    """Run a proxy.

    Args:
        kind: The name of its program.
        folder: Where it keeps its files.
        write: Makes its configuration, for nginx the content of `http`, from the address and the
            file descriptor to listen on.

    Yields:
        Its port.
    """
    program = find_proxy(kind)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        text = write(f"127.0.0.1:{port}", fd)
        if kind == "nginx":
            # Its worker would be another user, who cannot write into the folder.
            user = "user root root;" if os.geteuid() == 0 else ""
            text = NGINX.format(folder=folder, user=user, content=text)
        config = folder / f"{kind}.conf"
        config.write_text(text, encoding="utf-8")
        words = {
            "nginx": ["-p", str(folder), "-e", f"{folder}/error.log", "-c", str(config)],
            "haproxy": ["-db", "-f", str(config)],
        }
        with (folder / "stderr").open("wb") as errors:
            process = subprocess.Popen(
                [program, *words[kind]],
                # By this variable nginx takes over listening sockets from its parent process.
                env={**os.environ, "NGINX": f"{fd};"},
                pass_fds=[fd],
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
    try:
        yield port
        assert process.poll() is None, (folder / "stderr").read_text(encoding="utf-8")
    finally:
        process.terminate()
        process.wait(PATIENCE)
