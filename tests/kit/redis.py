"""A real `redis-server`, which a test starts, kills, stops and starts again."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

#: Debian puts it where an ordinary user may not look.
PATHS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
REDIS = shutil.which("redis-server", path=PATHS)
#: Seconds in which it must start.
PATIENCE = 30.0

needs_redis = pytest.mark.skipif(REDIS is None, reason="redis-server is not installed")


class RedisServer:
    """A process of Redis without persistence; a context manager that ends it.

    Args:
        options: Further options of the command: `"--requirepass", "secret"`.
        tcp: Whether it listens on a port of 127.0.0.1, in place of a Unix socket.
    """

    def __init__(self, *options: str, tcp: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="redis"))
        self.path = self.folder / "socket"
        self.port = free_port() if tcp else 0
        self.place = f"127.0.0.1:{self.port}" if tcp else str(self.path)
        self.url = f"redis://{self.place}" if tcp else f"unix://{self.path}"
        self._options = options
        self._process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder)

    def start(self, *options: str):
        """Start it with further options, and wait until it answers."""
        place = ["--port", str(self.port)]
        if not self.port:
            place += ["--unixsocket", str(self.path)]
        quiet = ["--save", "", "--dir", str(self.folder), "--logfile", str(self.folder / "log")]
        self._process = subprocess.Popen([REDIS, *place, *quiet, *self._options, *options])
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.ask("PING")
            except OSError:
                assert time.monotonic() < deadline, "redis-server does not start"
                assert self._process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.01)
            else:
                return

    def kill(self):
        """End it at once; its data is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.path.unlink(missing_ok=True)

    def pause(self):
        """Stop the process: connections stay open, and nothing answers."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        """Let a stopped process run again."""
        self._process.send_signal(signal.SIGCONT)

    def ask(self, *words: str | bytes) -> bytes:
        """Send one command and return the first bytes of the answer, as they are on the wire."""
        family = socket.AF_INET if self.port else socket.AF_UNIX
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(("127.0.0.1", self.port) if self.port else str(self.path))
            raw = [word.encode() if isinstance(word, str) else word for word in words]
            parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in raw]
            connection.sendall(b"*%d\r\n%b" % (len(raw), b"".join(parts)))
            return connection.recv(65536)


def free_port() -> int:
    """Find a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
