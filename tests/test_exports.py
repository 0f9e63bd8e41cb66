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

# Adding or removing a name needs a line in CHANGELOG.md.
PUBLIC = {
    *("Accept", "Annotations", "AuthError", "Cache", "Cancel", "Client", "ClientHandler"),
    *("Clients", "Completion", "ConnectionClosed", "Content", "ContentAnnotations", "Context"),
    *(
        "Decline",
        "DefinitionError",
        "Handle",
        "Http",
        "Icon",
        "InputRequest",
        "InputRequired",
        "Limits",
    ),
    *("LiveList", "McpError", "McpException", "Mount", "NoSessionError", "OpenAPI", "Problem"),
    *("Progress", "Prompt", "PromptMessage", "PromptProvider", "PromptResult", "ProtocolError"),
    *("Provider", "Remote", "RequestTimeout", "Resource", "ResourceContents", "ResourceNotFound"),
    *("ResourceProvider", "ResourceTemplate", "Root", "SamplingResult", "Schema", "SchemaError"),
    *("Server", "SkillError", "SkillFolder", "Stdio", "SyncClient", "SyncClients", "TaskStarted"),
    *("TerminalHandler", "Tool", "ToolError", "ToolProvider", "ToolResult", "Toolkit"),
    *("TransportError", "argument", "connect", "connect_all", "field", "fields", "mcp"),
    *("plain_text", "prompt", "resource", "resource_template", "serve_http", "serve_stdio"),
    *("text_content", "tool", "violations_result"),
}


#: Imports that a folder uses itself.
_TOOLS = {"typing", "importlib", "_util"}


def _imports(path: Path) -> list[ast.ImportFrom]:
    """List the `from … import …` of a file, including those for type checkers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [
        *tree.body,
        *(node for each in tree.body if isinstance(each, ast.If) for node in each.body),
    ]
    return [
        node for node in nodes if isinstance(node, ast.ImportFrom) and node.module not in _TOOLS
    ]


def _exports(path: Path) -> list[tuple[str, str | None]]:
    """List `from … import name as alias` of a file."""
    return [(alias.name, alias.asname) for node in _imports(path) for alias in node.names]


def _late(folder: str) -> bool:
    """Tell whether a folder has names that are loaded when used."""
    return "_LATE" in (PACKAGE / folder / "__init__.py").read_text(encoding="utf-8")


def test_the_names_are_these() -> None:
    """The list of public names is intended."""
    names = {
        name
        for name in dir(noizu_mcp)
        if not name.startswith("_")
        and (name in PUBLIC or not isinstance(getattr(noizu_mcp, name), ModuleType))
    }

    assert names == PUBLIC


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_exports_are_written_as_exports(folder: str) -> None:
    """`import A as A` marks a public name for type checkers; each is exported once."""
    found = _exports(PACKAGE / folder / "__init__.py")
    counts = Counter(name for name, _ in found)

    assert [name for name, alias in found if alias != name] == []
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_all_lists_the_exports(folder: str) -> None:
    """Every folder has `__all__`, with exactly what it exports."""
    module = importlib.import_module(f"noizu_mcp.{folder}" if folder else "noizu_mcp")
    names = module.__all__
    exported = {name for name, _ in _exports(PACKAGE / folder / "__init__.py")}

    assert {*names} == exported - {"__version__"}
    assert len(names) == len(set(names))


def test_names_come_from_one_public_folder() -> None:
    """A public name belongs to the folder where it is defined, or to a file at the root."""
    for node in _imports(PACKAGE / "__init__.py"):
        # `from . import aio`: a folder belongs to itself.
        if node.module is not None and not node.module.startswith("_"):
            home = importlib.import_module(f"noizu_mcp.{node.module}")
            for alias in node.names:
                assert getattr(home, alias.name) is getattr(noizu_mcp, alias.name)


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_late_names_are_those_that_type_checkers_see(folder: str) -> None:
    """A name that is loaded when used is imported for type checkers, from the same folder."""
    module = importlib.import_module(f"noizu_mcp.{folder}" if folder else "noizu_mcp")
    tree = ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8"))
    seen = {
        alias.name: f".{node.module or alias.name}"
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    homes = getattr(module, "_LATE", {})
    assert seen == {name: home for home, names in homes.items() for name in names.split()}
    assert seen.keys() <= {*dir(module)}
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'no'"):
        module.no  # noqa: B018 - looking is what is tested


@pytest.mark.parametrize("folder", [folder for folder in ["", *FOLDERS] if _late(folder)])
def test_looking_shows_public_names_only(folder: str) -> None:
    """`dir` shows neither the mechanism of late loading nor private files."""
    module = importlib.import_module(f"noizu_mcp.{folder}" if folder else "noizu_mcp")
    names = {name for name in dir(module) if not name.startswith(("__", "@"))}
    others = names - {*module.__all__}

    assert {*module.__all__} <= names
    assert not any(name.startswith("_") for name in others)
    assert all(isinstance(getattr(module, name), ModuleType) for name in others)


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_public_names_say_where_they_live(folder: str) -> None:
    """The module of a public name is never a private file."""
    name = f"noizu_mcp.{folder}" if folder else "noizu_mcp"
    module = importlib.import_module(name)
    exported = {name for name, _ in _exports(PACKAGE / folder / "__init__.py")}
    homes = {name: getattr(getattr(module, name), "__module__", "") for name in exported}
    # Values belong to the module of their class.
    private = {
        name: home
        for name, home in homes.items()
        if "._" in str(home) and _is_named(getattr(module, name))
    }

    assert private == {}


def _is_named(value: object) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def test_public_names_are_documented() -> None:
    """Every public class and function has its own docstring."""
    for name in PUBLIC:
        value = getattr(noizu_mcp, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name
