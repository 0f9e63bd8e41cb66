"""Imports go one way: a folder is a layer, and the order of the layers is the order of imports."""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "noizu_mcp"

# Layer → the layers that it may import; every layer may import the files at the root.
LAYERS: dict[str, set[str]] = {
    "types": set(),
    "jsonrpc": {"types"},
    "protocol": {"types", "jsonrpc"},
    "auth": {"types", "jsonrpc"},
    "uri": set(),
    "backends": set(),
    "workers": {"backends"},
    "schema": {"jsonrpc"},
    "models": {"types", "jsonrpc", "schema"},
    "components": {"types", "uri", "schema"},
    "skills": {"types", "components"},
    "engine": {"types", "jsonrpc", "protocol"},
    "events": {"types", "jsonrpc", "protocol", "engine"},
    "server": {"types", "jsonrpc", "protocol", "schema", "components", "engine"}
    | {"uri", "skills", "events", "backends"},
    "telemetry": {"types", "jsonrpc", "protocol", "engine", "events", "server"},
    "transports": {"types", "jsonrpc", "protocol", "auth", "engine", "events", "server"}
    | {"telemetry", "backends", "workers"},
    "client": {"types", "jsonrpc", "protocol", "auth", "schema", "components", "engine", "server"}
    | {"transports", "skills", "events"},
    "aio": {"types", "engine", "transports", "client"},
    "testing": {"types", "jsonrpc", "protocol", "auth", "uri", "schema", "components", "engine"}
    | {"server", "transports", "client", "aio", "backends"},
    "openapi": {"types", "schema", "components"},
    "remote": {"types", "jsonrpc", "protocol", "schema", "components", "engine", "server"}
    | {"transports", "client"},
    "check": {"types", "jsonrpc", "protocol", "auth", "uri", "schema", "models", "engine"}
    | {"server", "transports", "client", "testing"},
    "cli": {"types", "jsonrpc", "protocol", "uri", "schema", "engine", "server", "transports"}
    | {"client", "testing", "check", "auth", "models", "remote", "backends", "workers"},
}
# Files at the root below all layers, in their own order.
BELOW = (
    "_version",
    "_value",
    "_pointer",
    "_json_schema",
    "_errors",
    "_limits",
    "_files",
    "_printable",
    "_log",
    "_util",
    "_schema_engine",
    "_groups",
    "_source",
    "_class_body",
    "_foreign",
    "_nearest",
    "_media_types",
    "_media",
    "_http_body",
    "_http_log",
)
# Files at the root above them; the commands run what `_serving` runs.
ABOVE = ("tools", "policies", "_serving", "_pytest_plugin", "__init__", "__main__")

# The rooms of a layer, in the order of imports: folders, and files that belong together; all other
# files at the root of the layer are above them.
ROOMS = {
    "components": (
        {"_capability", "_context", "_client_requests", "_handle", "_log_methods", "_notify"},
        {"handlers"},
        {"declare"},
        {"registration"},
    ),
}

SANS_IO = ("types", "jsonrpc", "protocol", "uri", "schema")
# The standard library without clock, randomness, I/O and threads; and schema engines.
PURE = {
    *("abc", "ast", "base64", "binascii", "bisect", "collections", "contextlib", "copy"),
    *(
        "decimal",
        "difflib",
        "enum",
        "functools",
        "hashlib",
        "importlib",
        "inspect",
        "itertools",
        "json",
    ),
    *("keyword", "linecache", "math", "operator", "re", "reprlib", "string", "sys", "types"),
    *("typing", "unicodedata", "urllib", "weakref"),
    *("attrs", "fastjsonschema", "jsonschema_rs"),
}
# Pure as used: source text for error messages, and the dialect of a reference.
PURE_PARTS = {"urllib": {"urllib.parse"}, "importlib": {"importlib.util"}}

# Function-level imports, each with its reason.
LATE = {
    ("server/registry/_server_options", "...backends"): "loads with the first backend",
    ("_serving", ".backends"): "loads with the first server that cannot start",
    ("transports/http/server/_app", "....server"): "loads where the server has a backend",
    ("server/_running", ".handles._backing"): "the same",
    ("transports/http/server/_http_options", "....backends"): "loads with a wrong URL",
    ("server/registry/_registry", "...uri"): "most servers have no templates",
    ("client/_client", "._skills"): "loads with the first file of a skill",
    ("client/_handlers", "._handler_checks"): "loads with the first class of a handler",
    ("client/_targets", "..server"): "loads with the first server in memory",
    ("client/_connect", "..server"): "the same",
    ("backends/_redis", "._link"): "coredis, an extra, loads where a backend is opened",
    ("auth/_fetch", "httpx2"): "loads with the first verifier that fetches",
    ("auth/_jwt", "."): "PyJWT loads with the first verifier of JWTs",
    ("auth/client/_credentials", "."): "PyJWT loads with the first strategy that signs",
    ("check/contract/_schemas", "jsonschema_rs"): "loads with the first schema that has changed",
    ("check/contract/_schemas", "hypothesis"): "an extra, loads with the first change unproved",
    ("check/contract/_schemas", "hypothesis.errors"): "the same",
    ("_pytest_plugin", ".testing"): "loads with the first test that uses it",
    ("_pytest_plugin", ".testing.plugin"): "the same",
    ("_pytest_plugin", ".check"): "the same",
    ("_pytest_plugin", ".check.lint"): "the same",
    ("_pytest_plugin", ".client"): "the same",
    ("_pytest_plugin", "._printable"): "loads with the first text of a server that is shown",
    ("check/fuzz/_fuzz", "._run"): "hypothesis, an extra, loads with the first run",
    ("check/raw/_web", "httpx2"): "an extra, loads with the first URL",
    ("testing/strategies/_schemas", "."): "hypothesis loads with the first strategy",
    ("testing/_check_backend", "._backend_model"): "hypothesis loads with the first check",
    ("testing/_served", "._hosted"): "HTTP loads with the first test over it",
    ("testing/plugin/_connections", "..."): "`aio`: loads with the first test on asyncio",
    ("testing/_grants", "jwt"): "PyJWT loads with the first authorization server",
    ("components/declare/_options", "...uri"): "loads with the first URI template",
    (
        "components/registration/_registration",
        "..declare._prompt_kind",
    ): "loads with the first function among the prompts",
    ("schema/_declared_schema", ".convert._class_validation"): "the first class with own checks",
    ("schema/_declared_schema", ".declare._data_form"): "loads with the first mapping of fields",
    ("schema/_declared_schema", ".publish._field_faults"): "loads with the first wrong form",
    ("schema/_declared_schema", ".publish._headers"): "loads with the first header or raw schema",
    ("schema/_declared_schema", ".convert._refusals"): "the same",
    ("schema/convert/_dump", "._foreign_values"): "values of numpy, pandas, polars, or no JSON",
    ("schema/declare/_annotations", "._foreign_types"): "other libraries, and mistakes",
    ("schema/declare/_state", "._constraints"): "constraints of other libraries",
    ("schema/declare/_state", "._pydantic"): "loads where pydantic is",
    ("schema/declare/_classes", "._constraints"): "the same",
    ("schema/declare/_classes", "._mistakes"): "loads with the first mistake",
    ("schema/declare/_field_options", "._mistakes"): "the same",
    ("schema/engines/_compile", "..report._explain"): "loads with the first violation",
    ("schema/_check", ".report._explain"): "loads with the first default of a schema",
    ("schema/engines/_engine", "."): "an engine loads with the first value, reference or pattern",
    ("types/_content", ".._media"): "loads with the first file or picture",
    ("server/_server_request", ".asking._live"): "loads with the first question or step",
    ("server/_server_request", ".asking._record"): "the same",
    ("server/_server_request", ".asking._rounds"): "the same",
    ("server/_running", ".asking._parked"): "loads with the first question of 2026-07-28",
    ("server/_running", ".tasks._task_store"): "loads with the first task",
    ("server/_running", ".providers._provider_lists"): "loads with the first provider",
    ("server/_server", ".providers._providers"): "the same",
    ("server/features/_lifecycle", "..providers._introductions"): "the same",
    ("server/features/_lists", "..providers._introductions"): "the same",
    ("server/features/_resources", "..providers._introductions"): "the same",
    ("server/_running", ".handles._handle_store"): "loads with the first handle",
    ("server/_server", ".handles._backing"): "the same",
    ("server/_server", ".policies._capability"): "loads with the first capability",
    ("server/_running", ".calls._nested"): "loads with the first call of a handler",
    ("server/_running", ".calls._policy_checks"): "loads with the first policy",
    ("server/calls/_registered", "._policy_checks"): "the same",
    ("server/policies/_policy_set", "._policy"): "the same",
    ("server/providers/_mounted_specs", "..calls._policy_checks"): "the same",
    ("server/registry/_class_checks", "..policies._policy"): "the same",
    ("server/policies/_shipped", "datetime"): "loads with the first window",
    ("server/policies/_shipped", "zoneinfo"): "the same",
    ("telemetry/_audit", "sqlite3"): "loads with the first table",
    (
        "server/features/__init__",
        "._tasks",
    ): "loads with the first call of a tool that can be a task",
    ("server/features/_subscriptions", "._tasks"): "loads with the first subscription to a task",
    ("server/features/__init__", "."): "tasks load with the first request for one",
    ("server/loading/_imports", "._remedies"): "loads with the first file that cannot be imported",
    ("server/_cipher", "cryptography.exceptions"): "loads with the first sealed state",
    ("server/_cipher", "cryptography.hazmat.primitives.ciphers.aead"): "the same",
    ("server/_cipher", "cryptography.hazmat.primitives.hashes"): "the same",
    ("server/_cipher", "cryptography.hazmat.primitives.kdf.hkdf"): "the same",
    ("transports/http/server/_app", "._authorization"): "loads with the first `auth`",
    ("transports/http/server/_app", "._shared_sessions"): "loads where the server has a backend",
    ("_serving", ".transports.http.server._process"): "stdio does not load the HTTP side",
    ("_serving", ".transports.http.server._serve_http"): "the same",
    (
        "transports/http/server/_app",
        "....engine.aio",
    ): "loads for hosts on asyncio",
    ("transports/stdio/_server", "...telemetry"): "the watchdog loads where a server is served",
    ("transports/http/server/_app", "....telemetry"): "the same",
    ("server/calls/_loops", "._asyncio_context"): "loads with the first component on asyncio",
    ("transports/host/_host", "."): "httptools, an extra, loads with the first host",
    ("transports/host/_hypercorn", "hypercorn.trio"): "an extra; it loads where it is asked for",
    ("transports/host/_hypercorn", "h11"): "comes with hypercorn",
    ("transports/host/_hypercorn", "hypercorn.app_wrappers"): "the same",
    ("transports/host/_hypercorn", "hypercorn.config"): "the same",
    ("transports/host/_hypercorn", "hypercorn.events"): "the same",
    ("transports/host/_hypercorn", "hypercorn.protocol.h2"): "the same",
    ("transports/host/_hypercorn", "hypercorn.trio.tcp_server"): "the same",
    ("transports/host/_hypercorn", "hypercorn.trio.worker_context"): "the same",
    ("telemetry/_metrics", "._series"): "prometheus_client, an extra, loads with the first metrics",
    ("telemetry/_client_metrics", "._series"): "the same",
    ("telemetry/_tracing", "._spans"): "opentelemetry, an extra, loads with the first tracing",
    ("client/_connect", "._emitter"): "loads with the first listener of a client",
    ("transports/http/client/_backend", "httpx2"): "an extra, loads with the first URL",
    ("transports/http/client/_backend", "."): "`_network`: httpx2, loads with the first URL",
    ("transports/http/client/_backend", "urllib.request"): "httpx2 loads it, with the first URL",
    ("transports/http/client/_backend", "http.cookiejar"): "httpx2 loads it, with the first URL",
    ("transports/http/client/_client_state", "....auth.client"): "loads with the first 401 or 403",
    ("client/_connect", "..auth.client"): "loads with the first `auth=`",
    ("openapi/_document", "yaml"): "an extra, loads with the first document in YAML",
    ("openapi/_provider", "._http"): "httpx2, an extra, loads with the first document",
}


class Import(NamedTuple):
    """One import statement."""

    file: str
    line: int
    # Dots and name, as written: `..types`, `.`, `json`.
    module: str
    # From the package on, for relative ones: `("types", "_wire")`.
    target: tuple[str, ...]
    names: tuple[str, ...]
    late: bool
    # Under `if TYPE_CHECKING:`; it never runs.
    typing: bool

    @property
    def layer(self) -> str:
        return self.file.partition("/")[0] if "/" in self.file else ""

    @property
    def target_layer(self) -> str:
        """The layer of the imported module; "" for the files at the root."""
        head = self.target[0] if self.target else self.names[0]
        return head if (PACKAGE / head).is_dir() else ""

    def __str__(self) -> str:
        return f"{self.file}.py:{self.line}: {self.module}"


def _statements(
    node: ast.AST, *, late: bool = False, typing: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    """Find the import statements of a file; each with whether it is late, and for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late, typing
        elif not isinstance(child, ast.expr):  # no statement is inside an expression
            yield from _statements(
                child,
                late=late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef),
                typing=typing
                or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)),
            )


def _scan(path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = path.relative_to(PACKAGE).with_suffix("").as_posix()
    folder = path.relative_to(PACKAGE).parent.parts
    for node, late, typing in _statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name, (), (), late, typing)
        else:
            words = tuple((node.module or "").split(".")) if node.module else ()
            module = "." * node.level + (node.module or "")
            target = (*folder[: len(folder) - node.level + 1], *words) if node.level else ()
            names = tuple(alias.name for alias in node.names)
            yield Import(file, node.lineno, module, target, names, late, typing)


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    """Yield every import of the package."""
    return [found for path in sorted(PACKAGE.rglob("*.py")) for found in _scan(path)]


@pytest.fixture(scope="module")
def relative(imports: list[Import]) -> list[Import]:
    """Yield the imports of the package itself."""
    return [each for each in imports if each.module.startswith(".")]


@pytest.fixture(scope="module")
def absolute(imports: list[Import]) -> list[Import]:
    """Yield the imports of other packages."""
    return [each for each in imports if not each.module.startswith(".")]


def test_every_folder_is_a_layer() -> None:
    """A new folder needs its position in the order."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}

    assert folders <= LAYERS.keys()


def test_every_root_file_has_a_place() -> None:
    """A new file at the root is below all layers or above them."""
    assert {path.stem for path in PACKAGE.glob("*.py")} == {*BELOW, *ABOVE}


def test_the_order_has_no_way_back() -> None:
    """Each layer imports only layers before it."""
    order = list(LAYERS)

    for layer, allowed in LAYERS.items():
        assert {name for name in allowed if order.index(name) >= order.index(layer)} == set()


def test_layers_import_one_way(relative: list[Import]) -> None:
    """The table allows each import between layers."""
    wrong = [
        str(each)
        for each in relative
        if each.layer
        and each.target_layer not in {"", each.layer}
        and each.target_layer not in LAYERS[each.layer]
    ]

    assert wrong == []


def test_layers_import_no_file_above_them(relative: list[Import]) -> None:
    """From the root a layer imports only files below all layers."""
    wrong = [
        str(each)
        for each in relative
        if each.layer
        and each.target_layer == ""
        and {*each.target[:1], *(() if each.target else each.names)} & set(ABOVE)
        and (each.file, each.module) not in LATE
        and (each.layer, each.module) != ("cli", ".._serving")
    ]

    assert wrong == []


def test_root_files_import_one_way(relative: list[Import]) -> None:
    """The files below all layers import no layer, and only files before them."""
    wrong = [
        str(each)
        for each in relative
        if each.file in BELOW and each.target[0] not in BELOW[: BELOW.index(each.file)]
    ]

    assert wrong == []


def test_own_modules_are_imported_relatively(absolute: list[Import]) -> None:
    """The package never imports itself by name, so that it can be moved."""
    assert [str(each) for each in absolute if each.module.startswith("noizu_mcp")] == []


@pytest.mark.parametrize("layer", ROOMS)
def test_rooms_import_one_way(layer: str, relative: list[Import]) -> None:
    """Each room imports only rooms before it, also late and for type checkers."""
    order = ROOMS[layer]

    def place(parts: Sequence[str]) -> int:
        return next((at for at, room in enumerate(order) if room & {*parts[1:2]}), len(order))

    inside = [each for each in relative if each.layer == each.target_layer == layer]

    assert {place(each.target) for each in inside} == {*range(len(order) + 1)}
    assert [str(e) for e in inside if place(e.target) > place(e.file.split("/"))] == []


def test_files_of_a_layer_have_no_cycle(relative: list[Import]) -> None:
    """Within a layer, too, imports at the top of files have no cycle."""
    edges: dict[str, set[str]] = {}
    for each in relative:
        if each.late or each.typing or each.file.endswith("__init__"):
            continue
        names = each.names if not each.module.strip(".") else ("",)
        for name in names:
            target = "/".join((*each.target, name) if name else each.target)
            if each.layer == each.target_layer and (PACKAGE / f"{target}.py").is_file():
                edges.setdefault(each.file, set()).add(target)
    done: set[str] = set()
    while rest := [file for file in edges if file not in done]:
        free = [file for file in rest if all(t in done or t not in edges for t in edges[file])]
        assert free, f"a cycle among {sorted(rest)}"
        done.update(free)


def test_a_client_imports_no_server(relative: list[Import]) -> None:
    """The modules that a client loads on import contain no part of a server."""
    edges: dict[str, set[str]] = {}
    for each in relative:
        if not each.late and not each.typing:
            for name in each.names:
                parts = "/".join(each.target), "/".join((*each.target, name))
                files = (f"{parts[0]}/__init__", parts[0], f"{parts[1]}/__init__", parts[1])
                edges.setdefault(each.file, set()).update(files)
    reached = {"client/__init__"}
    new = reached
    while new:
        new = {target for file in new for target in edges.get(file, ())} - reached
        reached |= new

    assert "client/_session" in reached
    assert [file for file in reached if file.startswith(("server/", "components/"))] == []


def _room(parts: tuple[str, ...]) -> str:
    """Return the folder within a layer; "" for files at its root, which combine the rooms."""
    return (
        "/".join(parts[:2]) if len(parts) > 1 and (PACKAGE / "/".join(parts[:2])).is_dir() else ""
    )


def test_rooms_have_no_cycle(relative: list[Import]) -> None:
    """The folders within a layer have no import cycle, also in functions and for types."""
    edges: dict[str, set[str]] = {}
    for each in relative:
        source = _room(tuple(each.file.split("/")[:-1]))
        target = _room(each.target)
        if source and target and source != target and each.layer == each.target_layer:
            edges.setdefault(source, set()).add(target)
    done: set[str] = set()
    while rest := [room for room in edges if room not in done]:
        free = [room for room in rest if all(t in done or t not in edges for t in edges[room])]
        assert free, f"a cycle among {sorted(rest)}"
        done.update(free)


@pytest.mark.parametrize("layer", SANS_IO)
def test_no_io_below(layer: str, absolute: list[Import]) -> None:
    """No trio, clock, randomness, files, or threads are imported: ids and time are arguments."""
    modules = [each for each in absolute if each.layer == layer]
    wrong = [str(each) for each in modules if each.module.partition(".")[0] not in PURE]
    wrong += [
        str(each)
        for each in modules
        if (head := each.module.partition(".")[0]) in PURE_PARTS
        and each.module not in PURE_PARTS[head]
    ]

    assert modules
    assert wrong == []


def test_no_io_by_other_names() -> None:
    """Builtins, and attributes of pure modules, do not provide it, either."""
    used = {
        f"{path.relative_to(PACKAGE)}: {node.func.id}"
        for layer in SANS_IO
        for path in (PACKAGE / layer).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input", "__import__"}
    }

    assert used == set()


def test_late_imports_are_listed(imports: list[Import]) -> None:
    """A function imports only what is listed above, with its reason.

    The command line is exempt: each command loads what it needs when it runs.
    """
    late = {(each.file, each.module) for each in imports if each.late and each.layer != "cli"}

    assert late == LATE.keys()


def test_private_files_stay_private(relative: list[Import]) -> None:
    """A layer uses the public names of other layers."""
    wrong = [
        str(each)
        for each in relative
        if each.target_layer not in {"", each.layer}
        and each.layer
        and any(part.startswith("_") for part in each.target[1:])
    ]

    assert wrong == []


def test_third_party_packages(absolute: list[Import]) -> None:
    """Every third-party import is a dependency in setup.cfg."""
    known = {"attrs", "trio", "sniffio", "cryptography", "fastjsonschema", "jsonschema_rs"}
    known |= {"httpx2", "jwt"}  # of the extra `auth`
    known |= {"opentelemetry", "prometheus_client", "yaml"}  # of `otel`, `prometheus`, `skills`
    known |= {"httpcore2", "httptools", "hypercorn"}  # of the extra `http`
    known |= {"h11"}  # comes with hypercorn; its host handles these errors
    known |= {"coredis", "anyio"}  # of the extra `redis`
    known |= {"hypothesis", "pytest"}  # of the extra `testing`
    known |= {"typing_extensions"}  # type checkers have it
    heads = {each.module.partition(".")[0] for each in absolute}

    assert heads - set(sys.stdlib_module_names) <= known
