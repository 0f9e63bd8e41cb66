"""Secrets in messages, which `record` replaces.

Theory of operation. A secret is recognized by the name beside it, or by its form. Names are before
values in objects (`{"password": …}`), in lists of headers, and in texts: JSON, settings, options,
headers, the query of a URL. Base64 is decoded, and encoded again if it contained a secret. Hidden
values stay hidden, so a message may be redacted twice.

A secret with neither a name nor a known form cannot be recognized.
"""

import base64
import json
import re
from contextlib import suppress
from typing import Final

from .._json_schema import TYPES
from .._value import JSON

#: The text in the place of a secret.
HIDDEN: Final = "[hidden]"

#: The ends of names of secrets, in lower case, without separators and without the plural `s`.
_ENDS: Final = (
    *("accesskey", "accesskeyid", "accountkey", "apikey", "authcode", "authkey", "authorization"),
    *("authorizationcode", "backupcode", "clientassertion", "codeverifier", "connectionstring"),
    *("cookie", "credential", "devicecode", "encryptionkey", "licensekey", "masterkey", "mfacode"),
    *("passcode", "passphrase", "passwd", "password", "pincode", "privatekey", "recoverycode"),
    *("recoveryphrase", "secret", "secretkey", "seedphrase", "sessid", "sessionid", "sessionkey"),
    *("signingkey", "sshkey", "storagekey", "token", "verificationcode"),
)
#: Short names of secrets that are also ends of other words: only the last word of a name counts.
_WORDS: Final = frozenset(
    {"cvc", "cvv", "jwt", "mnemonic", "otp", "pass", "pin", "pw", "pwd", "sid", "ssn", "totp"}
)
#: Names of the protocol, and of paged lists, that end like names of secrets.
_OPEN: Final = ("progresstoken", "pagetoken", "nexttoken", "continuationtoken")
#: Keywords by which a schema is recognized, below the name of the property that it describes.
_SCHEMA: Final = frozenset({"$ref", "allOf", "anyOf", "const", "description", "enum", "oneOf"})

_SCHEME: Final = re.compile(r"\b(Bearer|Basic|DPoP|Negotiate|NTLM) +[\w.~+/=-]{8,}")
#: Schemes with parameters.
_PARAMETERS: Final = re.compile(
    r"\b(Digest|Hawk|OAuth|Signature|AWS4-[\w-]+) +(?=[\w-]{1,32}=)[^\r\n]+"
)
#: A header in a text, up to the end of its line, or of the quotes that it stands in.
_HEADER: Final = re.compile(
    r"(?i)(?:(?P<quote>\\{0,8}[\"'])|(?<![\w-]))(?P<head>(?:proxy-)?authorization|(?:set-)?cookie2?)"
    r"(?P<sign>\\{0,8}[\"']?\s{0,8}[:=]\s{0,8})(?!\s{0,8}\\{0,8}[\"'])"
    r"(?(quote)(?:(?!(?P=quote))[^\r\n])+|[^\r\n]+)"
)
# Repetitions are limited, so that the time is linear in the length of the text.
#: A name and a separator. JSON within JSON has `\"` as its quotes, a form has brackets.
_NAME: Final = re.compile(
    r"(?:(?<!\w)|(?<=%[0-9A-F]{2}))(?P<name>[A-Za-z][\w.-]{0,63})"
    r"(?P<sign>(?:\]|%5D)?\\{0,8}[\"']?\s{0,8}(?:=>|:=|={1,3}|:|%3D|%3A)\s{0,8}"
    r"|(?<=\w)>|(?<=\w)\"\r?\n\r?\n)"
)
#: The value after it: in quotes, whose end may be missing; a list; or without either.
_VALUE: Final = re.compile(
    r"(?P<quote>\\{0,8}[\"']).*?(?P<end>(?<!\\)(?P=quote)|\Z)|\[[^\]]{0,4096}\]?"
    r"|-[ ][^\r\n]+(?:\r?\n[ \t]{0,32}-[ ][^\r\n]+)*|[^\s&;,\"'\\<>\[\]{}()]+",
    re.DOTALL,
)
#: The same for a line that begins with the name and `=`: settings have spaces in values.
_LINE: Final = re.compile(r"(?![\"'\\\[])[^\r\n]+")
#: The word before a name, which belongs to it: `API key: …`.
_BEFORE: Final = re.compile(r"[A-Za-z]{1,16}(?=[ ]\Z)")
#: An option of a command and its value.
_OPTION: Final = re.compile(
    r"(?<![\w-])--?(?P<name>[A-Za-z][\w-]{1,63})(?P<sign>\s{1,8})(?P<value>[\"']?[^\s\"'-][^\s\"']*)"
)
#: Users and passwords of a command, and passwords of commands that take them as `-p` or `-a`.
_COMMAND: Final = re.compile(
    r"(?P<user>(?<![\w-])(?:-[uU]|--(?:proxy-)?user)[ =]{0,8}[\"']?"
    r"(?!\d+:\d+\b)[^\s:\"']{1,128}[:%])[^\s\"']+"
    r"|(?P<login>\blogin\s{1,8}\S{1,128}\s{1,8}password\s{1,8})\S+"
    r"|(?P<known>\b(?:sshpass|mysql\w*|mariadb\w*|mongo\w*|redis-cli"
    r"|(?:docker|podman|helm|az|oc)\s[^\r\n|;&]{0,128}?\blogin)\b"
    r"[^\r\n|;&]{0,256}?\s(?:-p|-a)\s{0,8})[\"']?[^\s\"']+"
)
_USER: Final = re.compile(
    r"((?::|%3A)(?://|%2F%2F))"
    r"(?:[^\s/@\"']{0,256}?(?::|%3A)[^\s/\"']{0,256}|[^\s/@:%\"']{16,512})(?=@|%40)",
    re.IGNORECASE,
)
_QUERY: Final = re.compile(
    r"([?&#](?:code|key|sig|auth|[\w-]*signature)(?:=|%3D))[^\s&#\"'\\]+", re.IGNORECASE
)
#: Keys of well-known services, signed and encrypted tokens, private keys.
_KEYS: Final = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{16,}|[rs]k_(?:live|test)_\w{10,}|whsec_\w{10,}|gh[opsur]_\w{20,}"
    r"|github_pat_\w{20,}|gl[a-z]{2,4}-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}"
    r"|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{20,}|hv[bs]\.[\w-]{20,}|dop_v1_\w{32,}|shp\w{2}_\w{20,}"
    r"|AGE-SECRET-KEY-1\w{20,}|\d{8,10}:AA[\w-]{30,}|eyJ[\w-]{8,}(?:\.[\w-]*){2,4})"
    r"|-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def hide_secrets(value: JSON) -> JSON:
    """Replace likely secrets by `[hidden]`; the default of `record` and `replay`.

    These are texts and numbers whose name ends like `Authorization`, `Cookie`, `api_key`,
    `password`, `secret`, `session_id`, `token` or `pin`, of one or of several, in objects, lists of
    headers, texts, options of commands and URLs; credentials behind `Bearer`, `Basic`, `Digest` and
    other schemes, behind `-u` of a command, and those before the host of a URL; signed tokens,
    private keys, and keys of well-known services; and all these in base64. A number becomes 0, but
    a number of `tokens` is a count, and stays. Other secrets need a function of your own.

    Args:
        value: A message, or any JSON value.

    Returns:
        A copy.
    """
    if isinstance(value, str):
        return _hide_in_text(value)
    if isinstance(value, list):
        # In a command line, the value of an option is the next word.
        before = [None, *value]
        return [_hide_word(option, each) for option, each in zip(before, value, strict=False)]
    if isinstance(value, dict):
        named = next((value[key] for key in ("name", "key") if key in value), None)
        return {
            _hide_in_text(name): _hide_under(named if name == "value" else name, each)
            for name, each in value.items()
        }
    return value


def _hide_word(option: JSON, word: JSON) -> JSON:
    """Hide an item of a list, which may be a command line; `option` is the item before it."""
    if _is_option(option):
        return _hide_all(word)
    if isinstance(word, str) and (user := _COMMAND.match(f"{option} {word}")) and user["user"]:
        return f"{user['user'][len(option) + 1 :]}{HIDDEN}"
    return _hide_in_item(word)


def _hide_in_item(item: JSON) -> JSON:
    """Hide the secrets in an item of a list, which may be the name and the value of a header."""
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        return [hide_secrets(item[0]), _hide_under(item[0], item[1])]
    return hide_secrets(item)


def _is_option(word: object) -> bool:
    return isinstance(word, str) and word[:1] == "-" and "=" not in word and _is_secret(word)


def _hide_under(name: object, value: JSON) -> JSON:
    """Hide a value if its name is the name of a secret."""
    if not _is_secret(name) or _is_count(name, value):
        return hide_secrets(value)
    return _hide_all(value)


def _hide_all(value: JSON) -> JSON:
    """Hide all texts and numbers of a value whose name is the name of a secret."""
    if isinstance(value, str):
        return HIDDEN
    if isinstance(value, list):
        return [_hide_all(each) for each in value]
    if isinstance(value, dict):
        if str(value.get("type")) in TYPES or not _SCHEMA.isdisjoint(value):
            return hide_secrets(value)
        return {name: _hide_all(each) for name, each in value.items()}
    # Of the same type, for a client that validates it.
    return value if value is None or isinstance(value, bool) else 0


def _is_secret(name: object) -> bool:
    if not isinstance(name, str):
        return False
    # `userPIN`, `PIN_CODE` and `session-ids` are of several words.
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])", name)
    plain = "".join(words).lower()
    single = plain.removesuffix("s") if not plain.endswith("ss") else plain
    last = words[-1].lower() if words else ""
    if last in _WORDS or last.removesuffix("s") in _WORDS:
        return True
    return single.endswith(_ENDS) and not single.endswith(_OPEN)


def _is_count(name: object, value: JSON) -> bool:
    """Tell whether a number is a count of a model's tokens, by its name."""
    is_number = isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal())
    return is_number and str(name).lower().endswith("tokens") and len(str(value)) < 10


def _hide_in_text(text: str) -> str:
    if text[:1] in ("{", "["):
        # A list or an object after a name is found here, not in the text.
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            hidden = hide_secrets(value)
            return text if hidden == value else json.dumps(hidden, ensure_ascii=False)
    text = _KEYS.sub(HIDDEN, text)
    text = _USER.sub(rf"\1{HIDDEN}", text)
    text = _QUERY.sub(rf"\1{HIDDEN}", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    text = _HEADER.sub(_hide_header, text)
    text = _PARAMETERS.sub(rf"\1 {HIDDEN}", text)
    text = _COMMAND.sub(lambda found: f"{next(filter(None, found.groups()))}{HIDDEN}", text)
    text = _OPTION.sub(_hide_option, text)
    text = _hide_named(text)
    # Decoded text is shorter, so base64 in base64 ends.
    return _ENCODED.sub(lambda found: _hide_encoded(found[0]), text)


def _hide_header(found: re.Match[str]) -> str:
    return f"{found['quote'] or ''}{found['head']}{found['sign']}{HIDDEN}"


def _hide_option(found: re.Match[str]) -> str:
    if not _is_secret(found["name"]) or _is_count(found["name"], found["value"]):
        return found[0]
    return f"{found[0][: found.start('value') - found.start()]}{HIDDEN}"


def _hide_named(text: str) -> str:
    """Hide the values after names of secrets in a text."""
    made, at = [], 0
    for found in _NAME.finditer(text):
        name, start, end = found["name"], found.start(), found.end()
        before = _BEFORE.search(text, max(start - 17, at), start)
        if start < at or not _is_secret(f"{before[0]}{name}" if before else name):
            continue
        is_line = text[:start].endswith("\n") or not start
        value = (is_line and "=" in found["sign"] and _LINE.match(text, end)) or _VALUE.match(
            text, end
        )
        if not value or _is_prose(found["sign"], value[0]) or _is_count(name, value[0]):
            continue
        group = value.groupdict()
        quote, close = group.get("quote") or "", group.get("end") or ""
        made.append(f"{text[at:end]}{quote}{HIDDEN}{close}")
        at = value.end()
    return "".join((*made, text[at:]))


def _is_prose(sign: str, value: str) -> bool:
    """Tell whether a value is an ordinary word, as in `password: required`."""
    is_word = value.rstrip(".").isalpha() and len(value) < 20
    return (":" in sign and "=" not in sign and is_word) or value in HIDDEN


def _hide_encoded(text: str) -> str:
    """Hide the secrets of a base64 text, in the standard or URL alphabet."""
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
