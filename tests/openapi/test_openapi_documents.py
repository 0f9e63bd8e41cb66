"""Documents of OpenAPI: their forms, references, schemas and operations."""

import json
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import Server, TransportError, connect
from noizu_mcp.openapi import OpenAPI
from noizu_mcp.openapi import _document as reader
from noizu_mcp.openapi import _operations as operations
from noizu_mcp.openapi import _schemas as schemas

from .api_kit import document, operations_of, reading

ROOT = Path(__file__).resolve().parents[2]
PET = {
    "type": "object",
    "required": ["id", "name", "secret"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "secret": {"type": "string", "writeOnly": True},
        "name": {"type": "string"},
        "parent": {"$ref": "#/components/schemas/Pet"},
    },
}


async def tools_of(source, **options):
    """Return the definitions of a document's tools, by name."""
    source.setdefault("servers", [{"url": "https://api.test/v1"}])
    providers = [OpenAPI(source, **options)]
    front = type(Server)("Front", (Server,), {"providers": providers}, name="f", version="1")
    async with connect(front) as client:
        return {tool.name: tool for tool in await client.list_tools()}


def properties_of(schema, version="3.1.0"):
    """Return the published schema of a declared argument."""
    one = {"name": "a", "in": "query", "schema": schema}
    node = document({"/x": {"get": {"operationId": "x", "parameters": [one]}}}, version)
    node["components"] = {"schemas": {"Pet": PET, "a/b": {"type": "string"}}}
    node["components"]["schemas"]["name"] = {"type": "boolean"}
    (found,) = operations_of(node, "https://api.test")
    return found.input_schema


async def test_an_operation_is_a_tool():
    """Name, title, description, arguments and hints come from the operation."""
    listed = {
        "operationId": "listPets",
        "summary": "List pets",
        "description": "All of them.",
        "parameters": [
            {
                "name": "limit",
                "in": "query",
                "description": "At most",
                "schema": {"type": "integer", "maximum": 100},
            }
        ],
    }
    tools = await tools_of(document({"/pets": {"get": listed, "delete": {}}}))

    tool = tools["listPets"]
    assert (tool.title, tool.description) == ("List pets", "List pets\n\nAll of them.")
    assert tool.input_schema == {
        "type": "object",
        "properties": {"limit": {"type": "integer", "maximum": 100, "description": "At most"}},
        "additionalProperties": False,
    }
    assert tool.annotations.read_only_hint
    assert tools["delete_pets"].annotations.destructive_hint


async def test_names_are_unique_and_bounded():
    """Equal names get a number, long ones a digest, and all characters are allowed ones."""
    ids = ["a b", "a/b", "x" * 100, "x" * 99 + "y", "ü", "q" * 64, "q" * 64]
    paths = {f"/{n}": {"get": {"operationId": each}} for n, each in enumerate(ids)}

    names = list(await tools_of(document(paths), prefix="p"))

    assert names[:2] == ["p_a_b", "p_a_b_2"]
    assert len(set(names)) == len(ids)
    assert all(len(name) <= 2 + operations.MAX_NAME for name in names)
    assert names[4] == "p_operation"


async def test_parameters_of_one_name_get_their_place():
    """Parameters of one name, and the body, are separate arguments."""
    places = ("path", "query", "header")
    one = [{"name": "body", "in": place, "schema": {}} for place in places]
    node = {
        "operationId": "x",
        "parameters": one,
        "requestBody": {"content": {"application/json": {}}, "description": "All"},
    }
    tools = await tools_of(document({"/{body}": {"post": node}}))

    schema = tools["x"].input_schema
    assert list(schema["properties"]) == ["body", "body_query", "body_header", "body_2"]
    assert schema["required"] == ["body"]
    assert schema["properties"]["body_2"] == {"description": "All"}


async def test_parameters_of_a_path_hold_for_its_operations():
    """Parameters of an operation override parameters of its path."""
    both = {"name": "a", "in": "query"}
    item = {
        "parameters": [
            {**both, "schema": {"type": "string"}},
            {"$ref": "#/components/parameters/B"},
        ],
        "get": {"operationId": "x", "parameters": [{**both, "schema": {"type": "integer"}}]},
    }
    source = document({"/x": {"$ref": "#/paths/~1y"}, "/y": item})
    source["components"] = {"parameters": {"B": {"name": "b", "in": "query", "required": True}}}

    tools = await tools_of(source)

    assert list(tools) == ["x", "x_2"]
    schema = tools["x"].input_schema
    assert schema["properties"] == {"a": {"type": "integer"}, "b": {}}
    assert schema["required"] == ["b"]


def test_recursive_schemas():
    """A schema that refers to itself is one definition, without read-only properties."""
    found = properties_of({"$ref": "#/components/schemas/Pet", "deprecated": True})

    pet = {
        "type": "object",
        "required": ["name", "secret"],
        "properties": {
            "secret": {"type": "string", "writeOnly": True},
            "name": {"type": "string"},
            "parent": {"$ref": "#/$defs/Pet"},
        },
    }
    assert found["properties"]["a"] == {"$ref": "#/$defs/Pet", "deprecated": True}
    assert found["$defs"] == {"Pet": pet}


def test_references_of_one_name_stay_apart():
    """Two schemas whose references end alike are two definitions; one schema is one."""
    pointers = ("schemas/a~1b", "schemas/a~1b", "schemas/Pet/properties/name", "schemas/name")
    refs = [{"$ref": f"#/components/{pointer}"} for pointer in pointers]

    found = properties_of({"anyOf": refs, "$defs": {"x": refs[0]}})

    assert found["$defs"] == {
        "a_1b": {"type": "string"},
        "name": {"type": "string"},
        "name_2": {"type": "boolean"},
    }
    shown = [each["$ref"] for each in found["properties"]["a"]["anyOf"]]
    assert shown == [f"#/$defs/{name}" for name in ("a_1b", "a_1b", "name", "name_2")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"nullable": True, "enum": None}, {"enum": None}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"exclusiveMinimum": True}, {}),
        ({"example": 3}, {"examples": [3]}),
        ({"xml": {}, "externalDocs": {}, "x-internal": 1, "discriminator": {}}, {}),
        (
            {"$ref": "#/components/schemas/a~1b", "nullable": True},
            {"$ref": "#/$defs/a_1b"},
        ),
        (
            {"type": "array", "items": {"nullable": True, "type": "integer"}},
            {"type": "array", "items": {"type": ["integer", "null"]}},
        ),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        (
            {"allOf": [{"nullable": True, "type": "string"}]},
            {"allOf": [{"type": ["string", "null"]}]},
        ),
        ({"properties": {"a": {"readOnly": True}}, "required": ["a"]}, {"properties": {}}),
    ],
)
def test_the_dialect_of_3_0(given, expected):
    """Keywords of OpenAPI 3.0 are translated to JSON Schema."""
    assert properties_of(given, "3.0.3")["properties"]["a"] == expected


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"allOf": [{"$ref": "#/components/schemas/a~1b"}], "nullable": True},
            {"anyOf": [{"allOf": [{"$ref": "#/$defs/a_1b"}]}, {"type": "null"}]},
        ),
        ({"nullable": True, "title": "x"}, {"title": "x"}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"items": {"min_items": 1, "$recursiveAnchor": True, "required": True}}, {"items": {}}),
        ({"type": "string", "format": "binary"}, {"type": "string", "contentEncoding": "base64"}),
    ],
)
def test_keywords_that_documents_get_wrong(version, given, expected):
    """Keywords of another version are translated, and unknown ones removed."""
    assert properties_of(given, version)["properties"]["a"] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"type": "integer", "default": None, "pattern": "^a$"},
            {"type": "integer", "pattern": "^a$"},
        ),
        (
            {"type": "array", "items": {"type": "string", "pattern": "(", "maxLength": 3}},
            {"type": "array", "items": {"type": "string", "maxLength": 3}},
        ),
        (
            {"properties": {"default": {"pattern": "("}}, "anyOf": [True, {"pattern": "("}]},
            {"properties": {"default": {}}, "anyOf": [True, {}]},
        ),
    ],
)
async def test_defaults_and_patterns_that_are_wrong(given, expected, caplog):
    """If a default or pattern of an operation is unusable, all are removed; the tool remains."""
    ok = {
        "content": {"application/json": {"schema": {"type": "object", "properties": {"a": given}}}}
    }
    one = [{"name": "a", "in": "query", "schema": given}]
    source = reading(parameters=one, responses={"200": ok})

    tools = await tools_of(source, output_schemas=True)

    assert tools["read"].input_schema["properties"]["a"] == expected
    assert tools["read"].output_schema["properties"]["a"] == expected
    assert caplog.messages == []


def test_3_1_is_json_schema():
    """Keywords of 3.1 are unchanged."""
    given = {"type": ["string", "null"], "exclusiveMinimum": 3, "const": {"nullable": True}}

    assert properties_of(given)["properties"]["a"] == given


async def test_results_with_a_schema():
    """`output_schemas` publishes the schemas of objects only."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}
    plain = {"application/json": {"schema": {"type": "object"}}}
    listed = {"application/json": {"schema": {"type": "array"}}}
    made = {
        "pet": {"200": {"content": content}},
        "plain": {"default": {"content": plain}},
        "many": {"200": {"content": listed}},
        "text": {"200": {"content": {"text/plain": {}}}},
        "untyped": {"200": {"content": {"application/json": {}}}},
        "yes": {"200": {"content": {"application/json": {"schema": True}}}},
        "none": {"204": {"description": "nothing"}},
        "empty": {"200": {}},
        "odd": ["200"],
    }
    paths = {f"/{n}": {"get": {"operationId": n, "responses": each}} for n, each in made.items()}
    source = document(paths, components={"schemas": {"Pet": PET}})

    tools = await tools_of(source, output_schemas=True)

    assert set(tools) == set(made)
    schema = tools["pet"].output_schema
    assert set(schema["$defs"]["Pet"]["properties"]) == {"id", "name", "parent"}
    assert schema["type"] == "object"
    assert tools["plain"].output_schema == {"type": "object"}
    assert [name for name in tools if tools[name].output_schema] == ["pet", "plain"]
    assert all(tool.output_schema is None for tool in (await tools_of(source)).values())


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ({"parameters": [{"$ref": "other.json#/a"}]}, "$ref to another document"),
        ({"parameters": [{"$ref": "#/nowhere"}]}, "$ref leads nowhere: #/nowhere"),
        ({"parameters": [{"$ref": "#/paths/~1bad/get/parameters/9"}]}, "leads nowhere"),
        ({"parameters": [{"$ref": "#/paths/~1bad/get/parameters/0"}]}, "leads in circles"),
        ({"parameters": ["?"]}, "expected an object, got '?'"),
        ({"parameters": [{"in": "query"}]}, "a parameter needs a name and a place"),
        ({"parameters": [{"name": "a", "in": "body"}]}, "a parameter needs a name and a place"),
        ({"parameters": [{"name": "a", "in": "query", "style": "matrix"}]}, "has the style"),
        ({"parameters": [{"name": "a", "in": "query", "schema": 3}]}, "expected a schema, got"),
        (
            {"requestBody": {"required": True, "content": {"multipart/mixed": {}}}},
            "its body has no media type that is sent here: ['multipart/mixed']",
        ),
        ({"requestBody": {"required": True}}, "no media type"),
        (
            {"parameters": [{"name": "a", "in": "query", "schema": {"type": "sting"}}]},
            "sting",
        ),
        ({"servers": [{"url": "/v1"}]}, "give base_url="),
        ({"servers": [{}]}, "a server has no url"),
        ({"servers": [{"url": "ftp://api.test"}]}, "give base_url="),
        ({"servers": [{"url": "https://api.test:99999"}]}, "not a URL"),
        ({"servers": [{"url": "https://u:p@api.test"}]}, "has no user, query or fragment"),
        ({"servers": [{"url": "https://api.test?a=b"}]}, "has no user, query or fragment"),
    ],
)
async def test_bad_operations_are_left_out(node, reason, caplog):
    """An operation that cannot be used is logged, and others are listed."""
    source = reading("/good")
    source["paths"]["/bad"] = {"get": node}

    assert list(await tools_of(source)) == ["read"]
    (line,) = caplog.messages
    assert line.startswith("left out GET /bad: ")
    assert reason in line


@pytest.mark.parametrize("path", ["/a b", "/a\\b", "/{id}", "/a?b={c}", "/a?b c"])
async def test_bad_paths_are_left_out(path, caplog):
    """A path with a space, or with an undeclared variable, is left out."""
    source = reading("/good")
    source["paths"][path] = {"get": {}}

    assert list(await tools_of(source)) == ["read"]
    assert f"left out GET {path}: " in caplog.text


def test_paths_with_a_query():
    """A query in a path precedes that of the parameters, and a fragment is not sent."""
    limit = {"name": "limit", "in": "query", "schema": {}}
    paths = {
        "/a?beta=true": {"get": {"operationId": "a", "parameters": [limit]}},
        "/a#add": {"get": {"operationId": "b"}},
        "/a?x=1#y": {"get": {}},
    }

    first, second, third = operations_of(document(paths), "https://api.test")

    assert first.request({"limit": 3}).url == "https://api.test/a?beta=true&limit=3"
    assert first.request({}).url == "https://api.test/a?beta=true"
    assert second.request({}).url == "https://api.test/a"
    assert (third.name, third.request({}).url) == ("get_a_x_1_y", "https://api.test/a?x=1")


async def test_bad_path_items_are_left_out(caplog):
    """A path item with an unresolvable reference is left out."""
    source = reading("/good")
    source["paths"]["/bad"] = {"$ref": "#/nowhere"}

    assert list(await tools_of(source)) == ["read"]
    assert caplog.messages == ["left out /bad: $ref leads nowhere: #/nowhere"]


async def test_optional_bodies_that_cannot_be_sent_are_left_out():
    """The operation is a tool without a body."""
    source = reading(requestBody={"content": {"multipart/mixed": {}}})

    assert (await tools_of(source))["read"].input_schema["properties"] == {}


async def test_headers_of_the_connection_are_no_parameters():
    """`Authorization`, `Host`, similar headers, and headers with invalid names are ignored."""
    names = ("Authorization", "Host", "content-type", "a b", "X-Fine")
    one = [{"name": name, "in": "header", "schema": {}} for name in names]

    schema = (await tools_of(reading(parameters=one)))["read"].input_schema

    assert list(schema["properties"]) == ["X-Fine"]


def test_servers_have_variables():
    """The defaults of variables are used."""
    variables = {"tier": {"default": "eu"}, "odd": "x"}
    node = document({}, servers=[{"url": "https://{tier}.api.test/{odd}/", "variables": variables}])

    assert reader.ApiDocument(node).server_of() == "https://eu.api.test/None"


def test_relative_servers_belong_to_the_document():
    """Relative servers, and the default `/`, are resolved by the URL of the document."""
    url = "https://api.test/specs/pets.json"

    assert reader.ApiDocument(document({}), url).server_of() == "https://api.test"
    node = document({}, servers=[{"url": "../v2"}])
    assert reader.ApiDocument(node, url).server_of() == "https://api.test/v2"


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ([], "the document must be an object"),
        ({"swagger": "2.0"}, "is Swagger 2.0, which is not read; convert it to OpenAPI 3"),
        ({"openapi": "4.0.0"}, "must be OpenAPI 3.0, 3.1 or 3.2, not '4.0.0'"),
        ({"openapi": 3.1}, "must be OpenAPI 3.0, 3.1 or 3.2, not 3.1"),
        ({"openapi": "3.1.0", "paths": []}, "paths must be an object"),
    ],
)
def test_other_documents_are_refused(root, reason, tmp_path):
    """A file that is not an OpenAPI 3 document is refused at once."""
    file = tmp_path / "api.json"
    file.write_text(json.dumps(root))

    with pytest.raises(ValueError, match=reason.replace("the document", "api.json")):
        OpenAPI(file)


YAML = """
openapi: 3.0.3
info: {title: Pets, version: 2024-01-01}
servers: [{url: https://api.test}]
paths:
  /pets:
    get:
      operationId: listPets
      responses:
        200: {description: ok, content: {application/json: {schema: {type: object}}}}
"""


def test_yaml(tmp_path):
    """YAML is parsed with dates and numeric keys as strings."""
    root = reader.parse_document(YAML.encode(), "api.yaml")

    assert root["info"]["version"] == "2024-01-01"
    (found,) = operations_of(root)
    assert found.output_schema == {"type": "object"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{oops", "api is no JSON: "),
        (b"a: [", "api is neither JSON nor YAML: "),
        (b"a: &x [1]\nb: *x", r"aliases \(\*name\) are not read"),
        (b"!!python/object:os.system {}", "neither JSON nor YAML"),
        (b"[" * 100_000, "nested too deeply"),
        (b"- " * 100_000 + b"a", "more than 500 levels"),
    ],
)
def test_broken_documents(data, reason):
    """A document that is neither JSON nor plain YAML is refused with a reason."""
    with pytest.raises(ValueError, match=reason):
        reader.parse_document(data, "api")


def test_yaml_needs_its_library(monkeypatch):
    """Without PyYAML the error says how to get it."""
    monkeypatch.setitem(sys.modules, "yaml", None)

    with pytest.raises(ValueError, match="pip install pyyaml"):
        reader.parse_document(YAML.encode(), "api.yaml")


def test_the_http_library_is_an_extra(monkeypatch):
    """Without httpx2 the error says how to get it."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.openapi._http", None)

    with pytest.raises(TransportError, match=r"pip install 'noizu-mcp\[http\]'"):
        OpenAPI(document({}))


def test_documents_are_bounded(monkeypatch):
    """Size, number of operations, definitions and depth are limited."""
    monkeypatch.setattr(reader, "MAX_DOCUMENT", 10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        reader.parse_document(b"{}" * 6, "api")
    monkeypatch.setattr(operations, "MAX_OPERATIONS", 1)
    node = document({"/a": {"get": {}, "put": {}}}, servers=[{"url": "https://api.test"}])
    with pytest.raises(ValueError, match="more than 1 operations"):
        OpenAPI(node)


def test_schemas_are_bounded(monkeypatch):
    """A schema that is too deep, or has too many references, is refused."""
    converter = schemas.SchemaConverter(
        reader.ApiDocument(document({}, components={"schemas": {"A": {}, "B": {}}})), is_input=True
    )
    deep = {}
    for _ in range(schemas.MAX_DEPTH + 1):
        deep = {"items": deep}
    with pytest.raises(ValueError, match="nested too deeply"):
        converter.convert(deep)
    monkeypatch.setattr(schemas, "MAX_DEFINITIONS", 1)
    with pytest.raises(ValueError, match="more than 1 others"):
        converter.convert({"anyOf": [{"$ref": f"#/components/schemas/{n}"} for n in "AB"]})


def tagged():
    paths = {
        "/pets": {"get": {"operationId": "listPets", "tags": ["pets"]}, "post": {"tags": ["pets"]}},
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "schema": {}}],
            "delete": {"operationId": "deletePet", "tags": ["pets", "admin"]},
        },
        "/store": {"get": {"operationId": "getStore"}},
    }
    return document(paths)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["listPets", "post_pets", "deletePet", "getStore"]),
        ({"include": ["tag:pets"]}, ["listPets", "post_pets", "deletePet"]),
        ({"include": ["GET /*"]}, ["listPets", "getStore"]),
        ({"include": ["* /pets*"], "exclude": ["tag:admin"]}, ["listPets", "post_pets"]),
        ({"exclude": "DELETE *"}, ["listPets", "post_pets", "getStore"]),
        ({"include": ["get*", "list*"]}, ["listPets", "getStore"]),
    ],
)
async def test_rules_choose_operations(options, expected):
    """Rules are patterns of names, of methods and paths, and of tags."""
    assert list(await tools_of(tagged(), **options)) == expected


async def test_rules_leave_out_what_cannot_be_used(caplog):
    """An operation that a rule excludes is not read, so nothing is logged about it."""
    source = tagged()
    source["paths"]["/store"]["get"]["parameters"] = ["?"]

    assert list(await tools_of(source, exclude=["getStore", "tag:pets"])) == []
    assert caplog.messages == []


async def test_names_are_given():
    """`names` replaces the names of tools, selected by default name or by path."""
    names = {"listPets": "find", "DELETE /pets/{id}": "remove", "getStore": "listPets"}

    found = list(await tools_of(tagged(), names=names, exclude=["post*"], prefix="p"))

    assert found == ["p_find", "p_remove", "p_listPets"]


@pytest.mark.parametrize(
    ("names", "error", "reason"),
    [
        ({"listPet": "a"}, ValueError, "names: 'listPet' is no operation"),
        (
            {"listPets": "getStore"},
            ValueError,
            "names: GET /pets and GET /store would both be 'getStore'",
        ),
        ({"listPets": "a b"}, ValueError, "names: 'a b' must be 64 letters, digits"),
        ({"listPets": "a" * 65}, ValueError, "must be 64 letters"),
        ({"listPets": 3}, TypeError, "names must map texts to texts; 'listPets' does not"),
        (["listPets"], TypeError, "names must be a mapping"),
    ],
)
def test_names_must_be_right(names, error, reason):
    """An unknown name raises at once."""
    with pytest.raises(error, match=reason):
        OpenAPI(tagged() | {"servers": [{"url": "https://a.test"}]}, names=names)


@pytest.mark.parametrize(
    ("scheme", "reason"),
    [
        ({"type": "mutualTLS"}, "'x' has the type 'mutualTLS', which takes no text; see tls="),
        ("odd", "'x' has the type None"),
        ({"type": "http", "scheme": "Digest"}, "the scheme 'digest'; give the header in headers="),
    ],
)
def test_credentials_of_other_schemes(scheme, reason):
    """Credentials that cannot be sent by their scheme are refused."""
    source = document({}, components={"securitySchemes": {"x": scheme}})
    with pytest.raises(ValueError, match=reason):
        OpenAPI(source, auth={"x": "secret"})


@pytest.mark.parametrize("option", ["include", "exclude"])
def test_rules_must_fit(option):
    """A mistake in a rule is an error: it would offer what it should exclude."""
    with pytest.raises(ValueError, match=f"{option}: 'tag:pest' fits no operation"):
        OpenAPI(tagged() | {"servers": [{"url": "https://a.test"}]}, **{option: ["tag:pest"]})


def test_wrong_options():
    """Wrong options raise errors that name them."""
    with pytest.raises(TypeError, match="include must be a list of texts, got 3"):
        OpenAPI(document({}), include=[3])
    with pytest.raises(TypeError, match="headers must map texts to texts; 'a' does not"):
        OpenAPI(document({}), headers={"a": 1})
    with pytest.raises(TypeError, match="headers must be a mapping"):
        OpenAPI(document({}), headers=3)
    with pytest.raises(ValueError, match="no security scheme 'x'; known: none"):
        OpenAPI(document({}), auth={"x": "y"})
    with pytest.raises(ValueError, match="no server is known for '/v1'"):
        OpenAPI(document({}), base_url="/v1")
    with pytest.raises(ValueError, match="must be a letter, then"):
        OpenAPI(document({}), prefix="a b")
    with pytest.raises(ValueError, match="call_timeout must be seconds above 0, or None"):
        OpenAPI(document({}), call_timeout=-1)
    with pytest.raises(ValueError, match="max_answer must be a whole number of bytes above 0"):
        OpenAPI(document({}), max_answer=0)
    with pytest.raises(OSError, match="nothing"):
        OpenAPI("nothing.json")


async def test_base_urls_win():
    """`base_url` replaces all servers."""
    source = reading(servers=[{"url": "https://other.test"}])
    provider = OpenAPI(source, base_url="https://api.test/x/")

    (found,) = operations_of(source, "https://api.test/x")
    assert found.request({}).url == "https://api.test/x/things"
    assert provider.name == "OpenAPI"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def places_in(node, path=()):
    """Return every place in a document."""
    yield path
    items = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node if isinstance(node, list) else ())
    )
    for key, value in items:
        yield from places_in(value, (*path, key))


def changed(node, path, value):
    """Return a document with another value in one place."""
    if not path:
        return value
    copy = node.copy()
    copy[path[0]] = changed(node[path[0]], path[1:], value)
    return copy


STORE = json.loads((ROOT / "docs" / "examples" / "petstore.json").read_text())
PLACES = [path for path in places_in(STORE) if path]


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@given(st.data())
def test_any_mistake_leaves_the_others(version, data):
    """A document with any mistake is refused, or loads without the affected parts."""
    found = {**STORE, "openapi": version}
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(PLACES))
        try:
            found = changed(found, path, data.draw(JSON_VALUES))
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # an earlier change has removed the place
    with suppress(ValueError):
        OpenAPI(found)


def test_long_chains_of_references():
    """A chain of references may be longer than Python's stack."""
    count = schemas.MAX_DEFINITIONS - 1
    found = {f"S{n}": {"items": {"$ref": f"#/components/schemas/S{n + 1}"}} for n in range(count)}
    root = document({}, components={"schemas": {**found, f"S{count}": {}}})
    converter = schemas.SchemaConverter(reader.ApiDocument(root), is_input=True)

    assert converter.convert({"$ref": "#/components/schemas/S0"}) == {"$ref": "#/$defs/S0"}
    assert len(converter.definitions) == count + 1
