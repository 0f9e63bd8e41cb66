"""The public servers, the steps of a conversation with each, and their results.

A step is the name of a method of the client and its arguments, so that the clients for trio,
asyncio and blocking code can all run it.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from noizu_mcp import Progress, Stdio

Step = tuple[str, Mapping[str, Any]]
HERE = Path(__file__).parent
#: The Python modules of this environment, for servers in it.
PATH = os.pathsep.join(sys.path)
PNG = bytes.fromhex("89504e470d0a1a0a")


def step(method: str, **arguments: Any) -> Step:
    return method, arguments


def call(tool: str, timeout: float | None = None, **arguments: Any) -> Step:
    return step("call_tool", name=tool, arguments=arguments, timeout=timeout)


def module(name: str, *args: str) -> Stdio:
    """Make the command of a server that is a module of this environment."""
    return Stdio(sys.executable, "-m", name, *args, env={"PYTHONPATH": PATH})


def names(listed: Iterable[Any]) -> set[str]:
    return {each.name for each in listed}


@attrs.frozen
class Public:
    """A server, and a conversation with it.

    Attributes:
        package: The package that it comes with.
        command: Makes its command from a folder of the test, the URL of a page, and the folder of
            its Node package.
        steps: Makes the steps, from the folder and the URL.
        check: Checks the results of the steps.
        versions: The revisions that it speaks.
    """

    package: str
    command: Callable[[Path, Path | None], Stdio]
    steps: Callable[[Path, str], Sequence[Step]]
    check: Callable[[Sequence[Any], Path], None]
    versions: tuple[str, ...]


# mcp-server-time


def time_steps(folder: Path, page: str) -> Sequence[Step]:
    there = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return (
        step("list_tools"),
        call("get_current_time", timezone="UTC"),
        call("convert_time", **there),
        call("convert_time", **{**there, "time": "noon"}),
        step("ping"),
    )


def check_time(seen: Sequence[Any], folder: Path) -> None:
    tools, now, converted, refused, _ = seen
    assert names(tools) == {"get_current_time", "convert_time"}
    assert '"timezone": "UTC"' in now.text
    assert "21:00" in converted.text
    assert refused.is_error


# mcp-server-git


def git_steps(folder: Path, page: str) -> Sequence[Step]:
    where = {"repo_path": str(folder)}
    return (
        step("list_tools"),
        call("git_status", **where),
        call("git_add", files=["note.txt"], **where),
        call("git_commit", message="A note", **where),
        call("git_log", **where),
        call("git_show", revision="no-such-revision", **where),
    )


def check_git(seen: Sequence[Any], folder: Path) -> None:
    tools, status, added, committed, log, refused = seen
    assert {"git_status", "git_diff", "git_log"} <= names(tools)
    assert "note.txt" in status.text
    assert not added.is_error
    assert not committed.is_error
    assert "A note" in log.text
    assert refused.is_error


# mcp-server-fetch


def fetch_steps(folder: Path, page: str) -> Sequence[Step]:
    return (
        step("list_tools"),
        step("list_prompts"),
        call("fetch", url=page),
        call("fetch", url=page, raw=True, max_length=20),
        call("fetch", url=f"{page}/nothing"),
        step("get_prompt", name="fetch", arguments={"url": page}),
    )


def check_fetch(seen: Sequence[Any], folder: Path) -> None:
    tools, prompts, page, raw, refused, prompt = seen
    assert names(tools) == names(prompts) == {"fetch"}
    assert "Plums are ripe" in page.text
    assert "<html>" in raw.text
    assert refused.is_error
    assert "Plums are ripe" in prompt.messages[0].content.text


# @modelcontextprotocol/server-filesystem


def filesystem_steps(folder: Path, page: str) -> Sequence[Step]:
    def at(name: str) -> dict[str, str]:
        return {"path": str(folder / name)}

    return (
        step("list_tools"),
        call("list_allowed_directories"),
        call("write_file", content="one\ntwo", **at("new.txt")),
        call("read_text_file", tail=1, **at("new.txt")),
        call("read_media_file", **at("dot.png")),
        call("list_directory", path=str(folder)),
        call("read_text_file", path="/etc/passwd"),
    )


def check_filesystem(seen: Sequence[Any], folder: Path) -> None:
    tools, allowed, written, tail, picture, listed, refused = seen
    assert {"read_text_file", "write_file", "search_files"} <= names(tools)
    assert str(folder) in allowed.text
    assert not written.is_error
    assert "two" in tail.text
    (image,) = picture.content
    assert (image.type, image.mime_type, image.data) == ("image", "image/png", PNG)
    assert "[FILE] new.txt" in listed.text
    assert refused.is_error


# @modelcontextprotocol/server-memory


def memory_steps(folder: Path, page: str) -> Sequence[Step]:
    plum = {"name": "plum", "entityType": "fruit", "observations": ["is ripe"]}
    tree = {"name": "tree", "entityType": "plant", "observations": []}
    grows = {"from": "plum", "to": "tree", "relationType": "grows on"}
    return (
        step("list_tools"),
        call("create_entities", entities=[plum, tree]),
        call("create_relations", relations=[grows]),
        call("search_nodes", query="ripe"),
        call("read_graph"),
        call("add_observations", observations=[{"entityName": "nobody", "contents": ["x"]}]),
    )


def check_memory(seen: Sequence[Any], folder: Path) -> None:
    tools, created, related, found, graph, refused = seen
    assert {"create_entities", "read_graph"} <= names(tools)
    assert not created.is_error
    assert not related.is_error
    assert [each["name"] for each in found.structured["entities"]] == ["plum"]
    assert graph.structured["relations"][0]["relationType"] == "grows on"
    assert refused.is_error


# @modelcontextprotocol/server-everything


def note(path: Path, progress: Progress) -> None:
    with path.open("a", encoding="utf-8") as notes:
        notes.write(f"{progress.progress:g} of {progress.total:g}\n")


def everything_steps(folder: Path, page: str) -> Sequence[Step]:
    return (
        step("list_tools"),
        step("list_resources"),
        step("list_resource_templates"),
        step("list_prompts"),
        call("echo", message="é😀"),
        call("get-tiny-image"),
        call("get-annotated-message", messageType="success", includeImage=True),
        call("get-resource-links", count=2),
        call("get-resource-reference", resourceType="Blob", resourceId=3),
        call("get-structured-content", location="Chicago"),
        step(
            "call_tool",
            name="trigger-long-running-operation",
            arguments={"duration": 0.1, "steps": 2},
            progress=partial(note, folder / "progress.txt"),
        ),
        call("trigger-long-running-operation", timeout=0.2, duration=60, steps=2),
        step("read_resource", uri="demo://resource/dynamic/blob/7"),
        step("get_prompt", name="args-prompt", arguments={"city": "Oslo"}),
        step(
            "complete",
            ref={"type": "ref/prompt", "name": "completable-prompt"},
            argument="department",
            value="S",
        ),
        step("ping"),
    )


def check_everything(seen: Sequence[Any], folder: Path) -> None:
    tools, resources, templates, prompts, *results = seen
    echoed, image, annotated, links, reference, structured, steady, slow, *others, _ = results
    read, prompt, completed = others
    assert "echo" in names(tools)
    assert resources
    assert len(templates) == 2
    assert "args-prompt" in names(prompts)
    assert "é😀" in echoed.text
    (picture,) = (each for each in image.content if each.type == "image")
    assert picture.data.startswith(PNG)
    assert annotated.content[0].annotations.priority > 0
    assert [each.type for each in links.content].count("resource_link") == 2
    (inner,) = (each.resource for each in reference.content if each.type == "resource")
    assert inner.blob
    assert structured.structured["temperature"]
    assert not steady.is_error
    assert (folder / "progress.txt").read_text(encoding="utf-8") == "1 of 2\n2 of 2\n"
    assert type(slow).__name__ == "RequestTimeout"
    assert read.contents[0].blob
    assert prompt.messages
    assert list(completed.values) == ["Sales", "Support"]


# FastMCP


def fastmcp_steps(folder: Path, page: str) -> Sequence[Step]:
    progress = partial(note, folder / "progress.txt")
    return (
        step("list_tools"),
        step("list_resources"),
        step("list_resource_templates"),
        step("list_prompts"),
        call("greet", name="é😀"),
        call("media"),
        call("weigh", city="Oslo"),
        call("refuse"),
        step("call_tool", name="steps", arguments={"count": 2}, progress=progress),
        call("sleep", timeout=0.2, seconds=60),
        call("greet"),
        step("read_resource", uri="note://plum"),
        step("read_resource", uri="note://number/7"),
        step("get_prompt", name="review", arguments={"code": "x = 1"}),
        step("ping"),
    )


def check_fastmcp(seen: Sequence[Any], folder: Path) -> None:
    tools, resources, templates, prompts, *results, read, numbered, prompt, _ = seen
    greeted, media, weighed, refused, steady, slow, wrong = results
    assert {"greet", "media"} <= names(tools)
    assert names(resources) == {"plum"}
    assert names(templates) == {"numbered"}
    assert names(prompts) == {"review"}
    assert greeted.text == "Hello, é😀"
    image, audio, file = media.content
    assert (image.type, image.mime_type, image.data) == ("image", "image/png", PNG)
    assert (audio.type, audio.mime_type, audio.data) == ("audio", "audio/wav", b"RIFF")
    assert (file.type, file.resource.blob or file.resource.text.encode()) == ("resource", b"a,b")
    assert weighed.structured == {"Oslo": 21.5}
    assert refused.is_error
    assert "the shop is closed" in refused.text
    assert steady.text == "finished"
    assert (folder / "progress.txt").read_text(encoding="utf-8") == "1 of 2\n2 of 2\n"
    assert type(slow).__name__ == "RequestTimeout"
    assert wrong.is_error
    assert read.contents[0].text == "Plums are ripe"
    assert numbered.contents[0].text == "Note 7"
    assert prompt.messages[0].content.text == "Review: x = 1"


def node(package: Path | None, *args: str, **env: str) -> Stdio:
    return Stdio("node", f"{package}/dist/index.js", *args, env=env)


BOTH = ("2025-11-25", "2026-07-28")
SCOPE = "@modelcontextprotocol/"
SERVERS = {
    "time": Public(
        "mcp_server_time",
        lambda folder, _: module("mcp_server_time", "--local-timezone=UTC"),
        time_steps,
        check_time,
        BOTH,
    ),
    "git": Public(
        "mcp_server_git",
        lambda folder, _: module("mcp_server_git", "--repository", str(folder)),
        git_steps,
        check_git,
        BOTH,
    ),
    "fetch": Public(
        "mcp_server_fetch",
        lambda folder, _: module("mcp_server_fetch", "--allow-private-ips"),
        fetch_steps,
        check_fetch,
        BOTH,
    ),
    "filesystem": Public(
        f"{SCOPE}server-filesystem",
        lambda folder, package: node(package, str(folder)),
        filesystem_steps,
        check_filesystem,
        BOTH[:1],
    ),
    "memory": Public(
        f"{SCOPE}server-memory",
        lambda folder, package: node(package, MEMORY_FILE_PATH=str(folder / "graph.jsonl")),
        memory_steps,
        check_memory,
        BOTH[:1],
    ),
    "fastmcp": Public(
        "fastmcp",
        lambda folder, _: Stdio(
            sys.executable, str(HERE / "foreign_fastmcp.py"), env={"PYTHONPATH": PATH}
        ),
        fastmcp_steps,
        check_fastmcp,
        BOTH,
    ),
    "everything": Public(
        f"{SCOPE}server-everything",
        lambda folder, package: node(package, "stdio"),
        everything_steps,
        check_everything,
        BOTH[:1],
    ),
}
