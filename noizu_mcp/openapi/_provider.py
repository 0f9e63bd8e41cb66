"""`OpenAPI`: the operations of an HTTP API as tools."""

import base64
import os
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import attrs
import trio

from .._errors import DefinitionError, TransportError
from .._limits import MIB
from .._log import logger
from .._util import is_whole
from .._value import JSONObject
from ..components import (
    Changes,
    Context,
    Registration,
    Renaming,
    ToolProvider,
    read_requires,
    read_seconds,
    tool,
)
from ..types import ToolResult
from ._answers import read_answer
from ._document import (
    MAX_DOCUMENT,
    ApiDocument,
    DocumentError,
    check_document,
    origin_of,
    parse_document,
    read_base,
)
from ._operations import MAX_NAME, ApiRequest, Head, Operation, list_operations, read_operations
from ._schemas import DISPENSABLE, without

if TYPE_CHECKING:
    from ..types import RequireScopes
    from ._http import ApiConnections

#: Bytes of an answer; a model reads all of it.
MAX_ANSWER: Final = MIB
#: Seconds of a call.
CALL_TIMEOUT: Final = 30.0

ApiHeaders = Mapping[str, str]


_NAME: Final = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}")


class OpenAPI(ToolProvider, shared=True):
    """A provider of tools: the operations of an HTTP API that an OpenAPI document describes.

    Each operation is a tool with the name of its `operationId`. Parameters and the body are its
    arguments. An object of JSON is structured content; an answer that is not 2xx is a result with
    `is_error`. Requests go to the servers that the document names, and nowhere else; redirects are
    not followed. An operation that cannot be used is left out, with a log entry.

    Args:
        source: The path of a document of OpenAPI 3.0, 3.1 or 3.2, in JSON or YAML; its URL; or
            the document itself, a mapping. A file is read now, a URL when a server begins to serve.
        include: Rules; an operation is a tool if one of them fits. Empty: all are. A rule is a
            pattern of names (`get*`), of methods and paths (`GET /pets/*`), or of tags
            (`tag:pets`).
        exclude: Rules; no operation that one of them fits is a tool.
        names: Names of tools, by the names that they would have, or by method and path
            (`GET /pets`). Rules are about the names that they would have.
        base_url: The URL before all paths; None: the first server of the document.
        headers: Headers of each request, such as credentials; or an async function that is called
            before each request and returns them.
        auth: Credentials by the names of the `securitySchemes` of the document: a key for
            `apiKey`, a token for `bearer`, `oauth2` and `openIdConnect`, `user:password` for
            `basic`. They are sent with the operations that need them.
        prefix: Put before each name, `pets_getPet`; see `Mount`.
        output_schemas: True to publish the schemas of results, which the API must keep then: a
            result that breaks its schema is an error.
        call_timeout: Seconds that a call may take; None for no limit.
        max_answer: Bytes of an answer.
        requires: Scopes that a caller must hold to use any of the tools: `RequireScopes`, or names.
        tls: Checks the certificates of the servers; None: the authorities of the system.

    Raises:
        ValueError: The document, the prefix, a limit or a name cannot be used, or a rule or a key
            of `names` fits no operation. A document at a URL is read later; then this is in the
            log, and there are no tools.
        OSError: The file cannot be read.
        TransportError: The HTTP library is not installed.
        TypeError: A rule is not a text, or `headers` are not.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | JSONObject,
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        names: Mapping[str, str] | None = None,
        base_url: str | None = None,
        headers: ApiHeaders | Callable[[], Awaitable[ApiHeaders]] | None = None,
        auth: Mapping[str, str] | None = None,
        prefix: str = "",
        output_schemas: bool = False,
        call_timeout: float | None = CALL_TIMEOUT,
        max_answer: int = MAX_ANSWER,
        requires: "RequireScopes | str | Sequence[str] | None" = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._include, self._exclude = _rules(include, "include"), _rules(exclude, "exclude")
        self._names = _read_names(names or {})
        self._base_url = None if base_url is None else read_base(base_url)
        self._headers = headers if callable(headers) else _lower(headers or {})
        self._auth = dict(auth or {})
        self._renaming = Renaming(prefix)
        self._output_schemas = output_schemas
        try:
            self._call_timeout = read_seconds(call_timeout)
        except ValueError as error:
            raise ValueError(f"call_timeout {error}") from None
        if not is_whole(max_answer, 1):
            text = "max_answer must be a whole number of bytes above 0"
            raise ValueError(f"{text}, got {max_answer!r}")
        self._max_answer = max_answer
        self._requires = read_requires(requires)
        self._tls = tls
        self._tools: list[Registration] = []
        self._schemes: Mapping[str, object] = {}
        # None until the document is read.
        self._operations: list[Operation] | None = None
        # One for each served server that has this provider: they end with that server.
        self._connections: dict[object, ApiConnections] = {}
        # Set after each attempt to fetch the document, and each time that connections are opened.
        self._turn = trio.Event()
        self._failure: TransportError | None = None
        try:
            from ._http import fetch_document, open_connections
        except ImportError:
            text = "OpenAPI needs httpx2: pip install 'noizu-mcp[http]'"
            raise TransportError(text) from None
        self._open, self._fetch = open_connections, fetch_document
        self._url = ""
        if isinstance(source, Mapping):
            self._read(ApiDocument(check_document(dict(source), "the document")))
        elif "://" in (text := os.fspath(source)):
            self._url = text
        else:
            data = Path(text).read_bytes()
            self._read(ApiDocument(parse_document(data, text)))

    @property
    def name(self) -> str:
        """The name of the provider in logs and metrics."""
        return f"OpenAPI {self._renaming.prefix or self._url.partition('?')[0]}".strip()

    def namespace(self, key: str) -> str:
        """Return the prefix of the names; see `BaseProvider`."""
        return self._renaming.start(key)

    async def tools(self, _ctx: Context) -> Iterable[Registration]:
        """List the tools; see `ToolProvider`."""
        while self._operations is None:
            if self._failure is not None:
                raise self._failure
            # The server limits the time of this.
            await self._turn.wait()
        return self._tools

    async def watch(self, changed: Changes) -> None:
        """Fetch a document that has a URL, and keep the connections; see `ToolProvider`."""
        if self._operations is None:
            await self._load()
        urls = [each.base_url for each in self._operations or ()]
        secure = any(url.startswith("https:") for url in urls)
        async with self._open(self._tls, self._max_answer, secure=secure) as connections:
            self._connections[changed.server] = connections
            self._wake()
            try:
                await trio.sleep_forever()
            finally:
                # By its value: the server may be served elsewhere by now, with another one.
                left = self._connections.items()
                self._connections = {key: each for key, each in left if each is not connections}

    def _wake(self) -> None:
        self._turn.set()
        self._turn = trio.Event()

    async def _load(self) -> None:
        """Fetch the document of a URL, and make its tools.

        Raises:
            TransportError: It did not come, or cannot be used.
        """
        self._failure = None
        try:
            data = await self._fetch(self._url, self._tls, MAX_DOCUMENT)
            document = parse_document(data, self._url.partition("?")[0])
            # Hundreds of schemas are compiled: not on the loop.
            await trio.to_thread.run_sync(self._read, ApiDocument(document, self._url))
        except (TransportError, ValueError) as error:
            self._failure = TransportError(str(error))
            raise self._failure from error
        finally:
            self._wake()

    def _read(self, document: ApiDocument) -> None:
        """Make the tools of a document.

        Raises:
            DocumentError: It cannot be used, or a rule fits no operation.
        """
        kept = self._choose(list_operations(document))
        given = () if callable(self._headers) else self._headers.keys()
        found = list(read_operations(document, kept, self._base_url, given))
        if self._url and self._base_url is None and (self._headers or self._auth):
            for each in found:
                # Whoever writes the document must not choose who gets the credentials.
                if origin_of(each.base_url) != origin_of(self._url):
                    text = f"its server is {each.base_url}; confirm that with base_url="
                    raise DocumentError(f"{text}, since credentials are given")
        components = document.root.get("components")
        schemes = components.get("securitySchemes") if isinstance(components, dict) else None
        self._schemes = schemes if isinstance(schemes, dict) else {}
        for name in self._auth:
            if name not in self._schemes:
                known = ", ".join(self._schemes) or "none"
                raise DocumentError(f"auth: there is no security scheme {name!r}; known: {known}")
            _check_scheme(name, self._schemes[name])
        self._tools = [made for each in found if (made := self._register(each)) is not None]
        self._operations = found

    def _choose(self, heads: Sequence[Head]) -> list[Head]:
        """Choose the operations that the rules want, and rename them.

        Raises:
            DocumentError: A rule or a key of `names` fits no operation, or a name is used twice.
        """
        for rules, option in ((self._include, "include"), (self._exclude, "exclude")):
            for rule in rules:
                # A slip in a rule must not offer what it was to keep out.
                if not any(_fits(rule, each) for each in heads):
                    raise DocumentError(f"{option}: {rule!r} fits no operation")
        known = {key for each in heads for key in (each.name, each.label)}
        for key in self._names:
            if key not in known:
                raise DocumentError(f"names: {key!r} is no operation")
        chosen: dict[str, Head] = {}
        for each in heads:
            wanted = not self._include or any(_fits(rule, each) for rule in self._include)
            if wanted and not any(_fits(rule, each) for rule in self._exclude):
                name = self._names.get(each.label, self._names.get(each.name, each.name))
                if name in chosen:
                    both = f"{chosen[name].label} and {each.label}"
                    raise DocumentError(f"names: {both} would both be {name!r}")
                chosen[name] = attrs.evolve(each, name=name)
        return list(chosen.values())

    def _register(self, operation: Operation) -> Registration | None:
        """Make the tool of an operation; None if a schema of it cannot be used."""
        options: dict[str, Any] = {"input_schema": operation.input_schema}
        if operation.description is not None:
            options["description"] = operation.description
        if operation.title is not None:
            options["title"] = operation.title
        if self._output_schemas and operation.output_schema is not None:
            options["output_schema"] = operation.output_schema

        async def call(args: dict[str, object], ctx: Context) -> ToolResult:
            return await self._call(operation, args, ctx.server)

        for wrong in (*DISPENSABLE, None):
            try:
                return tool(
                    call,
                    name=self._renaming.rename("name", operation.name),
                    annotations=operation.annotations,
                    timeout=self._call_timeout,
                    requires=self._requires,
                    **options,
                )
            except DefinitionError as error:
                problem = error.problems[0]
                reason = f"{problem.where.removeprefix('call.')}: {problem.text}"
            if wrong is not None:
                for key in options.keys() & {"input_schema", "output_schema"}:
                    options[key] = without(options[key], wrong)
        logger.warning("left out %s: %s", operation.label, reason)
        return None

    async def _call(
        self, operation: Operation, args: Mapping[str, object], server: object
    ) -> ToolResult:
        try:
            request = operation.request(args)
        except ValueError as error:
            return ToolResult.error(str(error))
        headers = await self._headers() if callable(self._headers) else self._headers
        request = self._authorize(request, operation)
        given = _lower(headers)
        if request.parts:
            # The type of a multipart body has its boundary.
            given.pop("content-type", None)
        own = [(name, value) for name, value in request.headers if name not in given]
        request = attrs.evolve(request, headers=(*own, *given.items()))
        while (connections := self._connections.get(server)) is None:
            await self._turn.wait()
        answer = await connections.send(request)
        return read_answer(request, answer.status, answer.media_type, answer.body)

    def _authorize(self, request: ApiRequest, operation: Operation) -> ApiRequest:
        """Add the credentials of the first group of schemes that are all there."""
        group = next((g for g in operation.security if g and self._auth.keys() >= set(g)), ())
        for name in group:
            request = _add_credentials(request, self._schemes[name], self._auth[name])
        return request


def _check_scheme(name: str, scheme: Any) -> None:
    """Check that credentials can be sent as a security scheme says.

    Raises:
        DocumentError: They cannot.
    """
    kind = scheme.get("type") if isinstance(scheme, Mapping) else None
    way = str(scheme.get("scheme")).lower() if kind == "http" else ""
    if kind not in ("http", "apiKey", "oauth2", "openIdConnect"):
        raise DocumentError(f"auth: {name!r} has the type {kind!r}, which takes no text; see tls=")
    if way and way not in ("basic", "bearer"):
        raise DocumentError(f"auth: {name!r} has the scheme {way!r}; give the header in headers=")


def _add_credentials(request: ApiRequest, scheme: Any, secret: str) -> ApiRequest:
    kind = scheme["type"]
    name, value = "authorization", f"Bearer {secret}"
    if kind == "http" and str(scheme.get("scheme")).lower() == "basic":
        value = f"Basic {base64.b64encode(secret.encode()).decode()}"
    elif kind == "apiKey":
        name, value = str(scheme.get("name")), secret
        if scheme.get("in") == "query":
            mark = "&" if "?" in request.url else "?"
            pair = f"{quote(name, safe='')}={quote(value, safe='')}"
            return attrs.evolve(request, url=f"{request.url}{mark}{pair}")
        if scheme.get("in") == "cookie":
            name, value = "cookie", f"{name}={quote(value, safe='')}"
    others = [(key, each) for key, each in request.headers if key != name.lower()]
    before = [each for key, each in request.headers if key == name == "cookie"]
    value = "; ".join([*before, value])
    return attrs.evolve(request, headers=(*others, (name.lower(), value)))


def _rules(rules: Iterable[str], option: str) -> tuple[str, ...]:
    found = (rules,) if isinstance(rules, str) else tuple(rules)
    for rule in found:
        if not isinstance(rule, str):
            raise TypeError(f"{option} must be a list of texts, got {rule!r}")
    return found


def _read_names(names: object) -> dict[str, str]:
    found = _texts("names", names)
    for name in found.values():
        if not _NAME.fullmatch(name):
            text = f"{MAX_NAME} letters, digits, '_', '-' and '.' at most"
            raise ValueError(f"names: {name[:100]!r} must be {text}")
    return found


def _texts(option: str, value: object) -> dict[str, str]:
    """Check that an option is a mapping of texts, and copy it."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{option} must be a mapping, got {value!r}")
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"{option} must map texts to texts; {key!r} does not")
    return dict(value)


def _fits(rule: str, operation: Head) -> bool:
    if rule.startswith("tag:"):
        return any(fnmatchcase(tag, rule.removeprefix("tag:")) for tag in operation.tags)
    if " " in rule:
        method, _, path = rule.partition(" ")
        fits = fnmatchcase(operation.method, method.lower())
        return fits and fnmatchcase(operation.path, path.strip())
    return fnmatchcase(operation.name, rule)


def _lower(headers: object) -> dict[str, str]:
    return {name.lower(): value for name, value in _texts("headers", headers).items()}
