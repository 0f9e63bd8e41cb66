"""Settings, some of them secret, and texts without secrets."""

import json
import logging
import re
import tomllib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

REDACTED = "[REDACTED]"
#: A shorter secret could be a part of ordinary words.
MIN_SECRET = 8

_PASSWORD = re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)")
_SECRET_KEY = re.compile(r"token|secret|passw|api_?key|authorization|credential", re.IGNORECASE)


class Secret:
    """A text that is written as `[REDACTED]`, unless somebody asks for it.

    Args:
        text: The text.

    Raises:
        ValueError: It is too short.
    """

    def __init__(self, text: str) -> None:
        if len(text) < MIN_SECRET:
            raise ValueError(f"a secret needs at least {MIN_SECRET} characters")
        self._text = text

    def __repr__(self) -> str:
        return REDACTED

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text


class Settings:
    """The settings of a workbench, by dotted keys.

    Args:
        path: A file of TOML with the tables `settings`, `secrets`, and `keys`: the digest of the
            API key of each caller.

    Raises:
        ValueError: The file is malformed, or a secret is too short.
        OSError: There is no such file.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            read = tomllib.load(file)
        # Dates become texts: JSON has none.
        found: dict[str, Any] = json.loads(json.dumps(read, default=str, allow_nan=False))
        self.values: dict[str, Any] = {
            **found.get("settings", {}),
            **{key: Secret(text) for key, text in found.get("secrets", {}).items()},
        }
        self.keys: dict[str, str] = found.get("keys", {})
        secrets = [each.reveal() for each in self.values.values() if isinstance(each, Secret)]
        self._pattern = _pattern_of(secrets)

    def redact(self, value: Any) -> Any:
        """Take secrets, and the passwords of URLs, out of a text or a JSON value."""
        if isinstance(value, str):
            return _PASSWORD.sub(REDACTED, self._pattern.sub(REDACTED, value))
        if isinstance(value, dict):
            pairs = cast("dict[str, Any]", value).items()
            return {self.redact(key): self.redact(each) for key, each in pairs}
        if isinstance(value, list | tuple):
            return [self.redact(each) for each in cast("list[Any]", value)]
        return value

    def check_published(self, text: str) -> None:
        """Check a text that every client could read.

        Raises:
            ValueError: It has a secret.
        """
        if self._pattern.search(text):
            raise ValueError("it has the text of a secret, which clients could read")

    @contextmanager
    def redacting_logs(self) -> Generator[None]:
        """Take secrets out of all records of `logging`, tracebacks included."""
        make = logging.getLogRecordFactory()
        formatter = logging.Formatter()

        def make_redacted(*args: Any, **options: Any) -> logging.LogRecord:
            record = make(*args, **options)
            try:
                text = record.getMessage()
            except Exception:  # noqa: BLE001 - a wrong format must not end the caller
                text = f"{record.msg} {record.args}"
            record.msg, record.args = self.redact(text), ()
            if record.exc_info:
                # Formatters write this text, if there is one.
                record.exc_text = self.redact(formatter.formatException(record.exc_info))
            return record

        logging.setLogRecordFactory(make_redacted)
        try:
            yield
        finally:
            logging.setLogRecordFactory(make)


def hide(value: dict[str, Any]) -> dict[str, Any]:
    """Hide the values whose keys say that they are secret, such as `api_key`."""
    return {key: REDACTED if _SECRET_KEY.search(key) else each for key, each in value.items()}


def _pattern_of(secrets: Iterable[str]) -> re.Pattern[str]:
    # A secret in JSON, or in the text of an exception, is quoted with backslashes. The longest
    # first: one secret may be a part of another.
    forms = {
        form
        for each in secrets
        for quoted in (json.dumps(each), json.dumps(each, ensure_ascii=False), repr(each))
        for form in (each, quoted[1:-1])
    }
    return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))) or r"(?!)")
