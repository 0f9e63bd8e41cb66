"""The files on the page about Docker, uv and systemd are valid, and their options exist."""

import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from noizu_mcp.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "containers.md"
TEXT = PAGE.read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}.*?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_dockerfile() -> None:
    """It starts from an image, copies before it installs, and ends in a command without a shell."""
    steps = [line.split(maxsplit=1) for line in block("dockerfile").splitlines()]
    names = [name for name, _ in steps]
    command = json.loads(dict(steps)["ENTRYPOINT"])

    assert names[0] == "FROM"
    assert set(names) <= {"FROM", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "ENTRYPOINT"}
    assert names.index("COPY") < len(names) - 1 - names[::-1].index("RUN")
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert command[:2] == ["noizu-mcp", "run"]


def test_the_unit() -> None:
    """It has the three sections, and starts the server over HTTP."""
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block("ini"))
    program, *words = shlex.split(unit["Service"]["ExecStart"])

    assert unit.sections() == ["Unit", "Service", "Install"]
    assert program.endswith("/bin/noizu-mcp")
    assert "--http" in words


def test_the_project_file() -> None:
    """It names the package and its source for uv, and so does the script."""
    project = tomllib.loads(block("toml"))
    comment = re.search(r"^# /// script\n(.*?)^# ///$", block("python"), re.MULTILINE | re.DOTALL)
    assert comment is not None
    script = tomllib.loads(re.sub(r"^# ?", "", comment[1], flags=re.MULTILINE))

    assert project["project"]["dependencies"] == ["noizu-mcp[http]"]
    assert script["dependencies"] == ["noizu-mcp"]
    for each in (project, script):
        assert "noizu-mcp" in each["tool"]["uv"]["sources"]


def test_the_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Each option of the commands on the page is one of `noizu-mcp run`."""
    assert main(["run", "--help"]) == 0
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    lines = re.findall(r"^(?:ExecStart=\S+|docker run .*? docs-server) (.*)$", TEXT, re.MULTILINE)
    used = {word for line in lines for word in shlex.split(line) if word.startswith("--")}

    assert "--allow-host" in used
    assert used <= known
