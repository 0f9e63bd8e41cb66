"""`noizu-mcp run --http`: serve a server over HTTP."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from .._serving import run_http, start_errors
from ..server import KEYS_VARIABLE, Server
from ..transports import http
from ..workers import VARIABLE
from ._errors import OK, USAGE, CommandError
from ._reload import run_reloading
from ._target import open_server

if TYPE_CHECKING:
    from ..transports import Worker


#: Maximum number of workers: more processes than any machine has cores.
MAX_WORKERS: Final = 512


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 65535, got {text!r}")
    return int(text)


def _workers(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_WORKERS:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {MAX_WORKERS}, got {text!r}")
    return int(text)


#: The options for serving over HTTP: their help, and how they are read.
_OPTIONS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "--host": ("listen at this address, not 127.0.0.1", {"metavar": "ADDRESS"}),
    "--port": ("and this port, not 8000", {"metavar": "NUMBER", "type": _port}),
    "--uds": ("listen on a Unix socket, not at an address and a port", {"metavar": "PATH"}),
    "--server": (
        "serve on hypercorn, which speaks HTTP/2 as well, not on the own server",
        {"choices": ("noizu", "hypercorn")},
    ),
    "--path": ("the path of the protocol, not /mcp", {}),
    "--allow-host": (
        "a name that clients use for this machine; may be repeated",
        {"metavar": "NAME", "action": "append"},
    ),
    "--allow-origin": (
        "a web site whose pages may call, like https://app.example.com; may be repeated",
        {"metavar": "ORIGIN", "action": "append"},
    ),
    "--certfile": ("speak TLS with this certificate (PEM)", {"metavar": "FILE"}),
    "--keyfile": ("its key, unless in the same file", {"metavar": "FILE"}),
    "--forwarded-allow-ips": (
        (
            "a proxy, a network of proxies, or *, whose X-Forwarded-* and Forwarded headers are"
            " believed; may be repeated"
        ),
        {"metavar": "ADDRESS", "action": "append"},
    ),
    "--workers": (
        "serve with so many processes, which SIGHUP replaces one after the other",
        {"metavar": "NUMBER", "type": _workers},
    ),
    "--health-port": (
        "answer /healthz and /readyz at this port too, also while all connections are busy",
        {"metavar": "NUMBER", "type": _port},
    ),
    "--health-host": (
        "listen there for it, not at the address of --host",
        {"metavar": "ADDRESS"},
    ),
    "--seal-sessions": (
        "let every process with the same NOIZU_MCP_STATE_KEYS serve each session",
        {"action": "store_const", "const": True},
    ),
    "--backend": (
        "what the processes of this server share, like redis://127.0.0.1:6379/0",
        {"metavar": "URL"},
    ),
    "--lead": (
        "after a signal, answer /readyz with 503 for so long and serve on: none unless given",
        {"metavar": "SECONDS", "type": float},
    ),
    "--grace": (
        "then give running requests so long to end: 3 unless given",
        {"metavar": "SECONDS", "type": float},
    ),
}


def add_http(parser: argparse.ArgumentParser) -> None:
    """Add the options for serving over HTTP to `run`.

    Args:
        parser: The parser of `run`.
    """
    group = parser.add_argument_group("over HTTP")
    text = "serve over HTTP, not on stdin and stdout"
    group.add_argument("--http", action="store_true", help=text)
    for name, (text, options) in _OPTIONS.items():
        group.add_argument(name, help=text, **options)
    # `--reload` names itself to the server that it starts, which ends when it does.
    group.add_argument("--parent", type=int, help=argparse.SUPPRESS)


#: Options of Python by their names on the command line, for errors about their values.
_WORDS = {
    "path must": "--path must",
    "allowed_hosts": "--allow-host",
    "allowed_origins": "--allow-origin",
    "HostOptions.forwarded_allow_ips": "--forwarded-allow-ips",
    "HostOptions.": "--",
    "HttpLimits.": "--",
    "backend: ": "--backend: ",
    "needs certfile": "needs --certfile",
}


def check_stdio(args: argparse.Namespace) -> None:
    """Refuse options that have no meaning on stdin and stdout.

    Args:
        args: The words of `run`, without `--http`.

    Raises:
        CommandError: There is some.
    """
    for name in _OPTIONS:
        if getattr(args, name.removeprefix("--").replace("-", "_")) is not None:
            raise CommandError(f"{name} needs --http; on stdin and stdout it means nothing", USAGE)


def serve(args: argparse.Namespace) -> int:
    """Serve until a signal comes.

    Args:
        args: The words of `run`.

    Raises:
        CommandError: The server cannot be imported, or cannot listen.
    """
    try:
        worker = _worker()
        options, host_options = _options(args, worker), _host_options(args)
        if args.workers is not None and args.reload:
            text = "--reload starts one server again, and --workers several: use one of the two"
            raise CommandError(text, USAGE)
        if args.workers is not None and worker is None:
            return _run_workers(args, options, host_options)
        if args.reload:
            # After the options were checked: a wrong one fails once, and not at every start.
            return run_reloading([word for word in sys.argv[1:] if word != "--reload"], args.target)
        _run(open_server(args.target, args.config), args, options, host_options, worker)
    except ImportError as error:  # of an extra; it says which
        raise CommandError(str(error)) from error
    return OK


def _run(
    server: Server,
    args: argparse.Namespace,
    options: http.HttpOptions,
    host_options: http.HostOptions,
    worker: "Worker | None",
) -> None:
    if worker is not None and host_options.health_port is not None:
        # The supervisor answers at that port, with the metrics of all workers.
        worker.count(server)
        host_options = attrs.evolve(host_options, health_port=None)
    serve = partial(run_http, server, *_address(args), options, host_options)
    with _explaining():
        serve(server=args.server or "noizu", parent=args.parent, worker=worker)


def _run_workers(
    args: argparse.Namespace, options: http.HttpOptions, host_options: http.HostOptions
) -> int:
    from .workers import WorkerOptions, supervise

    host, port = _address(args)
    given = WorkerOptions(
        words=sys.argv[1:],
        count=args.workers,
        host=host,
        port=port,
        path=options.path,
        options=host_options,
        grace=options.limits.grace,
    )
    with _explaining():
        return trio.run(supervise, given)


def _address(args: argparse.Namespace) -> tuple[str, int]:
    host = "127.0.0.1" if args.host is None else args.host
    return host, 8000 if args.port is None else args.port


@contextmanager
def _explaining() -> Iterator[None]:
    """Report what keeps a server from listening."""
    try:
        yield
    except OSError as error:
        raise CommandError(error.strerror or str(error)) from error
    except start_errors() as error:
        raise CommandError(str(error)) from error


def _worker() -> "Worker | None":
    """Return the supervisor of this process; None if it is no worker, as most are not."""
    if VARIABLE not in os.environ:
        return None
    from ..transports import Worker

    worker = Worker.from_environment()
    # Keys of the author take precedence.
    if not os.environ.get(KEYS_VARIABLE):
        os.environ[KEYS_VARIABLE] = worker.secret
    return worker


def _options(args: argparse.Namespace, worker: "Worker | None") -> http.HttpOptions:
    with _refusing():
        return http.HttpOptions(
            path="/mcp" if args.path is None else args.path,
            allowed_hosts=args.allow_host,
            allowed_origins=args.allow_origin or (),
            health=True,
            seal_sessions=bool(args.seal_sessions) or worker is not None,
            backend=args.backend,
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
