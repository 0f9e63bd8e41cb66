"""Secrets in messages: what `record` writes in their place.

Theory of operation. A secret is known by the name beside it, or by its form. Names stand before
values in objects (`{"password": …}`), in lists of headers, and in texts: JSON, settings, options,
headers, the query of a URL. Base64 is decoded, and encoded again if there was a secret in it. What
is hidden stays hidden, so a message may be redacted twice.

A secret that has neither a name nor a known form cannot be told from other texts.
"""

import base64
import json
import re
from contextlib import suppress
from typing import Any, Final

#: The text in the place of a secret.
HIDDEN: Final = "[hidden]"

#: The ends of names with secrets, in lower case and without separators.
_ENDS: Final = (
    *("accesskey", "accesskeyid", "apikey", "authorization", "clientassertion", "codeverifier"),
    *("cookie", "credential", "credentials", "passphrase", "passwd", "password", "privatekey"),
    *("secret", "secretkey", "token"),
)
_WHOLE: Final = frozenset({"jwt", "otp", "pwd"})
#: Names of the protocol, and of lists in pages, that end like those of secrets.
_OPEN: Final = ("progresstoken", "pagetoken", "nexttoken", "continuationtoken")
#: Keywords by which a schema is known, below the name of the property that it describes.
_SCHEMA: Final = frozenset({"$ref", "allOf", "anyOf", "const", "description", "enum", "oneOf"})
_TYPES: Final = ("null", "boolean", "object", "array", "number", "string", "integer")

_SCHEME: Final = re.compile(r"\b(Bearer|Basic|DPoP) +[\w.~+/=-]{8,}")
_HEADER: Final = re.compile(
    r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(\\*[\"']?\s*[:=]\s*)(?!\\*[\"'])[^\r\n\"\\]+"
)
# Repetitions have limits, so that the time grows with the text and not with its square.
#: A name and a separator. JSON within JSON has `\"` as its quotes.
_NAME: Final = re.compile(
    r"(?:(?<!\w)|(?<=%[0-9A-F]{2}))(?P<name>[A-Za-z][\w.-]{0,63})(?P<sign>\\{0,8}[\"']?\s{0,8}(?:=|:|%3D)\s{0,8})"
)
#: The value behind it: in quotes, which may be missing at the end, or without.
_VALUE: Final = re.compile(
    r"(?P<quote>\\{0,8}[\"']).*?(?P<end>(?P=quote)|\Z)|[^\s&;,\"'\\<>\[\]{}()]+", re.DOTALL
)
_USER: Final = re.compile(
    r"((?::|%3A)(?://|%2F%2F))"
    r"(?:[^\s/@\"']{0,256}?(?::|%3A)[^\s/@\"']{0,256}?|[^\s/@:%\"']{16,512})(?=@|%40)",
    re.IGNORECASE,
)
_QUERY: Final = re.compile(
    r"([?&#](?:code|key|sig|auth|[\w-]*signature)(?:=|%3D))[^\s&#\"'\\]+", re.IGNORECASE
)
#: Keys of well-known services, signed tokens, private keys.
_KEYS: Final = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{16,}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}"
    r"|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def hide_secrets(value: Any) -> Any:
    """Replace what looks like a secret by `[hidden]`; the default of `record` and `replay`.

    These are texts and numbers whose name ends like `Authorization`, `Cookie`, `api_key`,
    `password`, `secret` or `token`, in objects, lists of headers, texts and URLs; credentials
    behind `Bearer`, `Basic` and `DPoP`, and those before the host of a URL; signed tokens, private
    keys, and keys of well-known services; and all these in base64. A number becomes 0. Other
    secrets need a function of your own.

    Args:
        value: A message, or any JSON value.

    Returns:
        A copy.
    """
    if isinstance(value, str):
        return _hide_in_text(value)
    if isinstance(value, list):
        return [_hide_in_item(each) for each in value]
    if isinstance(value, dict):
        named = next((value[key] for key in ("name", "key") if key in value), None)
        return {
            _hide_in_text(name): _hide_all(each)
            if _is_secret(name) or (name == "value" and _is_secret(named))
            else hide_secrets(each)
            for name, each in value.items()
        }
    return value


def _hide_in_item(item: Any) -> Any:
    """Hide the secrets in an item of a list; it may be the name and the value of a header."""
    if isinstance(item, list) and len(item) == 2 and _is_secret(item[0]):
        return [item[0], _hide_all(item[1])]
    return hide_secrets(item)


def _hide_all(value: Any) -> Any:
    """Hide all texts and numbers of a value that has the name of a secret."""
    if isinstance(value, str):
        return HIDDEN
    if isinstance(value, list):
        return [_hide_all(each) for each in value]
    if isinstance(value, dict):
        if str(value.get("type")) in _TYPES or not _SCHEMA.isdisjoint(value):
            return hide_secrets(value)
        return {name: _hide_all(each) for name, each in value.items()}
    # Of the same type, for a client that checks it.
    return value if value is None or isinstance(value, bool) else 0


def _is_secret(name: Any) -> bool:
    if not isinstance(name, str):
        return False
    plain = re.sub(r"[\W_]", "", name).lower()
    return plain in _WHOLE or (plain.endswith(_ENDS) and not plain.endswith(_OPEN))


def _hide_in_text(text: str) -> str:
    if text[:1] in ("{", "["):
        # A list or an object behind a name is seen here, and not in the text.
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            hidden = hide_secrets(value)
            return text if hidden == value else json.dumps(hidden, ensure_ascii=False)
    text = _KEYS.sub(HIDDEN, text)
    text = _USER.sub(rf"\1{HIDDEN}", text)
    text = _QUERY.sub(rf"\1{HIDDEN}", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
    text = _hide_named(text)
    # What is decoded is shorter, so base64 in base64 ends.
    return _ENCODED.sub(lambda found: _hide_encoded(found[0]), text)


def _hide_named(text: str) -> str:
    """Hide the values behind names of secrets in a text."""
    made, at = [], 0
    for found in _NAME.finditer(text):
        if found.start() < at or not _is_secret(found["name"]):
            continue
        value = _VALUE.match(text, found.end())
        if value is None or _is_prose(found["sign"], value[0]):
            continue
        quote, end = value["quote"] or "", value["end"] or ""
        made.append(f"{text[at : found.end()]}{quote}{HIDDEN}{end}")
        at = value.end()
    return "".join((*made, text[at:]))


def _is_prose(sign: str, value: str) -> bool:
    """Tell whether a value is a word, as in `password: required`, and a secret hardly."""
    return (":" in sign and value.rstrip(".").isalpha() and len(value) < 20) or value in HIDDEN


def _hide_encoded(text: str) -> str:
    """Hide the secrets of a text in base64, of the standard or the URL alphabet."""
    is_url = "-" in text or "_" in text
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    try:
        raw = base64.b64decode(padded, altchars=b"-_" if is_url else None, validate=True)
        decoded = raw.decode()
    except ValueError:  # no base64, or no text
        return text
    hidden = _hide_in_text(decoded)
    if hidden == decoded:
        return text
    encode = base64.urlsafe_b64encode if is_url else base64.b64encode
    return encode(hidden.encode()).decode()
