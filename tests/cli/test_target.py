"""Targets of commands: modules, files, and the server classes in them."""

import pytest

from noizu_mcp.cli._errors import CommandError
from noizu_mcp.cli._target import load_server


def _load(target):
    return load_server(target).options.name


def test_a_file(folder):
    """A file is found by its path, from anywhere, with the servers that it has."""
    assert _load("demo.py:Demo") == "demo"
    assert _load(f"{folder}/demo.py") == "demo"
    (folder / "sub").mkdir()
    (folder / "sub" / "helper.py").write_text("NAME = 'sub'")
    text = "from noizu_mcp import Server\nfrom helper import NAME\n"
    (folder / "sub" / "json.py").write_text(
        f"{text}class A(Server, name=NAME, version='1'): pass\nready = A()\n"
    )
    assert _load("sub/json.py:ready") == "sub"


def test_a_module(folder):
    """A module is imported from the working directory; servers that it imports will do."""
    (folder / "pack_of_tests").mkdir()
    (folder / "pack_of_tests" / "__init__.py").write_text("from .inner import One\n")
    (folder / "pack_of_tests" / "inner.py").write_text(
        "from noizu_mcp import Server\n"
        "class Base(Server, abstract=True): pass\n"
        "class One(Base, name='one', version='1'): pass\n"
    )
    assert _load("pack_of_tests") == "one"
    assert _load("pack_of_tests.inner") == "one"
    assert _load("pack_of_tests.inner:One") == "one"


def test_a_module_goes_before_what_it_imports(folder):
    """Its own only server is meant, whatever others it imports."""
    text = "from demo import Demo\nclass Own(Demo, name='own', version='1'):\n    tools = []\n"
    (folder / "own.py").write_text(text)
    assert _load("own.py") == "own"


@pytest.mark.parametrize(
    ("text", "target", "message", "status"),
    [
        ("", "nosuch.py", "^no such file: nosuch.py$", 2),
        ("", "nosuch_module:A", "^no module nosuch_module; a file is given as path.py$", 2),
        ("", "nosuch.inner:A", "^no module nosuch.inner; ", 2),
        ("", "x.py", "^x.py: it has no server$", 2),
        ("", "x.py:A", "^x.py: no A; there are: none$", 2),
        ("A = 5", "x.py:A", "^x.py: A is no server; there are: none$", 2),
        ("{server}", "x.py:Onee", r"^x.py: no Onee; did you mean One\?$", 2),
        ("{server}", "x.py:Z", "^x.py: no Z; there are: One$", 2),
        ("{server}{second}", "x.py", "^x.py: write x.py:NAME with one of One, Two$", 2),
        ("1/0", "x.py", r"^cannot import x.py: ZeroDivisionError: .* \(x.py:1\)$", 1),
        ("import nosuch", "x.py", r"^cannot import x.py: ModuleNotFoundError: .*\(x.py:1\)$", 1),
        ("exit(3)", "x.py", "^cannot import x.py: SystemExit: 3", 1),
        ("(", "x.py", "^cannot import x.py: SyntaxError: ", 1),
        ("{server}{init}", "x.py:One", r"^cannot make One: TypeError: no \(x.py:4\)$", 1),
        ("import nosuch", "needs_more", "^cannot import needs_more: ModuleNotFoundError", 1),
    ],
)
def test_what_cannot_be_served(folder, text, target, message, status):
    """The message says what is wrong, where, and what there is instead."""
    parts = {
        "{server}": "from noizu_mcp import Server\nclass One(Server, name='one', version='1'):\n",
        "{second}": "    pass\nclass Two(Server, name='two', version='1'): pass\n",
        "{init}": "    def __init__(self):\n        raise TypeError('no')\n",
    }
    if text == "{server}":
        text += "    pass\n"
    for name, part in parts.items():
        text = text.replace(name, part)
    (folder / "x.py").write_text(text)
    (folder / "needs_more.py").write_text(text)
    with pytest.raises(CommandError, match=message) as caught:
        load_server(target)
    assert caught.value.status == status
