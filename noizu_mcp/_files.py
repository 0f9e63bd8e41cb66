"""Files that are written where somebody else may have put a link.

A checkout or an archive can bring a link, a pipe or a folder under the name of a file that a
command writes. Nothing here writes through a link to a file.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

#: Opens a FIFO without waiting for its other end. Windows has neither.
_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
#: Makes opening a link an error. Windows does not have it.
NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)


def read_regular(path: Path) -> bytes:
    """Read a file.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: It cannot be read, or it is a folder, a pipe or a device.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | _NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read()


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that does not exist yet, and wait until the disk has it.

    Args:
        path: The file.
        data: Its bytes.
        mode: Its permissions, from which the umask of the process is taken.

    Raises:
        FileExistsError: Something has this name already, if only a link to nowhere.
        OSError: It cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes, mode: int = 0o600, *, keep_mode: bool = False) -> None:
    """Write a file beside another one, and put it in its place in one step.

    Readers find the old file or the new one. A link of this name is replaced, and not followed.

    Args:
        path: The file.
        data: Its bytes.
        mode: See `write_new`.
        keep_mode: True to give the new file the permissions of the old one, if there is one.

    Raises:
        OSError: It cannot be written.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        write_new(new, data, mode)
        if keep_mode:
            with suppress(FileNotFoundError):
                shutil.copymode(path, new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def through_no_link(path: str, flags: int) -> int:
    """Open a file that is to be written; an `opener` of the built-in function `open`.

    A link to a pipe or a device is followed, so that `/dev/stdout` can be written.

    Raises:
        OSError: It is a link to a file, or to nothing; or it cannot be opened.
    """
    file = Path(path)
    is_special = file.is_symlink() and file.exists() and not file.is_file()
    try:
        return os.open(path, flags if is_special else flags | NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        text = f"it is a link to {os.path.realpath(path)}; name that file, or remove the link"
        raise OSError(errno.ELOOP, text, path) from None


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep other programs out that lock the same folder; it ends with the block or the process.

    If the system cannot lock a folder, as on Windows and some network drives, this has no effect:
    compare a file with what was read before replacing it.
    """
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            # By name: the module exists on some systems only.
            fcntl: Any = import_module("fcntl")
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
