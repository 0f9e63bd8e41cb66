"""`noizu-mcp install` and `config`: the files of every host, in a home folder of the test."""

import fcntl
import json
import os
import stat
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from noizu_mcp.cli import main

#: The end of the name of the file before the first change.
BACKUP = ".noizu-mcp.bak"
PROGRAM = str(Path(sys.executable).parent / "noizu-mcp")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home folder, and an environment without other folders."""
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "home" / "AppData" / "Roaming"))
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def files_of(folder):
    """List the files below a folder, relative to it."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def read(path):
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


COMMAND = {"command": PROGRAM, "args": ["run", "{folder}/demo.py:Demo"]}
WITH_ENV = {**COMMAND, "env": {"KEY": "v"}}
URL = "https://x.example/mcp"
HEADERS = {"x-key": "v"}
REMOTE = {"url": URL, "headers": HEADERS}

# The file of a user on Linux, the key of the servers, the entry of a command and that of a URL.
FORMS = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers", WITH_ENV, None),
    "claude-code": (
        ".claude.json",
        "mcpServers",
        {"type": "stdio", **WITH_ENV},
        {"type": "http", **REMOTE},
    ),
    "cursor": (".cursor/mcp.json", "mcpServers", WITH_ENV, REMOTE),
    "vscode": (
        ".config/Code/User/mcp.json",
        "servers",
        {"type": "stdio", **WITH_ENV},
        {"type": "http", **REMOTE},
    ),
    "windsurf": (
        ".codeium/windsurf/mcp_config.json",
        "mcpServers",
        WITH_ENV,
        {"serverUrl": URL, "headers": HEADERS},
    ),
    "zed": (".config/zed/settings.json", "context_servers", WITH_ENV, REMOTE),
    "gemini": (
        ".gemini/settings.json",
        "mcpServers",
        WITH_ENV,
        {"httpUrl": URL, "headers": HEADERS},
    ),
    "codex": (
        ".codex/config.toml",
        "mcp_servers",
        WITH_ENV,
        {"url": URL, "http_headers": HEADERS},
    ),
    "copilot": (
        ".copilot/mcp-config.json",
        "mcpServers",
        {"type": "local", **WITH_ENV, "tools": ["*"]},
        {"type": "http", **REMOTE, "tools": ["*"]},
    ),
    "opencode": (
        ".config/opencode/opencode.json",
        "mcp",
        {
            "type": "local",
            "command": [PROGRAM, "run", "{folder}/demo.py:Demo"],
            "environment": {"KEY": "v"},
        },
        {"type": "remote", **REMOTE},
    ),
    "kiro": (".kiro/settings/mcp.json", "mcpServers", WITH_ENV, REMOTE),
    "lmstudio": (".lmstudio/mcp.json", "mcpServers", WITH_ENV, REMOTE),
}


def test_every_host_has_its_form_here(run):
    """The table above and the help have the same hosts, and so has the code."""
    listed = run("install", "--help")[1].partition("Hosts: ")[2].partition("\n\n")[0]
    assert list(FORMS) == listed.replace(",", " ").split()
    status, _, err = run("install", "nowhere", URL)
    assert status == 2
    assert all(host in err for host in FORMS)


@pytest.mark.parametrize("host", FORMS)
def test_a_server_comes_and_goes(host, home, folder, run):
    """The entry has the form of the host, and no other file of the user is changed."""
    file, key, entry, remote = FORMS[host]
    words = ("demo.py:Demo", "--env", "KEY=v")
    status, out, err = run("install", host, *words)

    assert (status, err) == (0, "")
    assert out.startswith(f"demo: added to ~/{file}\n")
    assert [file] == files_of(home)
    expected = json.loads(json.dumps(entry).replace("{folder}", str(folder)))
    assert {key: {"demo": expected}} == read(home / file)
    assert stat.S_IMODE((home / file).stat().st_mode) == 0o600
    assert run("install", host, *words) == (0, f"demo: ~/{file} has it already\n", "")

    words = (URL, "--name", "x", "--header", "X-Key=v")
    if remote is None:
        status, _, err = run("install", host, *words)
        assert status == 2
        assert "-- npx -y mcp-remote https://x.example/mcp" in err
    else:
        assert run("install", host, *words)[0] == 0
        assert {key: {"demo": expected, "x": remote}} == read(home / file)
        assert run("install", host, "--remove", "--name", "x")[0] == 0
    assert run("install", host, "demo.py:Demo", "--remove")[0] == 0
    assert not read(home / file).get(key)
    assert run("install", host, "--remove", "--name", "demo") == (
        2,
        "",
        f"noizu-mcp: ~/{file} has no server demo\n",
    )


# The files in a project.
PROJECTS = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "zed": ".zed/settings.json",
    "gemini": ".gemini/settings.json",
    "codex": ".codex/config.toml",
    "opencode": "opencode.json",
    "kiro": ".kiro/settings/mcp.json",
}


@pytest.mark.parametrize("host", FORMS)
def test_a_server_of_a_project(host, home, folder, run):
    """The file in the folder is written if the host reads it, and none in the home folder."""
    status, _, err = run("install", host, "demo.py:Demo", "--scope", "project")

    assert files_of(home) == []
    if host not in PROJECTS:
        assert (status, "has no settings in a project" in err) == (2, True)
    else:
        assert (status, err) == (0, "")
        assert "demo" in read(folder / PROJECTS[host])[FORMS[host][1]]


@pytest.mark.parametrize(
    ("platform", "places"),
    [
        (
            "darwin",
            {
                "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
                "vscode": "Library/Application Support/Code/User/mcp.json",
                "zed": ".config/zed/settings.json",
            },
        ),
        (
            "win32",
            {
                "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
                "vscode": "AppData/Roaming/Code/User/mcp.json",
                "zed": "AppData/Roaming/Zed/settings.json",
            },
        ),
    ],
)
def test_places_of_other_systems(platform, places, home, run, monkeypatch):
    """Each system has its own folder for settings."""
    monkeypatch.setattr(sys, "platform", platform)
    for host, file in places.items():
        assert f"~/{file}" == place_of(run, host)


def place_of(run, host):
    """Return the file of a host, as it is named where a server is missing in it."""
    status, _, err = run("install", host, "--remove", "--name", "x")
    assert status == 2
    return err.removeprefix("noizu-mcp: ").removesuffix(" has no server x\n")


def test_folders_in_the_environment(run, home, monkeypatch, tmp_path):
    """Variables override the folders; relative ones of XDG are ignored."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "x"))
    assert place_of(run, "codex") == "c/config.toml"
    assert place_of(run, "zed") == "x/zed/settings.json"
    monkeypatch.setenv("XDG_CONFIG_HOME", "x")
    assert place_of(run, "zed") == "~/.config/zed/settings.json"


def test_the_command_works_from_any_folder(home, folder, run, tmp_path):
    """The program of this environment starts the server from any folder."""
    run("install", "cursor", "demo.py")
    entry = read(home / ".cursor" / "mcp.json")["mcpServers"]["demo"]
    (tmp_path / "elsewhere").mkdir()
    words = ("list", "--", entry["command"], *entry["args"])
    os.chdir(tmp_path / "elsewhere")
    status, out, _ = run(*words)
    os.chdir(folder)

    assert (status, "echo" in out) == (0, True)


def test_a_module_of_the_folder_is_found_from_elsewhere(home, folder, run):
    """The folder is added to Python's path, before the paths of the user."""
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").write_text("")
    (folder / "pack" / "inner.py").write_text("from demo import Demo\n")
    run("install", "cursor", "pack.inner", "--env", "PYTHONPATH=/y", "--name", "one")
    run("install", "cursor", "demo", "--name", "two")
    run("install", "cursor", "pack.inner:Demo", "--env", "PYTHONPATH=", "--name", "three")
    found = read(home / ".cursor" / "mcp.json")["mcpServers"]

    paths = [found[name]["env"]["PYTHONPATH"] for name in ("one", "two", "three")]
    assert [f"{folder}{os.pathsep}/y", str(folder), str(folder)] == paths


def test_an_installed_module_needs_no_path(home, folder, run, tmp_path, monkeypatch):
    """A module from elsewhere is found by its name."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "installed_demo.py").write_text("from demo import Demo\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(folder)
    run("install", "cursor", "installed_demo:Demo")
    entry = read(home / ".cursor" / "mcp.json")["mcpServers"]["demo"]

    assert entry == {"command": PROGRAM, "args": ["run", "installed_demo:Demo"]}


def test_python_without_a_script(home, run, monkeypatch, tmp_path):
    """If the script is not installed, the module is run."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    run("install", "cursor", "demo.py")
    entry = read(home / ".cursor" / "mcp.json")["mcpServers"]["demo"]

    assert str(tmp_path / "python") == entry["command"]
    assert entry["args"][:3] == ["-m", "noizu_mcp", "run"]


SCRIPT = """\
# /// script
# dependencies = [{}]
# ///
import nowhere_to_be_found
"""


@pytest.mark.parametrize("own", ["", ", 'noizu_mcp>=0.1'"])
def test_a_script_with_dependencies(own, home, folder, run, monkeypatch):
    """Uv installs missing dependencies, and this package unless it is listed."""
    (folder / "my script.py").write_text(SCRIPT.format(f"'nowhere-to-be-found'{own}"))
    monkeypatch.setenv("PATH", str(folder))
    status, _, err = run("install", "cursor", "my script.py")
    assert (status, "install them, or uv" in err) == (1, True)

    (folder / "uv").write_text("#!/bin/sh\n")
    (folder / "uv").chmod(0o755)
    assert run("install", "cursor", "my script.py:Demo")[0] == 0
    entry = read(home / ".cursor" / "mcp.json")["mcpServers"]["my-script"]
    last = "noizu_mcp>=0.1" if own else "noizu-mcp"
    options = ["--with", "nowhere-to-be-found", "--with", last]
    serving = ["noizu-mcp", "run", f"{folder}/my script.py:Demo"]
    assert str(folder / "uv") == entry["command"]
    assert ["run", "--no-project", *options, *serving] == entry["args"]


@pytest.mark.parametrize("scope", ["user", "project"])
def test_another_command(scope, home, folder, run, monkeypatch):
    """Files among its arguments become absolute; the program may be a local one."""
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    words = ("--name", "x", "--scope", scope, "--", "tool", "demo.py", "-y", "./a", ".", "b")
    assert run("install", "cursor", *words)[0] == 0
    base = home if scope == "user" else folder
    entry = read(base / ".cursor" / "mcp.json")["mcpServers"]["x"]

    assert (str(folder / "tool") if scope == "user" else "tool") == entry["command"]
    assert [f"{folder}/demo.py", "-y", f"{folder}/a", str(folder), "b"] == entry["args"]


def test_a_dry_run(home, run):
    """It prints the change and writes nothing."""
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"a": 1}')
    status, out, err = run("install", "cursor", URL, "--name", "x", "--dry-run")

    assert (status, err) == (0, "")
    assert '-{"a": 1}\n\\ No newline at end of file\n+{"a": 1,\n' in out
    assert '+      "url": "https://x.example/mcp"\n' in out
    assert (home / ".cursor" / "mcp.json").read_text() == '{"a": 1}'
    assert files_of(home) == [".cursor/mcp.json"]


def test_the_file_before_is_kept(home, folder, run):
    """It is kept beside the new file, with its mode; a link remains a link."""
    real = folder / "dotfiles.json"
    real.write_bytes("\ufeff{\r\n}\r\n".encode())
    real.chmod(0o640)
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(real)
    _, out, _ = run("install", "cursor", URL, "--name", "x")

    kept = f"the file before the first change is {real.name}{BACKUP}"
    assert out.startswith(f"x: added to ~/.cursor/mcp.json; {kept}\n")
    assert (home / ".cursor" / "mcp.json").is_symlink()
    assert (folder / f"{real.name}{BACKUP}").read_bytes().decode() == "\ufeff{\r\n}\r\n"
    assert real.read_bytes().startswith("\ufeff{\r\n  ".encode())
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_the_first_file_stays_the_backup(home, run):
    """Later changes keep the first backup, which only its owner can read."""
    (home / ".codex").mkdir()
    path = home / ".codex" / "config.toml"
    path.write_text('model = "o3"\n')
    path.chmod(0o644)
    run("install", "codex", URL, "--name", "x")
    run("install", "codex", URL, "--name", "y")
    backup = path.with_name(f"config.toml{BACKUP}")

    assert backup.read_text() == 'model = "o3"\n'
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    run("install", "codex", "--name", "y", "--remove")
    _, out, _ = run("install", "codex", "--name", "x", "--remove")
    assert path.read_text() == 'model = "o3"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert out.endswith("Codex: start a new session of Codex\n")


def test_a_removal_says_what_is_left_to_do(home, run):
    """A server that is removed can neither be started nor enabled."""
    run("install", "vscode", URL, "--name", "x")
    _, out, _ = run("install", "vscode", "--name", "x", "--remove")

    assert 'VS Code: stop the server with the command "MCP: List Servers"' in out


PRECIOUS = "alias ls='ls --color'\n"


def make_link(place, target):
    place.symlink_to(target)


def make_hard_link(place, target):
    place.hardlink_to(target)


def make_pipe(place, _):
    os.mkfifo(place)


def make_folder(place, _):
    place.mkdir()


@pytest.mark.parametrize("make", [make_link, make_hard_link, make_pipe, make_folder])
@pytest.mark.parametrize("name", ["mcp.json", f"mcp.json{BACKUP}"])
@pytest.mark.parametrize("scope", ["project", "user"])
def test_what_a_checkout_puts_in_the_place_of_a_file(scope, name, make, home, folder, run):
    """A user's file is not written through a link, and pipes are not waited for."""
    place = folder / ".cursor" if scope == "project" else home / ".cursor"
    place.mkdir()
    precious = home / ".bashrc"
    precious.write_text(PRECIOUS)
    if name != "mcp.json":
        (place / "mcp.json").write_text("{}")
    make(place / name, precious)
    status, _, err = run("install", "cursor", URL, "--name", "x", "--scope", scope)

    assert precious.read_text() == PRECIOUS
    if make is make_hard_link and name != "mcp.json":
        assert status == 0
    else:
        assert (status, err.count("\n")) == (1, 1)
        assert not list(place.glob("*.tmp"))


def test_a_link_to_nowhere_is_no_backup(home, folder, run):
    """No file is created at its target."""
    (folder / ".cursor").mkdir()
    (folder / ".cursor" / "mcp.json").write_text("{}")
    (folder / ".cursor" / f"mcp.json{BACKUP}").symlink_to(home / "new")
    status, _, err = run("install", "cursor", URL, "--name", "x", "--scope", "project")

    assert (status, "is in the way; nothing was changed: remove it" in err) == (1, True)
    assert files_of(home) == []
    assert (folder / ".cursor" / "mcp.json").read_text() == "{}"


@pytest.mark.parametrize("link", [".vscode", ".vscode/mcp.json"])
def test_links_out_of_a_project(link, home, folder, run):
    """Settings of the user are not changed through a link in a checkout, even if they are valid."""
    (home / "settings").mkdir()
    (home / "settings" / "mcp.json").write_text("{}")
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(home / "settings" / ("mcp.json" if "/" in link else ""))
    words = ("install", "vscode", URL, "--name", "x", "--scope", "project")
    # The home folder is below the folder of the test, which is the project.
    (folder / "project").mkdir()
    (folder / ".vscode").rename(folder / "project" / ".vscode")
    os.chdir(folder / "project")
    status, _, err = run(*words)
    os.chdir(folder)

    assert (status, "leads out of the project, to " in err) == (1, True)
    assert (home / "settings" / "mcp.json").read_text() == "{}"


def test_links_inside_a_project(home, folder, run):
    """They are followed, and kept."""
    (folder / "shared").mkdir()
    (folder / ".vscode").symlink_to("shared")
    words = ("install", "vscode", URL, "--name", "x", "--scope", "project")

    assert run(*words)[0] == 0
    assert (folder / ".vscode").is_symlink()
    assert list(read(folder / "shared" / "mcp.json")["servers"]) == ["x"]


def test_installs_at_once(home, folder):
    """No install loses the server of another one."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            words = [("install", "cursor", URL, "--name", f"s{number}") for number in range(8)]
            assert list(pool.map(main, words)) == [0] * 8
    finally:
        sys.setswitchinterval(before)

    assert {f"s{number}" for number in range(8)} == set(
        read(home / ".cursor" / "mcp.json")["mcpServers"]
    )


def test_a_host_that_writes_meanwhile(home, run, monkeypatch):
    """Its change is kept: the file is read again, and then changed."""
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{}")

    def lock_too_late(*_):
        if "theme" not in path.read_text():
            path.write_text('{"theme": "dark"}')

    monkeypatch.setattr(fcntl, "flock", lock_too_late)
    assert run("install", "cursor", URL, "--name", "x")[0] == 0
    assert read(path) == {"theme": "dark", "mcpServers": {"x": {"url": URL}}}


def test_comments_stay(home, run):
    """Comments in settings are kept."""
    (home / ".config" / "zed").mkdir(parents=True)
    path = home / ".config" / "zed" / "settings.json"
    path.write_text('{\n  // Mine.\n  "theme": "One Dark",\n}\n')
    run("install", "zed", URL, "--name", "x")

    assert path.read_text().startswith('{\n  // Mine.\n  "theme": "One Dark",\n  "context_servers"')


@pytest.mark.parametrize(
    ("host", "file", "content", "text"),
    [
        ("cursor", ".cursor/mcp.json", b"{", "line 1, column 2: a name in quotes is missing here"),
        ("cursor", ".cursor/mcp.json", b"{} // x", "the host reads no comments"),
        ("cursor", ".cursor/mcp.json", b"[]", "the whole is [], not an object"),
        ("cursor", ".cursor/mcp.json", b"\xff", "is not UTF-8; nothing was changed"),
        ("codex", ".codex/config.toml", b"a =", "Invalid value"),
        ("codex", ".codex/config.toml", b"mcp_servers = {}", "only you can change; nothing was"),
    ],
)
def test_files_that_are_not_valid(host, file, content, text, home, run):
    """They are not changed, and the error says what to do."""
    (home / file).parent.mkdir()
    (home / file).write_bytes(content)
    status, out, err = run("install", host, URL, "--name", "x")

    assert (status, out, text in err) == (1, "", True)
    assert content == (home / file).read_bytes()
    assert [file] == files_of(home)


def test_a_removal_from_an_invalid_file(home, run):
    """It is refused, without the advice to add an entry."""
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{")
    _, _, err = run("install", "cursor", "--remove", "--name", "x")

    assert err.endswith("nothing was changed: mend the file\n")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda home: (home / ".cursor" / "mcp.json").mkdir(parents=True), "cannot read"),
        (lambda home: (home / ".cursor").write_text(""), "cannot read ~/.cursor/mcp.json: Not a"),
        (lambda home: (home / ".cursor").symlink_to("/proc/nowhere"), "cannot write"),
    ],
)
def test_places_that_cannot_be_used(make, text, home, run):
    """An error of the system is one line."""
    make(home)
    status, _, err = run("install", "cursor", URL, "--name", "x")

    assert (status, text in err, err.count("\n")) == (1, True, 1)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("install", "curser", "demo.py"), "no host curser; did you mean cursor?"),
        (("install", "cursor"), "give the server, or --name with --remove"),
        (("config", "cursor"), "give the server"),
        (("install", "cursor", URL), "give --name NAME"),
        (("install", "cursor", URL, "--name", "a b"), "--name takes up to 64"),
        (("install", "cursor", URL, "--name", "a", "--env", "K=v"), "--env is for a command"),
        (("install", "cursor", "demo.py", "--header", "K=v"), "--header goes with a URL"),
        (("install", "cursor", "--name", "a", "--", "no-such-program"), "command not found"),
        (("install", "cursor", "nofile.py"), "no such file"),
        (("install", "cursor", "--remove"), "give the server, or --name"),
    ],
)
def test_wrong_words(words, text, home, run):
    """Wrong arguments are reported in one line, with status 2."""
    status, out, err = run(*words)

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert text in err
    assert files_of(home) == []


def test_config_prints_the_entry(home, run):
    """Only the entry is on stdout; the file is named on stderr."""
    status, out, err = run("config", "vscode", "demo.py")
    assert (status, *json.loads(out)["servers"]) == (0, "demo")
    assert err == "noizu-mcp: it goes into ~/.config/Code/User/mcp.json\n"
    status, out, _ = run("config", "codex", URL, "--name", "x")
    assert f'[mcp_servers.x]\nurl = "{URL}"\n' == out
    assert files_of(home) == []


def test_a_project_in_its_folder(home, folder, run):
    """The path is shown relative to the folder."""
    _, out, _ = run("install", "vscode", "demo.py", "--scope", "project")

    assert out.startswith("demo: added to .vscode/mcp.json\n")


@pytest.mark.slow
def test_other_commands_load_nothing_of_it(folder):
    """The modules of hosts and editors are only loaded by the commands that need them."""
    code = (
        "import sys; from noizu_mcp.cli import main; main(['list', 'demo.py']);"
        "print([n for n in sys.modules if 'cli.hosts' in n or 'cli.doctor' in n])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_main_is_the_way_in():
    """The help has both commands."""
    assert main(["install", "--help"]) == 0
