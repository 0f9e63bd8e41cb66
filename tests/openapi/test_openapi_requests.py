"""Arguments of tools as HTTP requests."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import McpError, connect
from noizu_mcp.types import Principal

from .api_kit import document, operations_of, reading

OBJECT = {"R": 100, "G": 200}
LIST = ["blue", "black"]


def request_of(path="/things", arguments=None, base="https://api.test/v1", **operation):
    """Return the request of a document's operation."""
    (found,) = operations_of(reading(path, **operation), base)
    return found.request(arguments or {})


def parameter(place, **members):
    return {"name": "color", "in": place, "schema": {}, **members}


# The examples of OpenAPI 3.1, "Style Examples".
@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, LIST, "blue,black"),
        ("simple", False, OBJECT, "R,100,G,200"),
        ("simple", True, OBJECT, "R=100,G=200"),
        ("label", False, "blue", ".blue"),
        ("label", False, LIST, ".blue,black"),
        ("label", True, LIST, ".blue.black"),
        ("label", True, OBJECT, ".R=100.G=200"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, LIST, ";color=blue,black"),
        ("matrix", True, LIST, ";color=blue;color=black"),
        ("matrix", False, OBJECT, ";color=R,100,G,200"),
        ("matrix", True, OBJECT, ";R=100;G=200"),
    ],
)
def test_styles_of_paths(style, explode, value, expected):
    """A path has the text that the specification defines for a style."""
    one = parameter("path", style=style, explode=explode)

    request = request_of("/things/{color}", {"color": value}, parameters=[one])

    assert request.url == f"https://api.test/v1/things/{expected}"


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("form", True, "blue", "color=blue"),
        ("form", True, None, "color="),
        ("form", True, LIST, "color=blue&color=black"),
        ("form", False, LIST, "color=blue,black"),
        ("form", True, OBJECT, "R=100&G=200"),
        ("form", False, OBJECT, "color=R,100,G,200"),
        ("spaceDelimited", False, LIST, "color=blue%20black"),
        ("pipeDelimited", False, LIST, "color=blue|black"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200"),
        ("deepObject", True, "blue", "color=blue"),
        ("form", True, True, "color=true"),
        ("form", True, "a&b=c#d", "color=a%26b%3Dc%23d"),
        ("form", True, {"R": {"x": 1}}, "R=%7B%22x%22%3A1%7D"),
    ],
)
def test_styles_of_queries(style, explode, value, expected):
    """A query has the text that the specification defines for a style."""
    one = parameter("query", style=style, explode=explode)

    assert (
        request_of(arguments={"color": value}, parameters=[one]).url.partition("?")[2] == expected
    )


@pytest.mark.parametrize(
    ("explode", "value", "expected"),
    [
        (False, "blue", "blue"),
        (False, LIST, "blue,black"),
        (False, OBJECT, "R,100,G,200"),
        (True, OBJECT, "R=100,G=200"),
    ],
)
def test_headers(explode, value, expected):
    """The values of a header are separated by commas, not percent-encoded."""
    request = request_of(
        arguments={"color": value}, parameters=[parameter("header", explode=explode)]
    )

    assert ("color", expected) in request.headers


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "\x00", "ü"])
def test_headers_have_no_other_characters(value):
    """No value of a header can add another header."""
    with pytest.raises(ValueError, match="printable ASCII"):
        request_of(arguments={"color": value}, parameters=[parameter("header")])


def test_cookies_share_one_header():
    """All cookies are in one header."""
    others = {"name": "b", "in": "cookie", "schema": {}}
    request = request_of(
        arguments={"color": "x;y", "b": 1}, parameters=[parameter("cookie"), others]
    )

    assert ("cookie", "color=x%3By; b=1") in request.headers


@pytest.mark.parametrize("place", ["path", "query", "header", "cookie"])
def test_parameters_with_a_media_type_are_json(place):
    """A parameter with `content` is the text of its JSON."""
    one = {"name": "color", "in": place, "content": {"application/json": {"schema": {}}}}

    request = request_of(
        "/things/{color}" if place == "path" else "/things", {"color": OBJECT}, parameters=[one]
    )

    sent = unquote(request.url + str(request.headers))
    assert '{"R":100,"G":200}' in sent


def test_arguments_that_are_left_out_are_not_sent():
    """An optional parameter without a value is not sent."""
    places = ("query", "header", "cookie")

    request = request_of(parameters=[{**parameter(p), "name": p} for p in places])

    assert request.url == "https://api.test/v1/things"
    assert [name for name, _ in request.headers] == ["accept"]


@pytest.mark.parametrize(
    "value", ["", ".", "..", "../x", "a/../b", "%2e%2e", "..%2f", "%252e%252e", "a\\..\\b"]
)
def test_paths_are_not_left(value):
    """No value of a path leads to another folder, encoded or not."""
    with pytest.raises(ValueError, match="must not be empty, and have no part"):
        request_of("/things/{color}", {"color": value}, parameters=[parameter("path")])


def test_two_variables_make_no_step():
    """Two dots of two variables in one segment are refused, too."""
    names = [parameter("path"), {**parameter("path"), "name": "b"}]

    with pytest.raises(ValueError, match="no part"):
        request_of("/things/{color}{b}", {"color": ".", "b": "."}, parameters=names)


@given(st.text(), st.text(), st.text())
def test_requests_stay_below_the_path(first, second, query):
    """Whatever the arguments, a request stays below the path of its operation, or is not made."""
    listed = [parameter("path"), {**parameter("path"), "name": "b"}]
    listed.append({**parameter("query"), "name": "q"})
    arguments = {"color": first, "b": second, "q": query}
    try:
        request = request_of("/things/{color}/x/{b}", arguments, parameters=listed)
    except ValueError:
        return
    path, _, sent = request.url.removeprefix("https://api.test").partition("?")
    assert path.isascii()
    parts = path.split("/")
    assert parts[:3] == ["", "v1", "things"]
    assert parts[4] == "x"
    assert [unquote(parts[3]), unquote(parts[5])] == [first, second]
    assert unquote(sent) == f"q={query}"


def body_of(media_type, value, schema=None, **members):
    content = {media_type: {"schema": schema or {}}, "application/x-unknown": {}}
    body = {"content": content, **members}
    return request_of(arguments={"body": value}, requestBody=body)


@pytest.mark.parametrize(
    ("media_type", "value", "expected"),
    [
        ("application/json", {"a": [1, None]}, b'{"a":[1,null]}'),
        ("application/merge-patch+json", {"a": 1}, b'{"a":1}'),
        (
            "application/x-www-form-urlencoded",
            {"a b": "c&d", "e": [1, True]},
            b"a%20b=c%26d&e=1&e=true",
        ),
        ("text/plain", "hi", b"hi"),
        ("application/octet-stream", "aGk=", b"hi"),
    ],
)
def test_bodies(media_type, value, expected):
    """A body is written in its media type."""
    request = body_of(media_type, value)

    assert request.body == expected
    assert ("content-type", media_type) in request.headers


def test_bodies_that_cannot_be_written():
    """Bytes must be base64, and a form an object."""
    with pytest.raises(ValueError, match="base64"):
        body_of("application/octet-stream", "?")
    with pytest.raises(ValueError, match="an object"):
        body_of("application/x-www-form-urlencoded", [1])


async def test_requests_arrive(serving, api):
    """A call reaches the API with all that its arguments say."""
    node = {
        "operationId": "put",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
            {"name": "x-note", "in": "header", "schema": {"type": "string"}},
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": {}}}},
    }
    front = serving(document({"/things/{id}": {"put": node}}))
    async with connect(front) as client:
        result = await client.call_tool("put", {"id": 7, "x-note": "n", "body": [1]})

    (seen,) = api.seen
    assert result.structured == seen
    assert (seen["method"], seen["path"], seen["body"]) == ("PUT", "/v1/things/7", "[1]")
    assert seen["headers"]["x-note"] == "n"
    assert seen["headers"]["content-type"] == "application/json"


async def test_bad_values_are_told_to_the_model(serving, api):
    """A value that cannot be sent is a result that says so, and nothing is sent."""
    front = serving(reading("/things/{color}", parameters=[parameter("path")]))
    async with connect(front) as client:
        result = await client.call_tool("read", {"color": ".."})

    assert result.is_error
    assert "no part '.' or '..'" in result.text
    assert api.seen == []


async def test_given_headers_win(serving, api):
    """Headers of the provider are sent, and no argument can replace them."""
    shown = [parameter("header"), {**parameter("header"), "name": "X-Key", "required": True}]
    front = serving(reading(parameters=shown), headers={"x-key": "s3cret"})
    async with connect(front) as client:
        (tool,) = await client.list_tools()
        await client.call_tool("read", {"color": "red"})

    assert list(tool.input_schema["properties"]) == ["color"]
    assert api.seen[0]["headers"]["x-key"] == "s3cret"


async def test_headers_may_be_computed(serving, api):
    """A function computes the headers of each request."""
    count = iter("ab")

    async def headers():
        return {"Authorization": f"Bearer {next(count)}"}

    async with connect(serving(reading(), headers=headers)) as client:
        await client.call_tool("read")
        await client.call_tool("read")

    assert [each["headers"]["authorization"] for each in api.seen] == ["Bearer a", "Bearer b"]


@pytest.mark.parametrize(
    ("scheme", "secret", "expected"),
    [
        ({"type": "http", "scheme": "bearer"}, "t", ("authorization", "Bearer t")),
        ({"type": "oauth2", "flows": {}}, "t", ("authorization", "Bearer t")),
        ({"type": "http", "scheme": "Basic"}, "u:p", ("authorization", "Basic dTpw")),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, "k", ("x-key", "k")),
        (
            {"type": "apiKey", "in": "cookie", "name": "sid"},
            "k;",
            ("cookie", "color=red; sid=k%3B"),
        ),
    ],
)
async def test_credentials(serving, api, scheme, secret, expected):
    """Credentials are sent as their scheme says, to operations that need them."""
    secured = reading(parameters=[parameter("cookie")], security=[{"other": []}, {"mine": []}])
    secured["paths"]["/open"] = {"get": {"operationId": "open", "security": []}}
    secured["components"] = {"securitySchemes": {"mine": scheme}}
    async with connect(serving(secured, auth={"mine": secret})) as client:
        await client.call_tool("read", {"color": "red"})
        await client.call_tool("open")

    name, value = expected
    assert api.seen[0]["headers"][name] == value
    assert name not in api.seen[1]["headers"]


@pytest.mark.parametrize(("arguments", "mark"), [({}, "?"), ({"color": "red"}, "?color=red&")])
async def test_keys_in_the_query(serving, api, arguments, mark):
    """A key may be a part of the query."""
    secured = reading(parameters=[parameter("query")], security=[{"mine": []}])
    secured["components"] = {
        "securitySchemes": {"mine": {"type": "apiKey", "in": "query", "name": "k"}}
    }
    async with connect(serving(secured, auth={"mine": "a b"})) as client:
        await client.call_tool("read", arguments)

    assert api.seen[0]["path"] == f"/v1/things{mark}k=a%20b"


async def test_scopes_in_front(serving, api):
    """A caller without the scopes that are required reaches nothing."""
    front = serving(reading(), requires=["read"])
    async with connect(front, principal=Principal(subject="a")) as client:
        with pytest.raises(McpError, match="scope"):
            await client.call_tool("read")

    assert api.seen == []
