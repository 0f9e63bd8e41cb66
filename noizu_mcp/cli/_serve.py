"""`noizu-mcp run --http`: serve a server over HTTP."""

import argparse
import sys

from ._errors import OK, USAGE, CommandError
from ._reload import run_reloading
from ._target import load_server


def add_http(parser: argparse.ArgumentParser) -> None:
    """Add what serving over HTTP takes to the words of `run`.

    Args:
        parser: That of `run`.
    """
    http = parser.add_argument_group("over HTTP")
    http.add_argument(
        "--http", action="store_true", help="serve over HTTP, not on stdin and stdout"
    )
    http.add_argument("--host", metavar="ADDRESS", help="listen at this address, not 127.0.0.1")
    http.add_argument("--port", type=_port, metavar="NUMBER", help="and this port, not 8000")
    http.add_argument("--path", help="the path of the protocol, not /mcp")
    http.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="a name that clients use for this machine; may be repeated",
    )
    http.add_argument(
        "--allow-origin",
        action="append",
        metavar="ORIGIN",
        help="a web site whose pages may call, like https://app.example.com; may be repeated",
    )
    http.add_argument("--certfile", metavar="FILE", help="speak TLS with this certificate (PEM)")
    http.add_argument("--keyfile", metavar="FILE", help="its key, unless in the same file")
    http.add_argument(
        "--reload", action="store_true", help="for development: start again when a file changes"
    )


_HTTP_ONLY = ("host", "port", "path", "allow_host", "allow_origin", "certfile", "keyfile")


def check_stdio(args: argparse.Namespace) -> None:
    """Refuse what means nothing on stdin and stdout.

    Args:
        args: The words of `run`, without `--http`.

    Raises:
        CommandError: There is some.
    """
    given = [name for name in _HTTP_ONLY if getattr(args, name) is not None]
    given += ["reload"] if args.reload else []
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
    if args.reload:
        return run_reloading([word for word in sys.argv[1:] if word != "--reload"])
    server = load_server(args.target)
    try:
        server.run_http(
            args.host or "127.0.0.1",
            8000 if args.port is None else args.port,
            path=args.path or "/mcp",
            allowed_hosts=args.allow_host,
            allowed_origins=args.allow_origin or (),
            certfile=args.certfile,
            keyfile=args.keyfile,
        )
    except ImportError as error:  # of an extra; it says which
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(error.strerror or str(error)) from error
    except ValueError as error:
        raise CommandError(str(error)) from error
    return OK


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 65535, got {text!r}")
    return int(text)
