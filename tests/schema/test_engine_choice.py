"""The choice of the engine: by name, by the environment, by availability."""

import pytest

from noizu_mcp import DefinitionError, Prompt, ResourceTemplate, Server, Tool
from noizu_mcp.schema import SchemaUnsupported, compile_schema, read_shape

VARIABLE = "NOIZU_MCP_SCHEMA_ENGINE"
# The Python engine refuses it.
NATIVE_ONLY = {"type": "object", "properties": {"a": {"pattern": r"\p{L}"}}}
# Both serve it; it has no pattern or reference, so it is compiled with the first value.
SOUND = {"type": "object", "properties": {"a": {"contains": {"const": 1}}}}


def test_the_environment_names_the_engine(monkeypatch):
    """The variable is the default; an argument overrides it."""
    monkeypatch.setenv(VARIABLE, "python")
    with pytest.raises(SchemaUnsupported):
        compile_schema(NATIVE_ONLY)
    assert compile_schema(NATIVE_ONLY, "native").is_valid({"a": "é"})
    monkeypatch.setenv(VARIABLE, "native")
    assert compile_schema(NATIVE_ONLY).is_valid({"a": "é"})
    monkeypatch.setenv(VARIABLE, "")
    assert compile_schema(NATIVE_ONLY).is_valid({"a": "é"})


def test_a_wrong_name_in_the_environment(monkeypatch):
    """The error has the variable and both valid values."""
    monkeypatch.setenv(VARIABLE, "rust")
    text = f'{VARIABLE} must be "native" or "python", got \'rust\''
    with pytest.raises(ValueError, match=text):
        compile_schema(True)
    with pytest.raises(ValueError, match=text):
        read_shape(SOUND)


def test_python_serves_where_the_native_engine_cannot_be_loaded(without_native, caplog):
    """The Python engine is used; if the native one is installed, one log line says so."""
    for _ in range(2):
        shape, _ = read_shape(SOUND)
        assert shape.read({"a": [1]}) == ({"a": [1]}, [])
        assert len(shape.read({"a": [2]})[1]) == 1
        assert compile_schema({"pattern": "^a"}).is_valid("ab")
    with pytest.raises(SchemaUnsupported, match="pip install jsonschema-rs"):
        compile_schema(NATIVE_ONLY)

    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == (without_native == "broken")
    assert all("jsonschema-rs is installed and cannot be loaded" in line for line in lines)
    assert all("GLIBC_2.99" in line for line in lines)


def test_the_native_engine_is_named_and_cannot_be_loaded(without_native, monkeypatch, caplog):
    """The error says why, and what to do; nothing is logged."""
    text = r"cannot be loaded \(.*\); install it: pip install jsonschema-rs, or choose \"python\""
    with pytest.raises(SchemaUnsupported, match=text):
        compile_schema(True, "native")
    monkeypatch.setenv(VARIABLE, "native")
    with pytest.raises(SchemaUnsupported, match=text):
        read_shape(SOUND)
    with pytest.raises(DefinitionError, match=text):

        class Weather(Server, name="weather", version="1", schema_engine="native"):
            pass

    assert caplog.records == []


class Find(Tool):
    """Find a thing."""

    input = SOUND

    def call(self, args):
        return str(args)


class Greet(Prompt):
    """Greet someone."""

    def get(self, times: int):
        return "hello " * times


class Page(ResourceTemplate, uri_template="page://{number}"):
    """Show a page."""

    def read(self, uri, number: int):
        return str(number)


class Wide(Tool):
    """Take letters."""

    input = NATIVE_ONLY
    output = NATIVE_ONLY

    def call(self, args):
        return args


def test_a_server_names_its_engine(without_native):
    """The components of a server are validated by its own engine."""

    class Weather(Server, name="weather", version="1", schema_engine="python"):
        tools = (Find,)
        prompts = (Greet,)
        resources = (Page,)

    assert Weather.options.schema_engine == "python"
    specs = [*Weather().tools, *Weather().prompts, *Weather().resources]
    shapes = [getattr(spec, "input", None) or spec.texts.shape for spec in specs]
    assert [shape.compiled.engine for shape in shapes] == ["python"] * 3


def test_a_server_names_the_engine_of_the_process(python_engine):
    """Schemas that are already compiled for it are reused."""

    class Echo(Tool):
        """Repeat a text."""

        def call(self, text: str):
            return text

    class Echoes(Server, name="echoes", version="1", schema_engine="python"):
        tools = (Echo,)

    (one,), (other,) = Echoes().tools, Echoes().tools
    assert one.input is other.input


@pytest.mark.parametrize("wrong", ["rust", "", 1, ["python"]])
def test_a_server_names_a_wrong_engine(wrong):
    """The error of the class statement has both valid values."""
    with pytest.raises(DefinitionError, match='schema_engine: must be "native" or "python", got'):

        class Weather(Server, name="weather", version="1", schema_engine=wrong):
            pass


def test_a_server_whose_engine_does_not_serve_a_tool():
    """The error has the tool, for each of its schemas; at run time, too."""

    class Weather(Server, name="weather", version="1", schema_engine="python"):
        tools = (Wide,)

    class Empty(Server, name="empty", version="1", schema_engine="python"):
        tools = ()

    with pytest.raises(DefinitionError) as caught:
        Weather()
    found = [str(problem).partition(": ") for problem in caught.value.problems]
    assert len(found) == 2
    server = Empty()
    with pytest.raises(DefinitionError, match=r"\\p"):
        server.tools.add(Wide)
    assert list(server.tools) == []
