"""The URL of a Redis server. No message about it shows the password."""

import ssl
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs

_FORMS: Final = "redis://, rediss:// or unix://"


@attrs.frozen(repr=False)
class Address:
    """The place of Redis, and the login. Its text form names only the place."""

    host: str = ""
    port: int = 6379
    path: str = ""
    db: int = 0
    user: str | None = None
    password: str | None = None
    has_tls: bool = False
    ssl_context: ssl.SSLContext | None = None

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL with `***` for the password."""
        login = self.user or ""
        if self.password is not None:
            login += ":***"
        login += "@" if login else ""
        if self.path:
            return f"unix://{login}{self.path}?db={self.db}"
        return f"redis{'s' * self.has_tls}://{login}{self}/{self.db}"


def read_url(url: str, ssl_context: ssl.SSLContext | None) -> Address:
    """Read the URL of a Redis server.

    Args:
        url: `redis://[user][:password]@host[:port][/db]`, `rediss://…`, or `unix:///path?db=0`.
        ssl_context: For `rediss://`.

    Raises:
        ValueError: One line that says what is wrong, and shows neither user nor password.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in ("redis", "rediss", "unix"):
        # What stands before `://` is no password, unless there is no `://`.
        got = f", got {scheme[:20]}://" if separator and scheme.isalnum() else ""
        raise ValueError(f"the URL of a backend begins with {_FORMS}{got}")
    if ssl_context is not None and scheme != "rediss":
        raise ValueError("ssl_context is for a backend at rediss://")
    try:
        parts = urlsplit(url)
        port = parts.port
    # It quotes the text, which may be a part of the password.
    except ValueError:
        raise ValueError(
            "the URL of a backend has no valid host and port; "
            "write special characters of a password percent-encoded"
        ) from None
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    db = query.pop("db", "0") if scheme == "unix" else parts.path.strip("/") or "0"
    if query or parts.fragment or not (db.isascii() and db.isdecimal() and len(db) < 6):
        raise ValueError(
            "the URL of a backend is redis://[user][:password]@host[:port][/db] or "
            "unix:///path/to/socket?db=0, with a number for db"
        )
    login: Any = {
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password is not None else None,
    }
    if scheme == "unix":
        if not parts.path.strip("/") or parts.hostname:
            raise ValueError("the URL of a Unix socket is unix:///path/to/socket?db=0")
        return Address(path=unquote(parts.path), db=int(db), **login)
    if not parts.hostname:
        raise ValueError("the URL of a backend names no host")
    return Address(
        host=parts.hostname,
        port=6379 if port is None else port,
        db=int(db),
        has_tls=scheme == "rediss",
        ssl_context=ssl_context,
        **login,
    )
