"""`noizu-mcp run --http`: serve a server over HTTP."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .._serving import run_http
from ..server import Server
from ..transports import http
from ._errors import OK, USAGE, CommandError
from ._reload import run_reloading
from ._target import open_server


def add_http(parser: argparse.ArgumentParser) -> None:
    """Add the options for serving over HTTP to `run`.

    Args:
        parser: The parser of `run`.
    """
    group = parser.add_argument_group("over HTTP")
    group.add_argument(
        "--http", action="store_true", help="serve over HTTP, not on stdin and stdout"
    )
    group.add_argument("--host", metavar="ADDRESS", help="listen at this address, not 127.0.0.1")
    group.add_argument("--port", type=_port, metavar="NUMBER", help="and this port, not 8000")
    group.add_argument(
        "--uds", metavar="PATH", help="listen on a Unix socket, not at an address and a port"
    )
    group.add_argument(
        "--server",
        choices=("noizu", "hypercorn"),
        help="serve on hypercorn, which speaks HTTP/2 as well, not on the own server",
    )
    group.add_argument("--path", help="the path of the protocol, not /mcp")
    group.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="a name that clients use for this machine; may be repeated",
    )
    group.add_argument(
        "--allow-origin",
        action="append",
        metavar="ORIGIN",
        help="a web site whose pages may call, like https://app.example.com; may be repeated",
    )
    group.add_argument("--certfile", metavar="FILE", help="speak TLS with this certificate (PEM)")
    group.add_argument("--keyfile", metavar="FILE", help="its key, unless in the same file")
    group.add_argument(
        "--forwarded-allow-ips",
        action="append",
        metavar="ADDRESS",
        help="a proxy, a network of proxies, or *, whose X-Forwarded-* and Forwarded headers are"
        " believed; may be repeated",
    )
    group.add_argument(
        "--health-port",
        type=_port,
        metavar="NUMBER",
        help="answer /healthz and /readyz at this port too, also while all connections are busy",
    )
    group.add_argument(
        "--health-host", metavar="ADDRESS", help="listen there for it, not at the address of --host"
    )
    group.add_argument(
        "--seal-sessions",
        action="store_const",
        const=True,
        help="let every process with the same NOIZU_MCP_STATE_KEYS serve each session",
    )
    _add_end(group)


def _add_end(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--lead",
        type=float,
        metavar="SECONDS",
        help="after a signal, answer /readyz with 503 for so long and serve on: none unless given",
    )
    group.add_argument(
        "--grace",
        type=float,
        metavar="SECONDS",
        help="then give running requests so long to end: 3 unless given",
    )
    # `--reload` names itself to the server that it starts, which ends when it does.
    group.add_argument("--parent", type=int, help=argparse.SUPPRESS)


_HTTP_ONLY = (
    *("host", "port", "uds", "server", "path", "allow_host", "allow_origin", "certfile", "keyfile"),
    *("forwarded_allow_ips", "health_port", "health_host", "seal_sessions", "lead", "grace"),
)
#: Options of Python by their names on the command line, for errors about their values.
_WORDS = {
    "path must": "--path must",
    "allowed_hosts": "--allow-host",
    "allowed_origins": "--allow-origin",
    "HostOptions.forwarded_allow_ips": "--forwarded-allow-ips",
    "HostOptions.": "--",
    "HttpLimits.": "--",
    "needs certfile": "needs --certfile",
}


def check_stdio(args: argparse.Namespace) -> None:
    """Refuse options that have no meaning on stdin and stdout.

    Args:
        args: The words of `run`, without `--http`.

    Raises:
        CommandError: There is some.
    """
    given = [name for name in _HTTP_ONLY if getattr(args, name) is not None]
    if given:
        option = given[0].replace("_", "-")
        raise CommandError(f"--{option} needs --http; on stdin and stdout it means nothing", USAGE)


def serve(args: argparse.Namespace) -> int:
    """Serve until a signal comes.

    Args:
        args: The words of `run`.

    Raises:
        CommandError: The server cannot be imported, or cannot listen.
    """
    try:
        options, host_options = _options(args), _host_options(args)
        if args.reload:
            # After the options were checked: a wrong one fails once, and not at every start.
            return run_reloading([word for word in sys.argv[1:] if word != "--reload"], args.target)
        _run(open_server(args.target, args.config), args, options, host_options)
    except ImportError as error:  # of an extra; it says which
        raise CommandError(str(error)) from error
    return OK


def _run(
    server: Server,
    args: argparse.Namespace,
    options: http.HttpOptions,
    host_options: http.HostOptions,
) -> None:
    host = "127.0.0.1" if args.host is None else args.host
    port = 8000 if args.port is None else args.port
    try:
        name = args.server or "noizu"
        run_http(server, host, port, options, host_options, server=name, parent=args.parent)
    except OSError as error:
        raise CommandError(error.strerror or str(error)) from error


def _options(args: argparse.Namespace) -> http.HttpOptions:
    with _refusing():
        return http.HttpOptions(
            path="/mcp" if args.path is None else args.path,
            allowed_hosts=args.allow_host,
            allowed_origins=args.allow_origin or (),
            health=True,
            seal_sessions=bool(args.seal_sessions),
            limits=http.HttpLimits() if args.grace is None else http.HttpLimits(grace=args.grace),
        )


def _host_options(args: argparse.Namespace) -> http.HostOptions:
    if args.uds is not None and (args.host, args.port) != (None, None):
        raise CommandError("--uds takes the place of --host and --port", USAGE)
    with _refusing():
        return http.HostOptions(
            uds=args.uds,
            certfile=args.certfile,
            keyfile=args.keyfile,
            forwarded_allow_ips=args.forwarded_allow_ips or (),
            health_port=args.health_port,
            health_host=args.health_host,
            lead=args.lead or 0.0,
        )


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse a value in the words of the command line."""
    try:
        yield
    except ValueError as error:
        # The checks name options of Python; the user wrote options of the command line.
        text = str(error)
        for name, word in _WORDS.items():
            text = text.replace(name, word)
        raise CommandError(text, USAGE) from error


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 65535, got {text!r}")
    return int(text)
