"""Listening sockets: by address, by name for both families, by path."""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from ._options import HostOptions, ListenError

if TYPE_CHECKING:
    from ...workers import SharedSockets

#: Attempts to find a port that is free on all addresses. With port 0 the system picks one for the
#: first address, and another program may use this port on the next address.
ATTEMPTS: Final = 5
#: Errors for addresses of a family that the machine does not have.
_ABSENT: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
#: Errors of a listening socket whose next connection is broken or closed already.
_GONE: Final = (errno.EAGAIN, errno.EINTR, errno.ECONNABORTED, errno.EPROTO)

_Address = tuple[int, Any]


@attrs.frozen(eq=False)
class ListeningSocket:
    """A non-blocking listening socket.

    Attributes:
        url: The address: `http://127.0.0.1:8000`, `https://[::1]:8000`, `unix:/path`.
        port: The port; None for a Unix socket.
    """

    url: str
    port: int | None
    _socket: socket.socket
    _path: Path | None = None
    _file: tuple[int, ...] = ()

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self._socket.fileno()

    async def wait(self) -> None:
        """Wait until a client connects."""
        await trio.lowlevel.wait_readable(self._socket)

    def accept(self) -> tuple[socket.socket, Any] | None:
        """Accept a connection.

        Returns:
            The socket, non-blocking, and the address of the client; None if none is waiting.

        Raises:
            OSError: There is no room for it in this process or system.
        """
        return accept_nowait(self._socket)

    def close(self) -> None:
        """Stop listening. The path of a Unix socket is removed if it is still its own."""
        if self._socket.fileno() == -1:
            return
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                # Another server may have replaced it, and must stay reachable.
                if _identify(self._path) == self._file:
                    self._path.unlink()


async def open_listeners(
    host: str, port: int, options: HostOptions, shared: "SharedSockets | None" = None
) -> list[ListeningSocket]:
    """Listen where the options say, or else on every address of a host.

    Args:
        host: An IPv4 or IPv6 address, or a name.
        port: The port; 0 for a free one, the same on every address.
        options: The options of the host.
        shared: Sockets that listen already, in the place of all addresses.

    Returns:
        At least one listener; the caller closes them.

    Raises:
        ListenError: It failed; the text says where and why in one line.
    """
    if shared is not None:
        return [_adopt(each, options) for each in shared.descriptors]
    if options.uds is not None:
        with _explained(f"unix:{options.uds}"):
            return [_bind_path(options.uds, options)]
    with _explained(f"{options.scheme}://{_bracketed(host)}:{port}"):
        addresses = await _resolve(host, port)
        for _ in range(ATTEMPTS - 1 if port == 0 else 0):
            with contextlib.suppress(OSError):
                return _bind_all(addresses, options)
        return _bind_all(addresses, options)


def accept_nowait(listener: socket.socket) -> tuple[socket.socket, Any] | None:
    """Accept a connection.

    Returns:
        The socket, non-blocking, and the address of the client; None if no connection is waiting.

    Raises:
        OSError: There is no room for it in this process or system.
    """
    try:
        connection, address = listener.accept()
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    connection.setblocking(False)
    with contextlib.suppress(OSError):  # a Unix socket has no such options
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Otherwise a slow reader would have to read half of a large buffer before it counts as
        # alive.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 16 * 1024)
    return connection, address


def endpoint(address: object) -> tuple[str, int] | None:
    """Convert an address to the form of ASGI; None for a path."""
    return (address[0], address[1]) if isinstance(address, tuple) else None


@contextlib.contextmanager
def _explained(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        text = f"cannot listen on {where}: {reason[:1].lower()}{reason[1:]}"
        raise ListenError(error.errno, text) from None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


async def _resolve(host: str, port: int) -> list[_Address]:
    bare = host.removeprefix("[").removesuffix("]")
    found = await trio.socket.getaddrinfo(
        bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))


def _bind_all(addresses: list[_Address], options: HostOptions) -> list[ListeningSocket]:
    """Listen on every address whose family this machine has, all with one port."""
    with contextlib.ExitStack() as stack:
        listeners: list[ListeningSocket] = []
        absent: OSError | None = None
        for family, (name, wanted, *rest) in addresses:
            # With port 0 all use the port that the system picked for the first address.
            port = listeners[0].port if wanted == 0 and listeners else wanted
            address = (name, port, *rest)
            try:
                made = _bind(family, address, options.backlog)
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                absent = error
            else:
                stack.callback(made.close)
                url, number = _place_of(made, options)
                listeners.append(ListeningSocket(url, number, made))
        if not listeners and absent is not None:
            raise absent
        stack.pop_all()
    return listeners


def _place_of(made: socket.socket, options: HostOptions) -> tuple[str, int | None]:
    """Return the URL and the port of a socket."""
    if made.family == socket.AF_UNIX:
        return f"unix:{made.getsockname()}", None
    at, number, *_ = made.getsockname()
    return f"{options.scheme}://{_bracketed(at)}:{number}", number


def _adopt(descriptor: int, options: HostOptions) -> ListeningSocket:
    """Take over a socket that another process has opened, and listens on as well."""
    made = socket.socket(fileno=descriptor)
    made.setblocking(False)
    made.set_inheritable(False)
    # Without the path of a Unix socket, which the other process removes.
    return ListeningSocket(*_place_of(made, options), made)


def _bind(family: int, address: Any, backlog: int) -> socket.socket:
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        # A server that restarts can use its port while old connections still close.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(backlog)
        made.setblocking(False)
        stack.pop_all()
    return made


def _bind_path(path: str, options: HostOptions) -> ListeningSocket:
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        _remove_dead_socket(path)
        # Other users cannot connect from the start.
        mask = os.umask(0o777 & ~options.uds_mode)
        try:
            made.bind(path)
        finally:
            os.umask(mask)
        file = _identify(Path(path))
        made.listen(options.backlog)
        made.setblocking(False)
        stack.pop_all()
    return ListeningSocket(f"unix:{path}", None, made, Path(path), file)


def _identify(path: Path) -> tuple[int, ...]:
    """Identify a file, even if another one took its path; inode numbers are reused."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _remove_dead_socket(path: str) -> None:
    """Remove the socket of a server that was killed. Other files are not removed."""
    try:
        if not stat.S_ISSOCK(Path(path).stat().st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
        except BlockingIOError:
            pass  # its backlog is full: a server is listening
