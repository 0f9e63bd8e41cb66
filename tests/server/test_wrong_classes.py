"""Invalid server classes: refused when the class statement runs, each with its exact message."""

import functools
import importlib.util
import sys
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from noizu_mcp import Cache, DefinitionError, Limits, Server, Tool

PRELUDE = """from contextlib import asynccontextmanager, contextmanager
from noizu_mcp import Cache, Server, Tool

class T(Tool):
    def call(self): return "t"
class Base(Tool, abstract=True): pass
class Needs(Tool):
    def __init__(self, index): pass
    def call(self): pass
"""
FIRST = PRELUDE.count("\n") + 1

LIFESPAN = "`@asynccontextmanager async def lifespan(self)`, and yield once"

CASES = [
    (
        "class S(Server): pass",
        'S.name: is missing; write class S(Server, name="…", …)',
        'S.version: is missing; write class S(Server, version="…", …)',
    ),
    (
        'class S(Server, name="", version=1): pass',
        "S.name: must be a text that is not empty, got ''",
        "S.version: must be a text that is not empty, got 1",
    ),
    (
        'class S(Server, name="s", version="1", nmae="x"): pass',
        "S.nmae: unknown option; did you mean 'name'?",
    ),
    (
        'class S(Server, name="s", version="1", tool_timeout=0): pass',
        "S.tool_timeout: must be seconds above 0, or None for no limit, got 0",
    ),
    (
        'class S(Server, name="s", version="1", page_size=None): pass',
        "S.page_size: must be a whole number above 0, got None",
    ),
    (
        'class S(Server, name="s", version="1", limits=5): pass',
        "S.limits: must be Limits(…), got 5",
    ),
    (
        'class S(Server, name="s", version="1", cache=5): pass',
        "S.cache: must be Cache(…) or a mapping to it, got 5",
    ),
    (
        'class S(Server, name="s", version="1", cache={"tool": Cache()}): pass',
        (
            "S.cache: no kind 'tool'; there are: discover, tools, prompts, resources, templates,"
            " read, skills"
        ),
    ),
    (
        'class S(Server, name="s", version="1", cache={"tools": 5}): pass',
        "S.cache: must be Cache(…) for 'tools', got 5",
    ),
    (
        'class S(Server, name="s", version="1", icons=["x"]): pass',
        "S.icons: must be a list of Icon(src), got ['x']",
    ),
    (
        'class S(Server, name="s", version="1"):\n    tool = [T]\n    tols = [T]',
        "S.tool: is not an option; did you mean 'tools'? (begin a name of your own with _)",
        "S.tols: is not an option; did you mean 'tools'? (begin a name of your own with _)",
    ),
    (
        'class S(Server, name="s", version="1"):\n    instrutions = "x"',
        (
            "S.instrutions: is not an option; did you mean 'instructions'? (begin a name of your"
            " own with _)"
        ),
    ),
    (
        'class S(Server, name="s", version="1"):\n    async def list_tool(self, cursor, ctx): pass',
        (
            "S.list_tool: is not an option; did you mean 'list_tools'? (begin a name of your own"
            " with _)"
        ),
    ),
    (
        'class S(Server, name="s", version="1"):\n    telemtry = [print]',
        (
            "S.telemtry: is not an option; did you mean 'telemetry'? (begin a name of your own"
            " with _)"
        ),
    ),
    (
        'class S(Server, name="s", version="1"):\n    resource_templates = [T]',
        "S.resource_templates: is not an option; put templates into resources",
    ),
    (
        'class S(Server, name="s", version="1"):\n    providers = [3]\n    policies = [3]',
        "S.providers[0]: 3 is not a provider; write class …(ToolProvider)",
        "S.policies[0]: must be a Policy, got 3",
    ),
    (
        'class S(Server, name="s", version="1", policies=[]): pass',
        "S.policies: unknown option; write policies = […] in the body of the class",
    ),
    (
        'class S(Server, name="s", version="1"): tools = [T, T]',
        (
            "S.tools: the name 't' is registered 2 times; give all but one another with"
            " tool(…, name=…)"
        ),
    ),
    (
        'class S(Server, name="s", version="1"): tools = 5',
        "S.tools: must be a list of tools, got 5; write tools = […]",
    ),
    (
        'class S(Server, name="s", version="1"): tools = [Base, Needs, 5]',
        "S.tools[0]: Base is abstract; register a subclass of it",
        "S.tools[1]: Needs() needs index; register an instance: Needs(index)",
        "S.tools[2]: 5 is not a tool; register a Tool, a Toolkit or a function",
    ),
    (
        'class S(Server, name="s", version="1"):\n    def list_tools(self, cursor, ctx): pass',
        "S.list_tools: must be `async def list_tools(self, cursor, ctx)`",
    ),
    (
        'class S(Server, name="s", version="1"):\n    async def list_tools(self, cursor): pass',
        "S.list_tools: must be `async def list_tools(self, cursor, ctx)`",
    ),
    (
        (
            'class S(Server, name="s", version="1"):\n'
            "    async def call_tool(self, name, args, ctx, *, more): pass"
        ),
        "S.call_tool: must be `async def call_tool(self, name, args, ctx)`",
    ),
    (
        'class S(Server, name="s", version="1"): init = 5',
        "S.init: must be `async def init(self, ctx)`",
    ),
    (
        'class S(Server, name="s", version="1"):\n    async def lifespan(self): yield',
        (
            "S.lifespan: lacks its decorator; write `@asynccontextmanager async def"
            " lifespan(self)`, and yield once"
        ),
    ),
    (
        'class S(Server, name="s", version="1"):\n    async def lifespan(self): return {}',
        f"S.lifespan: is a coroutine, not an async context manager; write {LIFESPAN}",
    ),
    (
        'class S(Server, name="s", version="1"):\n    def lifespan(self): yield',
        f"S.lifespan: is sync; write {LIFESPAN}",
    ),
    (
        (
            'class S(Server, name="s", version="1"):\n'
            "    @contextmanager\n    def lifespan(self): yield"
        ),
        f"S.lifespan: is sync; write {LIFESPAN}",
    ),
    (
        (
            'class S(Server, name="s", version="1"):\n'
            "    @asynccontextmanager\n    async def lifespan(self): return {}"
        ),
        (
            "S.lifespan: has no `async def` with a yield under @asynccontextmanager; write"
            f" {LIFESPAN}"
        ),
    ),
    (
        (
            'class S(Server, name="s", version="1"):\n'
            "    @asynccontextmanager\n    def lifespan(self): yield"
        ),
        (
            "S.lifespan: has no `async def` with a yield under @asynccontextmanager; write"
            f" {LIFESPAN}"
        ),
    ),
    (
        'class S(Server, name="s", version="1"):\n    def lifespan(self): return {}',
        (
            f"S.lifespan: must be {LIFESPAN}; a method that returns a context manager says so:"
            " -> AbstractAsyncContextManager[…]"
        ),
    ),
    (
        (
            'class S(Server, name="s", version="1"):\n'
            '    def lifespan(self) -> "dict[str, int]": return {}'
        ),
        (
            f"S.lifespan: must be {LIFESPAN}; a method that returns a context manager says so:"
            " -> AbstractAsyncContextManager[…]"
        ),
    ),
    (
        'class S(Server, name="s", version="1"): lifespan = {}',
        f"S.lifespan: must be {LIFESPAN}",
    ),
    (
        (
            'class S(Server, name="s", version="1"):\n'
            "    @asynccontextmanager\n    async def lifspan(self): yield"
        ),
        ("S.lifspan: is not an option; did you mean 'lifespan'? (begin a name of your own with _)"),
    ),
    (
        (
            'class S(Server, name="s", version="1"):\n'
            "    @asynccontextmanager\n    async def lifespan(self, app): yield"
        ),
        "S.lifespan: must be `@asynccontextmanager async def lifespan(self)`, and yield once",
    ),
]


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """Run source text that defines an invalid class, and return its error."""
    monkeypatch.chdir(tmp_path)

    def run(source):
        path = tmp_path / "case.py"
        path.write_text(PRELUDE + source + "\n", encoding="utf-8")
        spec = importlib.util.spec_from_file_location("case", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["case"] = module
        with pytest.raises(DefinitionError) as caught:
            spec.loader.exec_module(module)
        return str(caught.value)

    yield run
    sys.modules.pop("case", None)


@pytest.mark.parametrize(("source", "problems"), [(case[0], case[1:]) for case in CASES])
def test_each_problem_is_named_with_its_place(refusal, source, problems):
    """Every problem of the class is one line: file, line, problem and correction."""
    lines = refusal(source).splitlines()
    assert len(lines) == len(problems)
    for line, problem in zip(lines, problems, strict=True):
        place, _, text = line.partition(": ")
        assert text == problem
        file, _, number = place.partition(":")
        assert file == "case.py"
        assert FIRST <= int(number) <= FIRST + 2


def test_an_option_is_given_once(refusal):
    """An option is a keyword or an attribute, not both."""
    text = refusal('class S(Server, name="s", version="1"):\n    name = "t"')
    assert "given as a class keyword and as an attribute; keep one of them" in text


def test_bases_are_no_servers():
    """`Server` and abstract servers cannot be instantiated."""

    class Base(Server, abstract=True, version="2"):
        pass

    for cls in (Server, Base):
        with pytest.raises(DefinitionError, match="is a base class; subclass it"):
            cls()

    class Concrete(Base, name="concrete"):
        def __init__(self, value):
            self.value = value

    server = Concrete(5)
    assert (server.value, server.options.version) == (5, "2")
    assert repr(server) == "<Concrete concrete 2>"


def test_any_context_manager_is_a_lifespan():
    """A plain method is accepted if its annotation may be a context manager."""

    @asynccontextmanager
    async def made():
        yield 1

    class Plain(Server, name="s", version="1"):
        def lifespan(self) -> AbstractAsyncContextManager[int]:
            return made()

    class Late(Server, name="s", version="1"):
        # A name that is imported for type checkers only is missing at run time.
        def lifespan(self) -> "NotImported":  # noqa: F821
            return made()

    class Anything(Server, name="s", version="1"):
        def lifespan(self) -> Any:
            return made()

    def wrapped(function):
        @functools.wraps(function)
        def wrapper(self):
            return made()

        return wrapper

    class Decorated(Server, name="s", version="1"):
        @wrapped
        async def lifespan(self):
            yield

    for cls in (Plain, Late, Anything, Decorated):
        assert isinstance(cls().lifespan(), AbstractAsyncContextManager)


@pytest.mark.parametrize("ttl", [-1, "5", float("nan"), float("inf"), True])
def test_a_cache_has_a_real_ttl(ttl):
    """A TTL is in seconds, 0 or more, and fits on the wire."""
    with pytest.raises(ValueError, match="ttl must be seconds, 0 or more"):
        Cache(ttl=ttl)


def test_a_cache_has_one_of_two_scopes():
    """The scope is `private` or `public`."""
    with pytest.raises(ValueError, match="scope must be 'private' or 'public', got 'all'"):
        Cache(scope="all")


def test_one_cache_for_everything():
    """`cache=Cache(…)` applies to every kind of result."""

    class S(Server, name="s", version="1", cache=Cache(ttl=2), limits=Limits(batch=3)):
        pass

    assert S.options.cache_of("tools").to_wire() == {"ttlMs": 2000, "cacheScope": "private"}
    assert S.options.limits.batch == 3


def test_a_tool_that_is_taken_is_not_added():
    """`add` refuses all of its tools, and says which names are taken."""

    class One(Tool):
        def call(self):
            pass

    class Two(Tool):
        def call(self):
            pass

    class S(Server, name="s", version="1"):
        tools = [One]

    server = S()
    with pytest.raises(DefinitionError, match="tool 'one': is registered already; remove it"):
        server.tools.add(Two, One)
    assert [spec.name for spec in server.tools] == ["one"]
    with pytest.raises(DefinitionError, match="5 is not a tool"):
        server.tools.replace(5)
    server.tools.replace(Two, One)
    assert [spec.name for spec in server.tools] == ["one", "two"]
    with pytest.raises(KeyError):
        server.tools.remove("three")
    with pytest.raises(ValueError, match="no list 'toys'; there are: tools, prompts, resources"):
        server.notify_changed("toys")
