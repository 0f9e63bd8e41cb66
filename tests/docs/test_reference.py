"""The tables of the documentation agree with the code."""

import importlib
import inspect
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, get_args, get_overloads

import attrs
import pytest

import noizu_mcp
from noizu_mcp import (
    Limits,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
    Toolkit,
    prompt,
    resource,
    tool,
)
from noizu_mcp.components._toolkit import MethodOptions
from noizu_mcp.jsonrpc import CODE_NAMES
from noizu_mcp.protocol import REVISIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The folders for users, beside `noizu_mcp` itself.
FOLDERS = ("auth", "telemetry", "testing", "transports.http")
COMMANDS = ("run", "list", "describe", "call", "read", "prompt", "complete")


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Read the rows of all tables, including their heads."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines if "---" not in line]


def typed_options(function: Callable[..., Any]) -> AbstractSet[str]:
    """Read the names of options that the signature of a function declares for a class."""
    first, *_ = get_overloads(inspect.unwrap(function)) or [function]
    (*_, options) = inspect.signature(first).parameters.values()
    (table,) = get_args(options.annotation)
    return table.__annotations__.keys()


def defaults(text: str) -> dict[str, float]:
    """Read the limits of all tables, by name."""
    return {
        cells[0].strip("`"): float(cells[1])
        for cells in rows(text)
        if cells[0].startswith("`") and re.fullmatch(r"[0-9.]+", cells[1])
    }


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def names_of(title: str) -> str:
    """Return a section of the page of public names, without its subsections."""
    text = page("reference/names")
    return re.split(r"\n##+ ", re.split(rf"\n##+ {re.escape(title)}\n", text)[1])[0]


def test_public_folders_are_listed() -> None:
    """Every folder and file that exports names is listed; the others are internal."""
    package = Path(noizu_mcp.__file__).parent
    inits = [path for path in package.glob("*/**/__init__.py") if "import" in path.read_text()]
    files = [path.parent.relative_to(package) for path in inits]
    listed = re.findall(r"`noizu_mcp\.([\w.]+)`", names_of("Public folders"))

    modules = {path.stem for path in package.glob("[!_]*.py")}
    assert {*listed} == modules | {".".join(folder.parts) for folder in files}


@pytest.mark.parametrize("folder", [None, *FOLDERS])
def test_every_public_name_is_in_the_changelog(folder: str | None) -> None:
    """The changelog names each public name."""
    module = importlib.import_module(f"noizu_mcp.{folder}" if folder else "noizu_mcp")
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")

    assert [name for name in module.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_limits() -> None:
    """Each limit has a row with its default."""
    first = page("reference/limits").partition("\n## ")[0]

    assert defaults(first) == attrs.asdict(Limits())


def test_limits_over_http() -> None:
    """Each limit over HTTP and of the host has a row with its default."""
    from noizu_mcp.transports.http import HostOptions, HttpLimits

    text = page("reference/limits")
    host = {
        name: value
        for name, value in attrs.asdict(HostOptions()).items()
        if type(value) in (int, float) and name != "uds_mode"
    }

    assert defaults(section(text, "Over HTTP")) == attrs.asdict(HttpLimits())
    assert defaults(section(text, "The host")) == host


def test_limits_of_asking() -> None:
    """The limits of questions agree with the code."""
    from noizu_mcp.client import _answers
    from noizu_mcp.components import ELICIT_TIMEOUT, SAMPLE_TIMEOUT
    from noizu_mcp.components._client_requests import ROOTS_TIMEOUT
    from noizu_mcp.server.asking import _record, _rounds
    from noizu_mcp.server.registry import _server_options
    from noizu_mcp.types import MAX_COMPLETIONS

    numbers = [cells[0] for cells in rows(page("reference/limits"))]
    timeouts = (ELICIT_TIMEOUT, SAMPLE_TIMEOUT, ROOTS_TIMEOUT)

    assert ", ".join(f"{seconds:g} s" for seconds in timeouts) in numbers
    assert _record.MAX_ROUNDS == _answers.MAX_ROUNDS
    for number in (
        _record.MAX_ROUNDS,
        _record.MAX_REASKS,
        _rounds.MAX_STATE,
        _server_options.MIN_SECRET,
        MAX_COMPLETIONS,
    ):
        assert str(number) in numbers
    assert f"{_server_options.STATE_TTL:g} s" in numbers
    assert f"{_rounds.PATIENCE:g} s" in numbers


def test_limits_of_skills() -> None:
    """The limits of skill folders agree with the code."""
    from noizu_mcp.skills import _files as _skill_files
    from noizu_mcp.skills import _frontmatter

    numbers = [cells[0] for cells in rows(page("reference/limits"))]

    assert f"{_skill_files.MAX_FILES}, {_skill_files.MAX_BYTES}" in numbers
    assert str(_skill_files.MAX_ENTRIES) in numbers
    assert str(_frontmatter.MAX_FRONTMATTER) in numbers


def test_limits_of_tools_for_models() -> None:
    """The limits of schemas and results for models agree with the code."""
    from noizu_mcp.models import _compose, _results

    numbers = [cells[0] for cells in rows(page("reference/limits"))]

    assert str(_compose.MAX_NODES) in numbers
    assert str(_results.MAX_CHARS) in numbers


def test_limits_of_logins() -> None:
    """The limits of `OAuth` agree with the code."""
    from noizu_mcp.auth import _fetch
    from noizu_mcp.auth.client import _discovery, _oauth, _redirect, _request_auth, _tokens
    from noizu_mcp.transports.http.client import _backend

    text = section(page("how-to/oauth"), "Limits")

    assert {cells[0] for cells in rows(text)[1:]} == {
        f"{_oauth.LOGIN_TIMEOUT:g} s",
        f"{_tokens.TOKEN_TIMEOUT:g} s, {_fetch.FETCH_SIZE}",
        f"{_request_auth.MAX_REFUSALS}",
        f"{_tokens.EXPIRY_MARGIN:g} s",
        f"{_redirect.HEAD_SIZE}, {_redirect.REQUEST_TIMEOUT:g} s, {_redirect.MAX_CONNECTIONS}",
        f"{_backend.ERROR_SIZE}, {_backend.REFUSAL_TIMEOUT:g} s",
        f"{_discovery.MAX_ITEMS}",
    }
    assert f"{_tokens.TOKEN_TIMEOUT:g} s for a request for tokens" in text


def test_limits_of_authorization() -> None:
    """The limits of verifiers agree with the code."""
    from noizu_mcp.auth import (
        _api_keys,
        _claims,
        _fetch,
        _introspection,
        _jose,
        _jwks,
        _verifier,
    )

    table = {cells[0] for cells in rows(section(page("how-to/authorization"), "Limits"))[1:]}

    assert table == {
        f"{_verifier.MAX_TOKEN}",
        f"{_claims.LEEWAY:g} s, {_claims.MAX_LEEWAY:g} s",
        f"{_fetch.FETCH_TIMEOUT:g} s, {_fetch.FETCH_SIZE}",
        f"{_jwks.JWKS_TTL:g} s, {_jwks.JWKS_COOLDOWN:g} s",
        f"{_jwks.JWKS_PATIENCE:g} s, {_jwks.JWKS_OVERDUE:g} s",
        f"{_jwks.JWKS_STALE:g} s",
        f"{_jose.MAX_KEYS}",
        f"{_jose.MIN_RSA}",
        f"{_introspection.INTROSPECTION_TTL:g} s, {_introspection.INTROSPECTION_CACHE}",
        f"{_introspection.INTROSPECTION_CONCURRENCY}, {_introspection.INTROSPECTION_PATIENCE:g} s",
        f"{_api_keys.MIN_API_KEY}",
    }


def test_verifiers_are_listed() -> None:
    """Each verifier of the package has a row."""
    from noizu_mcp import auth

    verifiers = {
        name
        for name in auth.__all__
        if inspect.isclass(value := getattr(auth, name)) and issubclass(value, auth.TokenVerifier)
    }
    text = section(page("how-to/authorization"), "Choose a verifier")

    assert {cells[0].strip("`") for cells in rows(text)[1:]} == verifiers - {"TokenVerifier"}


def test_error_codes() -> None:
    """Each error code has a row with its name."""
    table = {
        int(cells[0]): cells[1]
        for cells in rows(page("reference/errors"))
        if re.fullmatch(r"-\d+", cells[0])
    }

    assert table == CODE_NAMES


def test_exceptions() -> None:
    """Each public exception has a row."""
    exceptions = {
        name
        for name, value in vars(noizu_mcp).items()
        if inspect.isclass(value) and issubclass(value, BaseException)
    }
    listed = {cells[0].strip("`") for cells in rows(page("reference/errors"))}

    assert exceptions <= listed


def test_options_of_a_tool() -> None:
    """Each option of a tool has a row, except the schema options, which have a section."""
    forms = {"input", "output", "input_schema", "output_schema"}
    listed = {cells[0].strip("`") for cells in rows(section(page("tutorial/tools"), "Options"))[1:]}

    assert listed == set(Tool.__mcp_kind__.options) - forms


def test_options_of_all_kinds() -> None:
    """The tables of options name the options of each kind of component."""
    of_one_tool = {"name", "title", "description", "input", "output"}
    of_one_tool |= {"input_schema", "output_schema"}
    takes = (
        Tool.__mcp_kind__.options.keys(),
        Toolkit.__mcp_kind__.options.keys() - of_one_tool,
        MethodOptions.__annotations__.keys(),
        typed_options(tool),
    )
    table = rows(section(page("reference/options"), "Of tools"))[1:]

    for at, names in enumerate(takes, start=1):
        assert {cells[0].strip("`") for cells in table if cells[at] == "yes"} == names
    kinds = (Resource, ResourceTemplate, Prompt)
    table = rows(section(page("reference/options"), "Of resources, templates and prompts"))[1:]
    for at, kind in enumerate(kinds, start=1):
        listed = {cells[0].strip("`") for cells in table if cells[at] == "yes"}
        assert listed == kind.__mcp_kind__.options.keys()
    registered = {cells[0].strip("`") for cells in table if cells[4] == "yes"}
    assert registered == typed_options(resource) | typed_options(prompt)
    servers = rows(section(page("reference/options"), "Of a server"))[1:]
    assert {cells[0].strip("`") for cells in servers} == Server.__mcp_kind__.options.keys()


def test_revisions() -> None:
    """The table of protocol versions agrees with the flags of `Revision`."""
    head, *table = rows(section(page("discussion/eras"), "Differences between versions"))
    flags = {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in table}
    word = {True: "yes", False: "no"}
    outputs = {"none": "no", "object": "object", "any": "any value"}

    for name, revision in REVISIONS.items():
        assert flags["handshake and session"][name] == word[not revision.stateless]
        assert flags["arrays of messages"][name] == word[revision.batches]
        assert flags["`structuredContent`, `outputSchema`"][name] == outputs[revision.structured]
        assert flags["`title`, `_meta` on definitions"][name] == word[revision.titles]
        assert flags["icons, description of a server"][name] == word[revision.icons]
        assert (flags["`resource_link` blocks"][name] == "yes") == revision.resource_links


def test_options_over_http() -> None:
    """The columns list the keywords of both methods; limits of the host have their own page."""
    table = rows(section(page("reference/options"), "Of serving over HTTP"))[1:]
    limits = defaults(section(page("reference/limits"), "The host")).keys()
    keywords = {
        "run_http": {"server", *typed_options(Server.run_http)} - limits,
        "asgi": {"handle_signals", *typed_options(Server.asgi)},
    }
    for at, name in enumerate(("run_http", "asgi"), start=1):
        listed = {word for row in table if row[at] == "yes" for word in row[0].split(", ")}
        assert {word.strip("`") for word in listed} == keywords[name]


def options_of(command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    from noizu_mcp.cli import main

    assert main([*command.split(), "--help"]) == 0
    return set(re.findall(r"--[a-z-]+", re.sub(r" -- .*", "", capsys.readouterr().out))) - {
        "--help"
    }


def test_options_of_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Each option of a command has a row; options of `run` over HTTP have their own table."""
    pages = {
        "reference/command-line": ("Options", "Over HTTP", "Settings of hosts", "Log in"),
        "how-to/doctor": ("Options",),
        "how-to/lint": ("Options",),
        "how-to/contract": ("Options",),
    }
    listed, doctor, lint, contract = (
        {
            title: set(
                re.findall(r"--[a-z-]+", " ".join(c[0] for c in rows(section(page(name), title))))
            )
            for title in titles
        }
        for name, titles in pages.items()
    )
    using = set().union(*(options_of(command, capsys) for command in COMMANDS[1:]))

    # These two belong to `run` only, and apply to both ways to serve.
    serving = {"--reload", "--config"}
    assert listed["Options"] == using | serving | {"--version"}
    assert listed["Over HTTP"] == options_of("run", capsys) - serving - {"--http", "--debug"}
    assert listed["Settings of hosts"] == options_of("install", capsys) - {"--debug"}
    assert options_of("config", capsys) < options_of("install", capsys)
    assert listed["Log in"] == options_of("login", capsys) - {"--debug"}
    assert doctor["Options"] == options_of("doctor", capsys) - {"--debug"}
    connection = options_of("list", capsys)
    assert lint["Options"] == options_of("lint", capsys) - connection
    actions = [options_of(f"contract {action}", capsys) for action in ("write", "check")]
    assert contract["Options"] == set().union(*actions) - connection
    assert options_of("", capsys) == {"--version"}
