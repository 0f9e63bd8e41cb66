"""The files of `docs/examples/deploy` are valid, agree with each other, and their options exist."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from noizu_mcp.backends import Redis
from noizu_mcp.cli import main

from ..kit.redis import RedisServer, needs_redis

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "examples" / "deploy"
UNITS = ("mcp.service", "mcp@.service")
#: The variables of the environment that serving reads, on the page of the command line.
VARIABLES = {"NOIZU_MCP_STATE_KEYS", "NOIZU_MCP_BACKEND"}
PASSWORD = "a-long-password-of-letters"
#: Debian puts nginx where an ordinary user may not look.
NGINX = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
ANALYZE = shutil.which("systemd-analyze")


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def read_unit(name: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text_of(name))
    return unit


def read_compose() -> dict[str, Any]:
    """Read the file as Compose does, with the variables of `.env` put in."""
    text = text_of("compose.yaml").replace("${REDIS_PASSWORD:?}", PASSWORD)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def read_kubernetes() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(text_of("kubernetes.yaml"))}


def words_of_all() -> dict[str, list[str]]:
    """Find the words of `noizu-mcp run TARGET` in each file."""
    compose = read_compose()["services"]["mcp"]["command"]
    (container,) = read_kubernetes()["Deployment"]["spec"]["template"]["spec"]["containers"]
    words = {"compose": compose, "kubernetes": container["args"]}
    for name in UNITS:
        program, run, target, *rest = shlex.split(read_unit(name)["Service"]["ExecStart"])
        assert (Path(program).name, run, target) == ("noizu-mcp", "run", "app.py:Docs")
        words[name] = rest
    return words


def test_the_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Each file serves over HTTP, and each of its options is one of `noizu-mcp run`."""
    assert main(["run", "--help"]) == 0
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    for name, words in words_of_all().items():
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert {"--http", "--allow-host"} <= used, name
        assert used <= known, name


def test_the_units() -> None:
    """One reloads its workers, the other is a template, and both are bounded and hardened."""
    whole, template = (read_unit(name) for name in UNITS)
    for unit in (whole, template):
        service = unit["Service"]
        assert unit.sections() == ["Unit", "Service", "Install"]
        assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
        assert {"MemoryMax", "TimeoutStopSec", "EnvironmentFile"} <= set(service)
    assert whole["Service"]["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert "--workers" in whole["Service"]["ExecStart"]
    assert "/run/mcp-%i/socket" in template["Service"]["ExecStart"]


@pytest.mark.slow
@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_reads_a_unit(name: str, tmp_path: Path) -> None:
    """`systemd-analyze verify` finds no fault; the programs are at the places of this machine."""
    assert ANALYZE is not None
    program = re.compile(r"(?<==)/\S+(?= run| -HUP)")
    unit = tmp_path / name
    unit.write_text(program.sub(sys.executable, text_of(name)), encoding="utf-8")
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_compose_file() -> None:
    """Two nodes share a Redis that only they reach, and a proxy stands before them."""
    compose = read_compose()
    services = compose["services"]
    mcp, redis, proxy = (services[name] for name in ("mcp", "redis", "proxy"))

    assert mcp["deploy"]["replicas"] == 2
    assert set(mcp["environment"]) == VARIABLES
    assert repr(Redis(mcp["environment"]["NOIZU_MCP_BACKEND"])).startswith(
        "Redis('redis://mcp:***@redis:6379/0'"
    )
    assert "noeviction" in redis["command"]
    assert set(redis["networks"]) & set(proxy["networks"]) == set()
    assert [name for name in services if "ports" in services[name]] == ["proxy"]
    used = {each["source"] for service in services.values() for each in service.get("configs", ())}
    assert used == set(compose["configs"])
    assert (FOLDER / compose["configs"]["proxy"]["file"]).is_file()
    named = {network for service in services.values() for network in service["networks"]}
    assert named == set(compose["networks"])
    assert compose["networks"]["inside"]["ipam"]["config"][0]["subnet"] in mcp["command"]


def test_the_rights_are_the_same_everywhere() -> None:
    """The page, the file and the docstring give the user of Redis the same rights."""
    page = (ROOT / "docs" / "how-to" / "scaling.md").read_text(encoding="utf-8")
    user = read_compose()["configs"]["users"]["content"].splitlines()[1]
    rights = user.partition("~")[2]

    assert f"~{rights}" in page
    assert f"~{rights}" in " ".join((Redis.__doc__ or "").split())


@needs_redis
async def test_the_rights_of_the_compose_file(tmp_path: Path) -> None:
    """The user of the file can do everything that a node does, and no other user can log in."""
    users = tmp_path / "users.acl"
    users.write_text(read_compose()["configs"]["users"]["content"], encoding="utf-8")
    with RedisServer("--aclfile", str(users)) as server:
        async with Redis(f"unix://mcp:{PASSWORD}@{server.path}").open("docs") as backend:
            await backend.put("key", b"value", ttl=60.0, groups={"all": 10})
            start = await backend.end_of("log")
            await backend.append("log", b"entry", keep=10, ttl=60.0)
            assert len(await backend.read({"log": start}, wait=1.0)) == 1
            assert await backend.take("rate", limit=1, period=60.0) == 0.0
        assert server.ask("GET", "x").startswith(b"-NOAUTH")


@pytest.mark.slow
@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_nginx_reads_its_file(tmp_path: Path) -> None:
    """`nginx -t` finds no fault; names and ports are ones that a test may use."""
    assert NGINX is not None
    site = text_of("nginx.conf").replace("mcp:8000", "127.0.0.1:8000")
    site = site.replace("listen 80;", f"listen unix:{tmp_path}/socket;")
    (tmp_path / "site.conf").write_text(site, encoding="utf-8")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}}"
        f" http {{ access_log off; {paths} include {tmp_path}/site.conf; }}",
        encoding="utf-8",
    )
    command = [NGINX, "-t", "-q", "-e", "stderr", "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_the_kubernetes_file() -> None:
    """The service finds the pods, the probes ask the health port, and the secret has all names."""
    kinds = read_kubernetes()
    spec = kinds["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    options = dict(word.partition("=")[::2] for word in container["args"])
    labels = spec["template"]["metadata"]["labels"]

    assert set(kinds) == {"Secret", "Service", "Deployment"}
    assert kinds["Service"]["spec"]["selector"] == labels == spec["selector"]["matchLabels"]
    assert kinds["Service"]["spec"]["sessionAffinity"] == "None"
    assert [each["targetPort"] for each in kinds["Service"]["spec"]["ports"]] == ["http"]
    assert ports == {"http": int(options["--port"]), "health": int(options["--health-port"])}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == "health"
    assert container["envFrom"] == [{"secretRef": {"name": kinds["Secret"]["metadata"]["name"]}}]
    secret = kinds["Secret"]["stringData"]
    assert set(secret) == VARIABLES
    assert "***" in repr(Redis(secret["NOIZU_MCP_BACKEND"]))
    assert pod["terminationGracePeriodSeconds"] > float(options["--lead"]) + 7
