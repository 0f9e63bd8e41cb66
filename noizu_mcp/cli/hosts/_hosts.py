"""The hosts whose settings can be written: their files, and the form of an entry in each.

Every form here is documented by the host.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

import attrs

from ..._value import JSON, JSONObject

SettingsScope = Literal["user", "project"]


@attrs.frozen(kw_only=True)
class HostEntry:
    """A server as a host starts or reaches it.

    Attributes:
        command: The program and its arguments; empty for a server at a URL.
        env: Variables of its environment.
        url: The URL, or None.
        headers: Headers of requests to the URL.
    """

    command: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict)
    url: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)

    def process(self, **first: JSON) -> JSONObject:
        """Write a command in the form of most hosts; `first` holds members before it."""
        program, *arguments = self.command
        shown = {**first, "command": program, "args": arguments}
        return {**shown, "env": dict(self.env)} if self.env else shown

    def remote(self, key: str = "url", headers: str = "headers", **first: JSON) -> JSONObject:
        """Write a URL in the form of most hosts, under the names that the host has for it."""
        shown = {**first, key: self.url}
        return {**shown, headers: dict(self.headers)} if self.headers else shown


def _plain(entry: HostEntry) -> JSONObject:
    return entry.remote() if entry.url else entry.process()


def _typed(entry: HostEntry) -> JSONObject:
    return entry.remote(type="http") if entry.url else entry.process(type="stdio")


def _copilot(entry: HostEntry) -> JSONObject:
    # Without this list no tool of the server can be used.
    shown = entry.remote(type="http") if entry.url else entry.process(type="local")
    return {**shown, "tools": ["*"]}


def _opencode(entry: HostEntry) -> JSONObject:
    if entry.url:
        return entry.remote(type="remote")
    shown: JSONObject = {"type": "local", "command": list(entry.command)}
    return {**shown, "environment": dict(entry.env)} if entry.env else shown


def _config() -> Path:
    """Return the folder for settings of programs on this system."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    return _xdg()


def _xdg() -> Path:
    # A relative path in the variable has no meaning (XDG Base Directory Specification).
    given = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(given) if Path(given).is_absolute() else Path.home() / ".config"


def _home(variable: str, folder: str) -> Path:
    """Return the folder of a host in the home folder, unless a variable names another one."""
    given = os.environ.get(variable)
    return Path(given) if given else Path.home() / folder


def _zed() -> Path:
    folder = _config() / "Zed" if sys.platform == "win32" else _xdg() / "zed"
    return folder / "settings.json"


@attrs.frozen(kw_only=True)
class McpHost:
    """A host and the form of its settings.

    Attributes:
        title: Its name for messages.
        user: Finds the file of the user; None if it has none.
        project: The file in a project, relative to its folder; None if it has none.
        key: The name of the object that holds the servers.
        entry: Writes an entry.
        remote: False if it can only start commands.
        comments: True if the file may have comments.
        toml: True if the file is TOML, and not JSON.
        after: The step that makes the host notice a new server.
        removed: The step that makes it notice that a server is gone; by default the same.
    """

    title: str
    user: Callable[[], Path]
    project: str | None = None
    key: str = "mcpServers"
    entry: Callable[[HostEntry], JSONObject] = _plain
    remote: bool = True
    comments: bool = False
    toml: bool = False
    after: str
    removed: str = attrs.field(default=attrs.Factory(lambda host: host.after, takes_self=True))

    def place(self, scope: SettingsScope) -> Path | None:
        """Return the path of its file; None if it has none of this scope."""
        if scope == "user":
            return self.user()
        return None if self.project is None else Path.cwd() / self.project


#: The hosts by their names on the command line.
HOSTS: Final[dict[str, McpHost]] = {
    "claude-desktop": McpHost(
        title="Claude Desktop",
        user=lambda: _config() / "Claude" / "claude_desktop_config.json",
        remote=False,
        after="restart Claude Desktop",
    ),
    "claude-code": McpHost(
        title="Claude Code",
        user=lambda: Path.home() / ".claude.json",
        project=".mcp.json",
        entry=_typed,
        after="start a new session of Claude Code",
    ),
    "cursor": McpHost(
        title="Cursor",
        user=lambda: Path.home() / ".cursor" / "mcp.json",
        project=".cursor/mcp.json",
        after="Cursor asks you to enable the server",
        removed="restart Cursor if it still shows the server",
    ),
    "vscode": McpHost(
        title="VS Code",
        user=lambda: _config() / "Code" / "User" / "mcp.json",
        project=".vscode/mcp.json",
        key="servers",
        entry=_typed,
        comments=True,
        after='start the server with the command "MCP: List Servers"',
        removed='stop the server with the command "MCP: List Servers" if it still runs',
    ),
    "windsurf": McpHost(
        title="Windsurf",
        user=lambda: Path.home() / ".codeium" / "windsurf" / "mcp_config.json",
        entry=lambda entry: entry.remote("serverUrl") if entry.url else entry.process(),
        after="refresh the list of MCP servers in Cascade",
    ),
    "zed": McpHost(
        title="Zed",
        user=_zed,
        project=".zed/settings.json",
        key="context_servers",
        comments=True,
        after="Zed reads the file at once",
    ),
    "gemini": McpHost(
        title="Gemini CLI",
        user=lambda: Path.home() / ".gemini" / "settings.json",
        project=".gemini/settings.json",
        entry=lambda entry: entry.remote("httpUrl") if entry.url else entry.process(),
        comments=True,
        after="start a new session of Gemini CLI",
    ),
    "codex": McpHost(
        title="Codex",
        user=lambda: _home("CODEX_HOME", ".codex") / "config.toml",
        project=".codex/config.toml",
        key="mcp_servers",
        entry=lambda entry: entry.remote(headers="http_headers") if entry.url else entry.process(),
        toml=True,
        after="start a new session of Codex",
    ),
    "copilot": McpHost(
        title="Copilot CLI",
        user=lambda: _home("COPILOT_HOME", ".copilot") / "mcp-config.json",
        entry=_copilot,
        after="start a new session of Copilot CLI",
    ),
    "opencode": McpHost(
        title="opencode",
        user=lambda: _xdg() / "opencode" / "opencode.json",
        project="opencode.json",
        key="mcp",
        entry=_opencode,
        comments=True,
        after="start opencode again",
    ),
    "kiro": McpHost(
        title="Kiro",
        user=lambda: Path.home() / ".kiro" / "settings" / "mcp.json",
        project=".kiro/settings/mcp.json",
        after="Kiro reads the file at once",
    ),
    "lmstudio": McpHost(
        title="LM Studio",
        user=lambda: Path.home() / ".lmstudio" / "mcp.json",
        after="LM Studio reads the file at once",
    ),
}
