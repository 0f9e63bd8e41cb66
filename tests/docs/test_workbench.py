"""The example of a whole application: skills, workflows, stores, policies, secrets."""

import json
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from noizu_mcp import Http, Stdio, TaskStarted, connect
from noizu_mcp.auth import api_key_digest
from noizu_mcp.policies import Policy
from noizu_mcp.types import ClientCapabilities, Task

from .workbench_kit import EXAMPLES, NEWS, VERSIONS, Notes, read, refusal, skill, until, write

pytestmark = pytest.mark.slow

SECRET = "change-this-key-before-use"
KEY = "a-key-of-ada-0123456789"
TASKS = ClientCapabilities(extensions={"io.modelcontextprotocol/tasks": {}})
#: A skill that does forbidden things, and some allowed ones.
PROBE = f'''
CALLS = ["skill:remember"]

async def run(do: str, work) -> str:
    """Probe."""
    key = work.setting("seal.key")
    if do == "print":
        return f"{{key}} {{key!r}}"
    if do == "return":
        return key.reveal()
    if do == "raise":
        from noizu_mcp import ToolError
        raise ToolError(f"no entry with {{key.reveal()}}")
    if do == "refuse":
        from noizu_mcp import McpError
        raise McpError(-32000, f"no entry with {{key.reveal()}}", {{"key": key.reveal()}})
    if do == "crash":
        raise RuntimeError(f"no entry with {{key.reveal()}}")
    if do == "log":
        await work.log(key.reveal())
        await work.progress(1, 2, key.reveal())
        return "https://ada:{SECRET[:10]}@example.com/feed"
    return (await work.call(do, text="hi", query="hi")).text
'''


@pytest.mark.parametrize("version", VERSIONS)
async def test_skills_and_workflows_come_change_and_go(
    made: Callable[[], Any], home: Path, version: str
) -> None:
    """A connected client gets a notice, and then calls the current skill."""
    file, server = home / "skills" / "greet.py", made()
    with trio.fail_after(60):
        async with connect(server, version=version) as client, client.tools as tools:
            assert "skill:greet" not in tools
            write(file, skill("Hello"))
            # Others may read the folder first.
            assert server.count_tools() == 7
            await until(tools, lambda: "skill:greet" in tools)
            assert tools["skill:greet"].description == "Say it. [dynamic]"
            assert (await client.call_tool("skill:greet", {"name": "Ada"})).text == "Hello Ada"
            write(file, skill("Hallo", "Say it in German."))
            await until(tools, lambda: "German" in tools["skill:greet"].description)
            assert (await client.call_tool("skill:greet")).text == "Hallo you"
            file.unlink()
            await until(tools, lambda: "skill:greet" not in tools)
            assert await refusal(client.call_tool("skill:greet")) == (
                -32602,
                "Unknown skill: greet",
            )
            news = home / "workflows" / "news.toml"
            write(news, "enabled = false\n" + news.read_text())
            await until(tools, lambda: NEWS not in tools)


async def test_a_broken_skill_stays_as_it_was(
    made: Callable[[], Any], home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the reason; other skills are not affected."""
    broken = home / "skills" / "aa.py"
    write(broken, "def run(:")
    with trio.fail_after(60):
        async with connect(made()) as client, client.tools as tools:
            assert "skill:aa" not in tools
            assert "skill:headlines" in tools
            assert "aa.py is not used: invalid syntax" in caplog.text
            write(broken, skill("Hi"))
            await until(tools, lambda: "skill:aa" in tools)
            write(home / "skills" / "ac.py", "def run(ctx) -> str: return str(ctx)")
            write(broken, "async def walk(): pass")
            write(home / "skills" / "ab.py", skill("Ho"))
            await until(tools, lambda: "skill:ab" in tools)
            assert (await client.call_tool("skill:aa")).text == "Hi you"
            assert "aa.py stays as it was: it has no function `run`" in caplog.text
            assert "ac.py is not used: a skill takes `work`, and not the context" in caplog.text


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_storm_of_changes_is_a_handful_of_notices(
    made: Callable[[], Any], home: Path, version: str
) -> None:
    """1,000 versions of a file cause few notices, and the list has the last one."""
    file, notes = home / "skills" / "storm.py", Notes()
    with trio.fail_after(120):
        async with (
            connect(made(), version=version, handler=notes) as client,
            client.tools as tools,
        ):
            for number in range(1000):
                write(file, skill("x", f"Version {number}."))
                await trio.lowlevel.checkpoint()
            last = "Version 999. [dynamic]"
            await until(
                tools, lambda: "skill:storm" in tools and tools["skill:storm"].description == last
            )
    assert 1 <= len(notes.came) <= 50
    assert {method for method, _ in notes.came} == {"notifications/tools/list_changed"}


# The rows of the table of errors


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("skill:x", "Unknown skill: x"),
        ("skill:Two words: x", "Unknown skill: Two words: x"),
        ("workflow:x", "Unknown workflow: x"),
        ("workflow:Shell", "Unknown workflow: Shell"),  # disabled
        ("x", "Unknown tool: x"),
    ],
)
async def test_unknown_names_are_errors(
    made: Callable[[], Any], version: str, name: str, text: str
) -> None:
    """They are protocol errors with the kind and the name."""
    async with connect(made(), version=version) as client:
        assert await refusal(client.call_tool(name)) == (-32602, text)


BLOCKED = "Denied: tool 'skill:shell' is blocked by the pattern '*shell*'"
FAILURES = {
    "denied": ("skill:shell", BLOCKED, "denied"),
    "wrong": ("skill:headlines", "Invalid arguments", "tool_error"),
    "slow": ("skill:slow", "Tool execution timed out", "timed_out"),
    "crash": ("skill:crash", "Tool execution failed", "crashed"),
    "failed": ("skill:failed", "the feed is empty", "tool_error"),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("row", FAILURES)
async def test_failures_are_results(
    made: Callable[[], Any], home: Path, version: str, row: str
) -> None:
    """They are error results for the model, alone and as a step of a workflow."""
    code = {
        "shell": skill("x"),
        "slow": "import trio\nTIMEOUT = 0.05\nasync def run() -> None:\n    await trio.sleep(9)\n",
        "crash": "def run() -> None:\n    raise RuntimeError('postgres://ada:pw@db')\n",
        "failed": "from noizu_mcp import ToolError\ndef run() -> None:\n"
        "    raise ToolError('the feed is empty')\n",
    }
    for name, text in code.items():
        write(home / "skills" / f"{name}.py", text)
    name, expected, outcome = FAILURES[row]
    step = f'name = "Try"\n[[steps]]\nname = "one"\nskill = "{name.partition(":")[2]}"\n'
    write(home / "workflows" / "try.toml", step)
    server, ended = made(), []
    server.telemetry.add(lambda event: ended.append((event.name, event.outcome)))
    async with connect(server, version=version) as client:
        result = await client.call_tool(name)
        assert (name, outcome) in ended
        assert result.is_error
        assert result.text.startswith(expected)
        nested = await client.call_tool("workflow:Try")
        assert nested.is_error
        assert nested.text.startswith(f"step one: {expected}")
        (run,) = json.loads((await client.read_resource("workbench://runs/list")).contents[0].text)
        assert (run["workflow"], run["status"]) == ("Try", "failed")


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("workbench://notes/x", "Invalid ID: x"),
        ("workbench://runs/search:x", "Invalid ID: search:x"),
        ("workbench://notes/7", "Resource not found"),
        ("workbench://config/x", "Resource not found"),
        ("workbench://nothing/1", "Resource not found"),
    ],
)
async def test_wrong_uris_are_errors(made: Callable[[], Any], uri: str, text: str) -> None:
    """Malformed and unknown ids have different errors."""
    async with connect(made()) as client:
        code, message = await refusal(client.read_resource(uri))
        assert (code, message.partition(";")[0]) == (-32602, text)


# What the parts do


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_workflow_takes_its_branches(made: Callable[[], Any], version: str) -> None:
    """Results go from step to step; a branch can end the run; the schema lists the branches."""
    async with connect(made(), version=version) as client:
        tools = {each.name: each for each in await client.list_tools()}
        schema = tools[NEWS].output_schema
        assert schema is not None
        assert schema["properties"]["branch"] == {"enum": ["none", None]}
        about = tools[NEWS].input_schema["properties"]["input"]["description"]
        assert about.endswith("Possible output branches: none.")
        branches = " Possible output branches: some, none. [dynamic]"
        assert tools["skill:headlines"].description.endswith(branches)
        whole = await client.call_tool(NEWS, {"input": "# One\ntext\n# Two"})
        assert whole.structured["steps"] == ["find", "digest", "seal"]
        assert whole.structured["result"]["text"] == "One; Two"
        short = await client.call_tool(NEWS, {"input": "text"})
        assert short.structured["steps"] == ["find"]
        assert short.structured["branch"] == "none"
        assert [each["text"] for each in await read(client, "notes/list")] == ["One; Two"]
        assert [each["id"] for each in await read(client, "runs/list")] == [2, 1]
        assert (await read(client, "runs/1"))["status"] == "done"


async def test_advertised_arguments_reach_the_skill(made: Callable[[], Any]) -> None:
    """All of them are passed by name, with their types and defaults."""
    async with connect(made()) as client:
        tools = {each.name: each for each in await client.list_tools()}
        assert set(tools["skill:digest"].input_schema["properties"]) == {"lines", "keep"}
        lines = ["a", "b", "c", "d"]
        assert (await client.call_tool("skill:digest", {"lines": lines})).text == "a; b; c"
        found = await client.call_tool("skill:headlines", {"text": "# a\n# b", "limit": 1})
        assert found.structured == {"result": ["a"], "branch": "some"}


async def test_stores_list_find_and_read(made: Callable[[], Any]) -> None:
    """`list`, `search:` and ids work; the lists are in `resources/list`."""
    async with connect(made()) as client:
        for text in ("buy bread", "buy milk and bread"):
            await client.call_tool("skill:remember", {"text": text})
        assert [each["id"] for each in await read(client, "notes/list")] == [2, 1]
        assert [each["id"] for each in await read(client, "notes/search:bread%20milk")] == [2]
        assert await read(client, "notes/search:tea") == []
        assert await read(client, "notes/1") == {"id": 1, "text": "buy bread"}
        recalled = await client.call_tool("skill:recall", {"query": "milk"})
        assert recalled.structured == {"result": ["buy milk and bread"], "branch": "found"}
        listed = {each.uri for each in await client.list_resources()}
        names = ("notes", "workflows", "runs", "config")
        assert listed == {f"workbench://{name}/list" for name in names}
        assert [each["name"] for each in await read(client, "workflows/list")] == [
            "Tech News Digest",
            "Shell",
        ]


@pytest.mark.parametrize("within", ["alone", "workflow"])
async def test_a_skill_calls_what_it_declares(
    made: Callable[[], Any], home: Path, within: str
) -> None:
    """It can call only declared tools, alone and in a workflow; none without a declaration."""
    write(home / "skills" / "probe.py", PROBE)
    write(home / "skills" / "idle.py", PROBE.replace("CALLS", "NONE"))
    for name in ("probe", "idle"):
        step = f'[[steps]]\nname = "one"\nskill = "{name}"\narguments = {{ do = "$input" }}\n'
        write(home / "workflows" / f"{name}.toml", f'name = "{name}"\n{step}')

    async def call(client: Any, name: str, do: str) -> str:
        if within == "alone":
            return str((await client.call_tool(f"skill:{name}", {"do": do})).text)
        result = await client.call_tool(f"workflow:{name}", {"input": do})
        return str(result.text if result.is_error else result.structured["result"])

    async with connect(made()) as client:
        assert await call(client, "probe", "skill:remember") == "workbench://notes/1"
        denied = "the capability does not allow tool 'skill:recall'"
        assert denied in await call(client, "probe", "skill:recall")
        assert "declares no CALLS" in await call(client, "idle", "skill:remember")


@pytest.mark.parametrize("version", VERSIONS)
async def test_secrets_never_leave(
    made: Callable[[], Any], home: Path, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They are not in results, errors, logs, progress, settings, workflows and runs."""
    write(home / "skills" / "probe.py", PROBE)
    step = '[[steps]]\nname = "one"\nskill = "probe"\narguments = { do = "$input" }\n'
    write(home / "workflows" / "probe.toml", f'name = "probe"\n{step}')
    notes, came = Notes(), []
    caplog.set_level(logging.DEBUG)
    async with connect(made(), version=version, handler=notes) as client:
        await client.set_log_level("debug")
        for do in ("print", "return", "raise", "crash", "log"):
            for name, args in (("skill:probe", {"do": do}), ("workflow:probe", {"input": do})):
                came.append(await client.call_tool(name, args, progress=came.append))
        came.append(await refusal(client.call_tool("skill:probe", {"do": "refuse"})))
        assert came[-1] == (-32000, "no entry with [REDACTED]")
        came.append(await client.call_tool("workflow:probe", {"input": "refuse"}))
        assert came[0].text == "[REDACTED] [REDACTED]"
        assert any("https://[REDACTED]@example.com" in str(each) for each in came)
        paths = ("config/list", "config/seal.key", "workflows/list", "runs/list")
        came += [await read(client, path) for path in paths]
        assert came[-3]["value"] == "[REDACTED]"
    told = f"{came} {notes.came}"
    assert "[REDACTED]" in caplog.text  # a traceback has the message of the exception
    assert SECRET not in told + caplog.text
    assert "never shown" not in told
    assert any("message" in method for method, _ in notes.came)


# Policies


DENY_ALL = '[[policy]]\nkind = "deny"\ntools = ["*"]\n'
RATE = '[[policy]]\nkind = "rate"\nn = 2\nper = 3600\n'


@pytest.mark.parametrize("version", VERSIONS)
async def test_policies_are_replaced_while_it_serves(
    made: Callable[[], Any], home: Path, version: str
) -> None:
    """Without a valid file every call is denied; a corrected one is used at once."""
    file = home / "policies.toml"

    async def until_told(client: Any, text: str) -> None:
        said = ""
        while not said.startswith(text):  # policies send no notices
            said = (await client.call_tool("skill:recall", {"query": "x"})).text

    with trio.fail_after(60):
        async with connect(made(), version=version) as client:
            await until_told(client, '{"result"')
            write(file, DENY_ALL)
            await until_told(client, "Denied: tool 'skill:recall' is blocked")
            for wrong in (
                "[[policy]",
                "[[policies]]",
                'policy = ["x"]',
                '[[policy]]\nkind = "x"',
                RATE[:-10],
            ):
                write(file, wrong)
                await until_told(client, "Denied: the policies cannot be read")
                assert (await refusal(client.read_resource("workbench://notes/list")))[1] == (
                    "Denied: the policies cannot be read; the log of the server says why"
                )
                write(file, DENY_ALL)
                await until_told(client, "Denied: tool 'skill:recall' is blocked")
            file.unlink()
            await until_told(client, "Denied: the policies cannot be read")
            write(file, "policy = []")
            await until_told(client, '{"result"')


async def test_a_rate_goes_on_when_another_rule_changes(
    made: Callable[[], Any], home: Path
) -> None:
    """An unrelated change must not give a client a new bucket."""
    write(home / "policies.toml", RATE)
    server = made()
    async with connect(server) as client:
        before = list(server.policies)
        assert not (await client.call_tool("skill:recall", {"query": "x"})).is_error
        write(home / "policies.toml", '[[policy]]\nkind = "depth"\ncalls = 0\n' + RATE)
        with trio.fail_after(60):
            while len(server.policies) < 2:  # noqa: ASYNC110 - policies send no notices
                await trio.sleep(0.01)
        assert list(server.policies)[1] is before[0]
        assert not (await client.call_tool("skill:recall", {"query": "x"})).is_error
        denied = await client.call_tool("skill:recall", {"query": "x"})
        assert denied.text.startswith("Denied: rate limit exceeded: max 2/3600s")


class InTable(Policy):
    """Asks a database that is down."""

    def check(self, call: Any, ctx: Any) -> None:
        sqlite3.connect("file:/nowhere/rules.db?mode=ro", uri=True).execute("SELECT 1")


class Failing(Policy):
    def check(self, call: Any, ctx: Any) -> None:
        raise RuntimeError("postgres://ada:hunter2@db")


class Waiting(Policy):
    timeout = 0.01

    async def check(self, call: Any, ctx: Any) -> None:
        await trio.sleep_forever()


class Nested(Policy):
    """Fails for nested calls only."""

    def check(self, call: Any, ctx: Any) -> None:
        if call.chain:
            raise RuntimeError


@pytest.mark.parametrize(
    "fault", [InTable(), Failing(), Waiting()], ids=lambda each: type(each).__name__
)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_policy_that_fails_denies(
    made: Callable[[], Any], fault: Policy, version: str
) -> None:
    """Skills, workflows, workflows as tasks, and stores are denied."""
    server = made()
    server.policies.replace([fault])
    async with connect(server, version=version, capabilities=TASKS) as client:
        for name, arguments in (("skill:remember", {"text": "x"}), (NEWS, {"input": "# x"})):
            result = await client.call_tool(name, arguments)
            assert (result.is_error, result.text) == (True, "Denied: policy failed")
        _, message = await refusal(client.read_resource("workbench://notes/list"))
        assert message == "Denied: policy failed"
        server.policies.replace([])
        assert await read(client, "notes/list") == []
        assert await read(client, "runs/list") == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_policy_that_fails_denies_the_steps_of_a_workflow(
    made: Callable[[], Any], version: str
) -> None:
    """The steps are denied in a call and in a task."""
    server = made()
    server.policies.replace([Nested()])
    denied = "step find: Denied: policy failed"
    async with connect(server, version=version) as client:
        assert (await client.call_tool(NEWS, {"input": "# x"})).text == denied
    if version == "2026-07-28":
        async with connect(server, version=version, capabilities=TASKS) as client:
            with pytest.raises(TaskStarted) as started:
                await client.call_tool(NEWS, {"input": "# x"})
            task = started.value.task
            with trio.fail_after(60):
                while task.status == "working":
                    await trio.sleep(0.01)
                    found = await client.request("tasks/get", {"taskId": task.task_id})
                    task = Task.from_wire(found)
            assert task.result["content"][0]["text"] == denied


async def test_decisions_are_kept(made: Callable[[], Any], home: Path) -> None:
    """There is a line for each, allowed or denied, including the steps of a workflow."""
    settings = (home / "settings.toml").read_text()
    write(home / "settings.toml", settings.replace("# audit =", "audit ="))
    write(home / "skills" / "shell.py", skill("x"))
    async with connect(made()) as client:
        await client.call_tool("skill:shell")
        await client.call_tool(NEWS, {"input": "text"})
    lines = [json.loads(line) for line in (home / "audit.jsonl").read_text().splitlines()]
    assert [(each["name"], each["decision"], each["policy"]) for each in lines] == [
        ("skill:shell", "deny", "DenyTools"),
        (NEWS, "allow", None),
        ("skill:headlines", "allow", None),
    ]


# The program


async def test_the_example_runs_over_stdio() -> None:
    """It runs as its first lines say."""
    run = (sys.executable, "-m", "noizu_mcp", "run", "docs.examples.workbench")
    command = Stdio(*run, cwd=str(EXAMPLES.parents[1]))
    with trio.fail_after(60):
        async with connect(command) as client:
            result = await client.call_tool("skill:headlines", {"text": "# One"})
            assert result.structured == {"result": ["One"], "branch": "some"}


#: Headers without a valid key, and the status of the response.
WRONG_KEYS = {
    "": 401,
    "Bearer wrong-key-0123456789": 401,
    f"Bearer {KEY}x": 401,
    f"Token {KEY}": 401,
    f"Bearer {KEY} {KEY}": 400,
    f"Bearer {api_key_digest(KEY)}": 400,
    f"Bearer {'x' * 20_000}": 400,
}


def serve(home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "docs.examples.workbench"],
        cwd=EXAMPLES.parents[1],
        env={**os.environ, "WORKBENCH": str(home), "PORT": "0"},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_without_keys_nothing_is_served(home: Path) -> None:
    """One line says why."""
    process = serve(home)
    assert process.communicate(timeout=60)[1].startswith("settings.toml has no [keys]")
    assert process.returncode == 1


def test_malformed_settings_are_told_in_one_line(home: Path) -> None:
    """They are reported without a traceback."""
    with (home / "settings.toml").open("a") as file:
        file.write("[keys]\n")
    process = serve(home)
    said = process.communicate(timeout=60)[1]
    assert said.startswith("settings.toml cannot be used: ")
    assert said.count("\n") == 1
    assert process.returncode == 1


async def test_the_program_serves_clients_with_a_key(home: Path) -> None:
    """`/healthz` needs no key; `/metrics` counts the tools on each request."""
    with (home / "settings.toml").open("a") as file:
        file.write(f'ada = "{api_key_digest(KEY)}"\n')
    process = serve(home)
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split(" serves at ")[1].split()[0]
        root, bearer = url.removesuffix("/mcp"), {"Authorization": f"Bearer {KEY}"}
        with trio.fail_after(60):
            async with httpx2.AsyncClient() as web:
                assert (await web.get(f"{root}/healthz")).text == "ok\n"
                for sent, status in WRONG_KEYS.items():
                    headers = {"Authorization": sent} if sent else {}
                    assert (await web.post(url, json={}, headers=headers)).status_code == status
                    metrics = await web.get(f"{root}/metrics", headers=headers)
                    assert metrics.status_code == status
                in_url = await web.post(f"{url}?access_token={KEY}", json={})
                assert in_url.status_code == 401

                async def count() -> str:
                    text = (await web.get(f"{root}/metrics", headers=bearer)).text
                    (line,) = [
                        each
                        for each in text.splitlines()
                        if "workbench_tools " in each and not each.startswith("#")
                    ]
                    return line.split()[1]

                assert await count() == "6.0"
                write(home / "skills" / "greet.py", skill("Hello"))
                assert await count() == "7.0"
            async with connect(Http(url, headers=bearer)) as client:
                assert (await client.call_tool("skill:greet")).text == "Hello you"
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
