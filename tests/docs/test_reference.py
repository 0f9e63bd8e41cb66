"""The tables of the documentation say what the code says."""

import importlib
import inspect
import re
from pathlib import Path

import attrs
import pytest

import noizu_mcp
from noizu_mcp import Limits, Prompt, Resource, ResourceTemplate, Server, Tool
from noizu_mcp.components import _options, _resource_options
from noizu_mcp.jsonrpc import _codes
from noizu_mcp.protocol import REVISIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The folders for users: their names stand on the page of public names, each in a table.
FOLDERS = ("auth", "telemetry", "testing", "transports.http")
COMMANDS = ("run", "list", "call", "read", "prompt", "complete")


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Read the rows of all tables, heads included."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines if "---" not in line]


def defaults(text: str) -> dict[str, float]:
    """Read the tables of limits: each by its name."""
    return {
        cells[0].strip("`"): float(cells[1])
        for cells in rows(text)
        if cells[0].startswith("`") and re.fullmatch(r"[0-9.]+", cells[1])
    }


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def names_of(title: str) -> str:
    """Give a section of the page of public names, without those below it."""
    text = page("reference/names")
    return re.split(r"\n##+ ", re.split(rf"\n##+ {re.escape(title)}\n", text)[1])[0]


def test_every_public_name_is_listed() -> None:
    """The page of public names has each of them, and no other."""
    public = {*noizu_mcp.__all__}
    text = page("reference/names").partition("\n## Public folders\n")[0]
    names = {cells[0].strip("`") for cells in rows(text) if re.fullmatch(r"`\w+`", cells[0])}
    names |= set(re.findall(r"`(\w+)`", section(text, "Errors")))

    assert names == public


def test_public_folders_are_listed() -> None:
    """Every folder with names of its own is listed; the others are rooms of a layer."""
    package = Path(noizu_mcp.__file__).parent
    inits = [path for path in package.glob("*/**/__init__.py") if "import" in path.read_text()]
    files = [path.parent.relative_to(package) for path in inits]
    listed = re.findall(r"`noizu_mcp\.([\w.]+)`", names_of("Public folders"))

    assert {*listed} == {".".join(folder.parts) for folder in files}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_name_of_a_folder_is_listed(folder: str) -> None:
    """Each name of a folder for users has a row, and no other name has."""
    module = importlib.import_module(f"noizu_mcp.{folder}")
    table = rows(names_of(f"noizu_mcp.{folder}"))[1:]
    names = [name.strip("`") for cells in table for name in cells[0].split(", ")]

    assert sorted(names) == sorted(module.__all__)


@pytest.mark.parametrize("folder", [None, *FOLDERS])
def test_every_public_name_is_in_the_changelog(folder: str | None) -> None:
    """A name that comes is a line there."""
    module = importlib.import_module(f"noizu_mcp.{folder}" if folder else "noizu_mcp")
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")

    assert [name for name in module.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_limits() -> None:
    """Each limit stands there with its default."""
    first = page("reference/limits").partition("\n## ")[0]

    assert defaults(first) == attrs.asdict(Limits())


def test_limits_over_http() -> None:
    """So do those of the HTTP side, and of the host."""
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
    """The numbers that hold for questions are those of the code."""
    from noizu_mcp.client import _answers
    from noizu_mcp.components import ELICIT_TIMEOUT, SAMPLE_TIMEOUT
    from noizu_mcp.components._client_requests import ROOTS_TIMEOUT
    from noizu_mcp.server.asking import _mrtr as _rounds
    from noizu_mcp.server.registry import _state_keys
    from noizu_mcp.types import MAX_COMPLETIONS

    numbers = [cells[0] for cells in rows(page("reference/limits"))]
    timeouts = (ELICIT_TIMEOUT, SAMPLE_TIMEOUT, ROOTS_TIMEOUT)

    assert ", ".join(f"{seconds:g} s" for seconds in timeouts) in numbers
    assert _rounds.MAX_ROUNDS == _answers.MAX_ROUNDS
    for number in (
        _rounds.MAX_ROUNDS,
        _rounds.MAX_REASKS,
        _rounds.MAX_STATE,
        _state_keys.MIN_SECRET,
        MAX_COMPLETIONS,
    ):
        assert str(number) in numbers
    assert f"{_state_keys.STATE_TTL:g} s" in numbers
    assert f"{_rounds.PATIENCE:g} s" in numbers


def test_limits_of_skills() -> None:
    """Those of folders, too."""
    from noizu_mcp.skills import _files as _skill_files

    numbers = [cells[0] for cells in rows(page("reference/limits"))]

    assert f"{_skill_files.MAX_FILES}, {_skill_files.MAX_BYTES}" in numbers
    assert str(_skill_files.MAX_ENTRIES) in numbers


def test_limits_of_authorization() -> None:
    """So are those of verifiers."""
    from noizu_mcp.auth import (
        _claims,
        _fetch,
        _introspection,
        _jose,
        _jwks,
        _keys,
        _options,
        _request,
    )

    table = {cells[0] for cells in rows(section(page("how-to/authorization"), "Limits"))[1:]}

    assert table == {
        f"{_request.MAX_TOKEN}",
        f"{_claims.LEEWAY:g} s, {_options.MAX_LEEWAY:g} s",
        f"{_fetch.FETCH_TIMEOUT:g} s, {_fetch.FETCH_SIZE}",
        f"{_jwks.JWKS_TTL:g} s, {_jwks.JWKS_COOLDOWN:g} s",
        f"{_jwks.JWKS_PATIENCE:g} s, {_jwks.JWKS_OVERDUE:g} s",
        f"{_jwks.JWKS_STALE:g} s",
        f"{_jose.MAX_KEYS}",
        f"{_jose.MIN_RSA}",
        f"{_introspection.INTROSPECTION_TTL:g} s, {_introspection.INTROSPECTION_CACHE}",
        f"{_introspection.INTROSPECTION_CONCURRENCY}, {_introspection.INTROSPECTION_PATIENCE:g} s",
        f"{_keys.MIN_API_KEY}",
    }


def test_verifiers_are_listed() -> None:
    """Each verifier that comes with the package has a row."""
    from noizu_mcp import auth

    verifiers = {
        name
        for name in auth.__all__
        if inspect.isclass(value := getattr(auth, name)) and issubclass(value, auth.TokenVerifier)
    }
    text = section(page("how-to/authorization"), "Choose a verifier")

    assert {cells[0].strip("`") for cells in rows(text)[1:]} == verifiers - {"TokenVerifier"}


def test_error_codes() -> None:
    """Each code stands there with its name."""
    table = {
        int(cells[0]): cells[1]
        for cells in rows(page("reference/errors"))
        if re.fullmatch(r"-\d+", cells[0])
    }

    assert table == _codes.CODE_NAMES


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
    """Each option of a tool has a row; the forms of its schemas have a section instead."""
    forms = {"input", "output", "input_schema", "output_schema"}
    listed = {cells[0].strip("`") for cells in rows(section(page("tutorial/tools"), "Options"))[1:]}

    assert listed == set(Tool.__mcp_table__) - forms


def test_options_of_all_kinds() -> None:
    """The table of options says which kind takes which."""
    of_one_tool = {"name", "title", "description", "input", "output"}
    of_one_tool |= {"input_schema", "output_schema"}
    takes = (
        _options.TOOL_OPTIONS.keys(),
        _options.TOOLKIT_OPTIONS.keys() - of_one_tool,
        _options.METHOD_OPTIONS.keys(),
        _options.REGISTRATION_OPTIONS.keys(),
    )
    table = rows(section(page("reference/options"), "Of tools"))[1:]

    for at, names in enumerate(takes, start=1):
        assert {cells[0].strip("`") for cells in table if cells[at] == "yes"} == names
    kinds = (Resource, ResourceTemplate, Prompt)
    table = rows(section(page("reference/options"), "Of resources, templates and prompts"))[1:]
    for at, kind in enumerate(kinds, start=1):
        listed = {cells[0].strip("`") for cells in table if cells[at] == "yes"}
        assert listed == kind.__mcp_table__.keys()
    registered = {cells[0].strip("`") for cells in table if cells[4] == "yes"}
    overrides = _resource_options.RESOURCE_OVERRIDES.keys()
    assert registered == overrides | _resource_options.PROMPT_OVERRIDES.keys()
    servers = rows(section(page("reference/options"), "Of a server"))[1:]
    assert {cells[0].strip("`") for cells in servers} == Server.__mcp_table__.keys()


def test_revisions() -> None:
    """The table of the eras says what the flags say."""
    head, *table = rows(section(page("discussion/eras"), "What differs"))
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
    """Both verbs have a column; what is a limit of the host stands with the limits."""
    from noizu_mcp.transports.http import HostOptions

    table = rows(section(page("reference/options"), "Of serving over HTTP"))[1:]
    limits = defaults(section(page("reference/limits"), "The host")).keys()
    keywords = {
        name: {
            each.name
            for each in inspect.signature(getattr(Server, name)).parameters.values()
            if each.kind is each.KEYWORD_ONLY
        }
        for name in ("run_http", "asgi")
    }
    keywords["run_http"] |= attrs.fields_dict(HostOptions).keys() - limits
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
    """Each option of a command has a row, those of `run` over HTTP in a table of their own."""
    text = page("reference/command-line")
    listed = {
        title: set(
            re.findall(r"--[a-z-]+", " ".join(cells[0] for cells in rows(section(text, title))))
        )
        for title in ("Options", "Over HTTP")
    }
    using = set().union(*(options_of(command, capsys) for command in COMMANDS[1:]))

    assert listed["Options"] == using | {"--version"}
    assert listed["Over HTTP"] == options_of("run", capsys) - {"--http", "--debug"}
    assert options_of("", capsys) == {"--version"}
