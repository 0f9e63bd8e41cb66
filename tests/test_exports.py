"""The public names: each exported once, none by accident."""

import ast
import importlib
import inspect
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import noizu_mcp

PACKAGE = Path(noizu_mcp.__file__).parent
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))

# A name that comes or goes is a line in CHANGELOG.md.
PUBLIC = {
    *("Accept", "Annotations", "AuthError", "Cache", "Cancel", "Client", "ClientHandler"),
    *("Completion", "ConnectionClosed", "Content", "ContentAnnotations", "Context"),
    *("Decline", "DefinitionError", "Icon", "Implementation", "InputRequest"),
    *("InputRequired", "Limits", "McpError", "NoSessionError", "Page", "Problem", "Progress"),
    *("Prompt", "PromptMessage", "PromptResult", "Reference", "ProtocolError"),
    *("ReadResult", "RequestTimeout", "Resource", "ResourceContents", "ResourceDefinition"),
    *("ResourceTemplate", "Root", "SamplingResult", "Schema"),
    *("SchemaError", "SchemaUnsupported", "Server", "Stdio", "Tool", "ToolDefinition"),
    *("ToolError", "ToolResult", "Toolkit", "TransportError", "argument", "connect", "field"),
    *("fields", "mcp", "plain_text", "prompt", "resource", "resource_template"),
    *("serve_stdio", "text_content", "tool"),
}


def _exports(path: Path) -> list[tuple[str, str | None]]:
    """List `from … import name as alias` of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (alias.name, alias.asname)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "_util"
        for alias in node.names
    ]


def test_the_names_are_these() -> None:
    """Every public name of the package is meant to be one."""
    names = {
        name
        for name, value in vars(noizu_mcp).items()
        if not name.startswith("_") and (not isinstance(value, ModuleType) or name in PUBLIC)
    }

    assert names == PUBLIC


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_exports_are_written_as_exports(folder: str) -> None:
    """`import A as A` tells type checkers that a name is public; each stands there once."""
    found = _exports(PACKAGE / folder / "__init__.py")
    counts = Counter(name for name, _ in found)

    assert [name for name, alias in found if alias != name] == []
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_all_lists_the_exports(folder: str) -> None:
    """A folder that has `__all__` names in it exactly what it exports."""
    module = importlib.import_module(f"noizu_mcp.{folder}")
    names = getattr(module, "__all__", None)
    if names is not None:
        exported = {name for name, _ in _exports(PACKAGE / folder / "__init__.py")}
        assert set(names) == exported
        assert len(names) == len(set(names))


def test_names_come_from_one_public_folder() -> None:
    """A public name is a name of the folder that it comes from, or of a file at the root."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and not str(node.module).startswith("_"):
            home = importlib.import_module(f"noizu_mcp.{node.module}")
            for alias in node.names:
                assert getattr(home, alias.name) is getattr(noizu_mcp, alias.name)


@pytest.mark.parametrize("folder", FOLDERS)
def test_published_names_say_where_they_live(folder: str) -> None:
    """Where a folder publishes its names, none says that it lives in a private file."""
    module = importlib.import_module(f"noizu_mcp.{folder}")
    if hasattr(module, "publish"):
        homes = {name: getattr(getattr(module, name), "__module__", "") for name in module.__all__}
        private = f"noizu_mcp.{folder}._"
        assert {n: home for n, home in homes.items() if home.startswith(private)} == {}


def test_public_names_are_documented() -> None:
    """Every public class and function has a docstring of its own."""
    for name in PUBLIC:
        value = getattr(noizu_mcp, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name
