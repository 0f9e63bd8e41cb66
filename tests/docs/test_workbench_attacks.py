"""The workbench with broken and partial files, invalid policies, and secrets in wrong places."""

import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from noizu_mcp import connect

from .workbench_kit import NEWS, VERSIONS, Notes, read, refusal, skill, until, write

pytestmark = pytest.mark.slow

OWN = ["skill:remember", "skill:recall"]
SAMPLES = [*OWN, "skill:digest", "skill:headlines", "skill:seal", NEWS]
RECALL = ("skill:recall", {"query": "x"})
#: Waits until something is written to a pipe.
READ = "from pathlib import Path\n\ndef read(path):\n    return Path(path).read_text()\n\n"
SECRET = "pä\"ss\\wörd'99x"


async def names(client: Any) -> list[str]:
    return [each.name for each in await client.list_tools()]


def listed(tools: Any) -> list[str]:
    return [each.name for each in tools]


# Files


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys\nsys.exit(3)", "its code raised SystemExit: 3"),
        ("raise KeyboardInterrupt", "its code raised KeyboardInterrupt"),
        ("raise type('Odd', (BaseException,), {})('no')", "its code raised Odd: no"),
        ("def run(", "'(' was never closed"),
        ("\0", "null bytes"),
        ("run = 3", ""),
        ("def run() -> str: ...\nrun.__doc__ = 3", ""),
        ("TIMEOUT = 'x'\ndef run() -> str: ...", "timeout"),
        ("CALLS = 'skill:*'\ndef run() -> str: ...", "CALLS must be a list"),
        ("#" * 300_000, "it has more than 262144 bytes"),
    ],
)
async def test_a_broken_file_concerns_no_other(
    made: Callable[[], Any], home: Path, caplog: pytest.LogCaptureFixture, code: str, reason: str
) -> None:
    """Whatever the code of a file does, it is logged, and other files are loaded."""
    (home / "skills" / "aa.py").write_text(code)
    async with connect(made()) as client:
        assert await names(client) == SAMPLES
    (line,) = [each for each in caplog.messages if each.startswith("aa.py is not used: ")]
    assert reason in line


async def test_what_is_no_file_is_left_out(made: Callable[[], Any], home: Path) -> None:
    """A pipe without a writer, an endless device, a folder, and broken links are ignored."""
    folder = home / "skills"
    os.mkfifo(folder / "pipe.py")
    (folder / "folder.py").mkdir()
    (folder / "zero.py").symlink_to("/dev/zero")
    (folder / "circle.py").symlink_to("circle.py")
    (folder / "nothing.py").symlink_to("nowhere")
    (folder / "bytes.py").write_bytes(b"\x00\xff\xfe")
    with trio.fail_after(60):
        async with connect(made()) as client:
            assert await names(client) == SAMPLES


@pytest.fixture
def hasty(made: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make lists wait only briefly for a file that is being loaded."""
    from workbench import folder

    monkeypatch.setattr(folder, "PATIENCE", 0.05)
    monkeypatch.setattr(folder, "WAIT", 20)


def endless(path: Path, text: str) -> str:
    """Make the code of a skill that never ends: it waits until something is written to a pipe."""
    if not path.exists():
        os.mkfifo(path)
    return f"{READ}read({str(path)!r})\n{skill(text, text)}"


@pytest.mark.usefixtures("hasty")
async def test_a_file_that_takes_forever(
    made: Callable[[], Any], home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Other files can change meanwhile, and it is used once it is corrected."""
    pipe, aa = tmp_path / "pipe", home / "skills" / "aa.py"
    write(aa, endless(pipe, "Late"))
    with trio.fail_after(60):
        async with connect(made()) as client, client.tools as tools:
            await until(tools, lambda: listed(tools) == SAMPLES)
            assert "aa.py is not used: it is still being loaded" in caplog.text
            write(home / "skills" / "new.py", skill("New"))
            await until(tools, lambda: "skill:new" in listed(tools))
            write(home / "skills" / "digest.py", skill("Digest"))
            await until(tools, lambda: "name" in tools["skill:digest"].input_schema["properties"])
            write(aa, skill("Mended"))
            await until(tools, lambda: "skill:aa" in listed(tools))
            write(aa, endless(pipe, "Late"))
            while "aa.py stays as it was: it is still being loaded" not in caplog.text:
                await client.list_tools()
            assert (await client.call_tool("skill:aa")).text == "Mended you"
            with await trio.to_thread.run_sync(pipe.open, "w"):
                pass
            await until(tools, lambda: "Late" in tools["skill:aa"].description)
            assert (await client.call_tool("skill:aa")).text == "Late you"


@pytest.mark.usefixtures("hasty")
async def test_many_files_that_take_forever(
    made: Callable[[], Any], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their threads are limited; loaded files stay, and others are loaded when one ends."""
    from workbench import folder

    monkeypatch.setattr(folder, "MAX_LOADING", 2)
    pipes = [tmp_path / each for each in "xy"]
    with trio.fail_after(60):
        async with connect(made()) as client, client.tools as tools:
            for pipe in pipes:
                write(home / "skills" / f"{pipe.name}.py", endless(pipe, "Late"))
            write(home / "skills" / "z.py", skill("New"))
            while [each.name for each in threading.enumerate()].count("loads x.py") < 1:
                await client.list_tools()
            assert set(SAMPLES) <= set(await names(client))
            for pipe in pipes:
                with await trio.to_thread.run_sync(pipe.open, "w"):
                    pass
            await until(tools, lambda: {"skill:x", "skill:y", "skill:z"} <= set(listed(tools)))


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_file_goes_while_its_skill_runs(
    made: Callable[[], Any], home: Path, tmp_path: Path, version: str
) -> None:
    """The call ends with its result; the next one is of an unknown skill."""
    file, pipe = home / "skills" / "long.py", tmp_path / "pipe"
    os.mkfifo(pipe)
    write(file, f"{READ}def run() -> str:\n    return read({str(pipe)!r}) + ' end'\n")
    results = []

    async def call() -> None:
        results.append((await client.call_tool("skill:long")).text)

    with trio.fail_after(60):
        async with connect(made(), version=version) as client, client.tools as tools:
            assert "skill:long" in tools
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                # Opened only when the skill reads.
                with await trio.to_thread.run_sync(pipe.open, "w") as end:
                    file.unlink()
                    await until(tools, lambda: "skill:long" not in tools)
                    unknown = await refusal(client.call_tool("skill:long"))
                    assert unknown == (-32602, "Unknown skill: long")
                    end.write("the")
    assert results == ["the end"]


async def test_a_file_gets_another_name(made: Callable[[], Any], home: Path) -> None:
    """Its skill is renamed, too."""
    file = home / "skills" / "old.py"
    write(file, skill("Hi"))
    with trio.fail_after(60):
        async with connect(made()) as client, client.tools as tools:
            assert "skill:old" in tools
            file.rename(file.with_name("a new: name.py"))
            await until(tools, lambda: "skill:a new: name" in tools)
            assert "skill:old" not in tools
            assert (await client.call_tool("skill:a new: name")).text == "Hi you"


async def test_a_thousand_files_at_once(made: Callable[[], Any], home: Path) -> None:
    """They are written, touched and removed, with few notices and correct lists."""
    notes, folder = Notes(), home / "skills"
    files = [folder / f"t{number}.py" for number in range(900)]

    def count(tools: Any) -> int:
        return sum(each.startswith("skill:t") for each in listed(tools))

    with trio.fail_after(120):
        async with connect(made(), handler=notes) as client, client.tools as tools:
            for number, file in enumerate(files):
                write(file, skill(str(number)))
            await until(tools, lambda: count(tools) == len(files))
            assert (await client.call_tool("skill:t899")).text == "899 you"
            for file in files:
                file.touch()
            assert (await client.call_tool("skill:t1")).text == "1 you"
            for file in files:
                file.unlink()
            await until(tools, lambda: not count(tools))
            assert listed(tools) == SAMPLES
    assert len(notes.came) <= 50


async def test_the_folder_itself_goes_and_comes_back(
    made: Callable[[], Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program's own skills stay, and files in the new folder become skills."""
    from workbench import folder

    monkeypatch.setattr(folder, "WAIT", 20)
    with trio.fail_after(60):
        async with connect(made()) as client, client.tools as tools:
            (home / "skills").rename(home / "away")
            await until(tools, lambda: listed(tools) == [*OWN, NEWS])
            (home / "skills").mkdir()
            write(home / "skills" / "back.py", skill("Back"))
            await until(tools, lambda: "skill:back" in tools)


async def test_a_change_before_the_watch_is_reported(
    made: Callable[[], Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported even if the folder was read meanwhile."""
    from workbench import folder

    monkeypatch.setattr(folder, "WAIT", 20)
    files, told = folder.Folder(home / "skills", "*.py", lambda _, content: content), trio.Event()
    files.load()
    write(home / "skills" / "early.py", skill("Hi"))
    assert len(files.load()) == 4
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(files.watch, lambda: trio.from_thread.run_sync(told.set))
            await told.wait()
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("argument", ["2024-01-01", "nan", "[inf]"])
async def test_workflows_have_values_of_json(
    made: Callable[[], Any], home: Path, caplog: pytest.LogCaptureFixture, argument: str
) -> None:
    """A workflow with another value is not used, and the store of workflows can be read."""
    step = f'[[steps]]\nname = "one"\nskill = "recall"\narguments = {{ query = {argument} }}\n'
    write(home / "workflows" / "odd.toml", f'name = "odd"\n{step}')
    async with connect(made()) as client:
        assert await names(client) == SAMPLES
        stored = [each["name"] for each in await read(client, "workflows/list")]
        assert stored == ["Tech News Digest", "Shell"]
    assert "odd.toml is not used: " in caplog.text


async def test_settings_have_values_of_json(made: Callable[[], Any], home: Path) -> None:
    """A date becomes a string."""
    settings = (home / "settings.toml").read_text()
    write(home / "settings.toml", settings.replace("[settings]", "[settings]\nday = 2026-01-02"))
    async with connect(made()) as client:
        assert (await read(client, "config/day"))["value"] == "2026-01-02"
        assert "2026-01-02" in str(await read(client, "config/list"))


# Policies


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# the rules come later",
        "policy = {}",
        "policy = 3",
        "[[polic",
        'policy = ["allow"]',
        '[[policy]]\nkind = "allow"\ntools = "skill:*"',
        '[[policy]]\nkind = "allow"\ntools = []',
        '[[policy]]\nkind = "deny"\ntools = "*shell*"',
        '[[policy]]\nkind = "deny"\ntools = [3]',
        '[[policy]]\nkind = "deny"\ntool = ["*shell*"]',
        '[[policy]]\nkind = ["deny"]',
        '[[policy]]\nkind = "depth"\ncalls = "2"',
        '[[policy]]\nkind = "depth"\ncalls = -1',
        '[[policy]]\nkind = "depth"\ncalls = true',
        '[[policy]]\nkind = "rate"\nn = 0\nper = 60',
        '[[policy]]\nkind = "rate"\nn = 1\nper = nan',
        '[[policy]]\nkind = "hours"\nstart = "25:00"\nend = "26:00"',
        "policy = []\n" + "#" * 300_000,
    ],
)
async def test_a_slip_in_the_policies_denies(
    made: Callable[[], Any], home: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """A mistake that could allow more calls than intended is refused."""
    write(home / "policies.toml", text)
    async with connect(made()) as client:
        result = await client.call_tool(*RECALL)
        assert result.text.startswith("Denied: the policies cannot be read")
    assert "policies.toml is not used: " in caplog.text
    assert "every call is denied: policies.toml cannot be used" in caplog.text


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_denied_caller_does_not_learn_which_names_there_are(
    made: Callable[[], Any], home: Path, version: str
) -> None:
    """Policies are also applied to unknown names."""
    write(home / "policies.toml", '[[policy]]\nkind = "deny"\ntools = ["*"]\n')
    async with connect(made(), version=version) as client:
        for name in ("skill:recall", "skill:nothing", "workflow:nothing", "nothing"):
            text = (await client.call_tool(name)).text
            assert text == f"Denied: tool '{name}' is blocked by the pattern '*'"


@pytest.mark.parametrize("change", ["", "remove"])
async def test_good_policies_do_not_outlive_their_file(
    made: Callable[[], Any], home: Path, change: str
) -> None:
    """A file that is emptied or removed while the server runs denies every call."""
    file = home / "policies.toml"
    with trio.fail_after(60):
        async with connect(made()) as client:
            assert not (await client.call_tool(*RECALL)).is_error
            if change:
                file.unlink()
            else:
                file.write_text("")
            while not (await client.call_tool(*RECALL)).is_error:
                pass


# Secrets


@pytest.fixture
def odd_secret(home: Path) -> str:
    """Make a secret that JSON and exceptions write differently."""
    settings = (home / "settings.toml").read_text()
    old = '"change-this-key-before-use"'
    write(home / "settings.toml", settings.replace(old, json.dumps(SECRET, ensure_ascii=False)))
    return SECRET


FORMS = {
    "itself": "key",
    "json": "json.dumps({'a': key})",
    "json in unicode": "json.dumps([key], ensure_ascii=False)",
    "repr": "repr([key])",
    "object": "{'a': [key], key: 1}",
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", FORMS)
async def test_secrets_are_found_in_every_form(
    made: Callable[[], Any],
    home: Path,
    caplog: pytest.LogCaptureFixture,
    odd_secret: str,
    form: str,
    version: str,
) -> None:
    """They are found in results, in errors, and in the log with its tracebacks."""
    code = (
        "import json, logging\n"
        "async def run(do: str, work) -> object:\n"
        "    key = work.setting('seal.key').reveal()\n"
        f"    value = {FORMS[form]}\n"
        "    logging.getLogger('skill').warning('%s', value)\n"
        "    if do == 'crash':\n"
        "        raise KeyError(value)\n"
        "    return value\n"
    )
    write(home / "skills" / "tell.py", code)
    async with connect(made(), version=version) as client:
        told = await client.call_tool("skill:tell", {"do": "return"})
        crashed = await client.call_tool("skill:tell", {"do": "crash"})
    assert "[REDACTED]" in str(told)
    assert crashed.text == "Tool execution failed"
    shown = f"{told.to_wire()} {crashed.to_wire()} {caplog.text}"
    forms = (odd_secret, repr(odd_secret)[1:-1])
    forms += (json.dumps(odd_secret)[1:-1], json.dumps(odd_secret, ensure_ascii=False)[1:-1])
    assert [each for each in forms if each in shown] == []


async def test_definitions_show_no_secret(
    made: Callable[[], Any], home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that would publish a secret is not used; a description is redacted."""
    secret = "change-this-key-before-use"
    write(home / "skills" / "aa.py", f'def run(key: str = "{secret}") -> str: ...\n')
    write(home / "skills" / f"{secret}.py", skill("Hi"))
    step = '[[steps]]\nname = "one"\nskill = "recall"\n'
    write(home / "workflows" / "a.toml", f'name = "Use {secret}"\n{step}')
    write(home / "workflows" / "b.toml", f'name = "b"\n{step}routes = {{ "{secret}" = "end" }}\n')
    about = f"Posts to https://ada:pw@example.com with {secret}"
    write(home / "workflows" / "c.toml", f'name = "c"\ndescription = "{about}"\n{step}')
    async with connect(made()) as client:
        tools = {each.name: each for each in await client.list_tools()}
    assert set(tools) == {*SAMPLES, "workflow:c"}
    shown = tools["workflow:c"].description
    assert shown == "Posts to https://[REDACTED]@example.com with [REDACTED]"
    assert "aa.py is not used: it has the text of a secret" in caplog.text
    assert secret not in caplog.text


async def test_a_wrong_log_message_ends_no_skill(
    made: Callable[[], Any], home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A skill with a malformed log format goes on, as it would elsewhere."""
    caplog.set_level(logging.INFO)
    code = (
        "import logging\n"
        "async def run(work) -> str:\n"
        "    logging.getLogger('skill').info('%d', work.setting('seal.key').reveal())\n"
        "    return 'done'\n"
    )
    write(home / "skills" / "note.py", code)
    async with connect(made()) as client:
        assert (await client.call_tool("skill:note")).text == "done"
    assert "%d ('[REDACTED]',)" in caplog.text
