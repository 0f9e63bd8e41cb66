"""Bodies of requests: forms, parts, files, and other media types."""

import base64
from email import message_from_bytes
from email.policy import HTTP

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import connect

from .api_kit import document, operations_of

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FILE = {"type": "string", "format": "binary"}


def posting(content, version="3.1.0", schemas=None, **body):
    """Make a document with `POST /things`, named `send`, whose body has these media types."""
    node = {"operationId": "send", "requestBody": {"content": content, **body}}
    return document({"/things": {"post": node}}, version, components={"schemas": schemas or {}})


def operation_of(content, **options):
    (found,) = operations_of(posting(content, **options), "https://api.test")
    return found


def form_of(properties, media_type=MULTIPART, encoding=None, **options):
    """Return the operation of a form with some fields."""
    schema = {"type": "object", "properties": properties}
    media = {"schema": schema, **({} if encoding is None else {"encoding": encoding})}
    return operation_of({media_type: media}, **options)


def parts_of(operation, body):
    """Return the parts of a call: name, bytes, media type, file name."""
    parts = operation.request({"body": body}).parts
    return [(part.name, part.content, part.media_type, part.filename) for part in parts]


@pytest.mark.parametrize(
    ("schema", "version"),
    [
        (FILE, "3.0.3"),
        (FILE, "3.1.0"),
        ({"type": "string", "contentMediaType": "application/octet-stream"}, "3.1.0"),
        ({"anyOf": [FILE, {"type": "null"}]}, "3.1.0"),
        ({"allOf": [{"$ref": "#/components/schemas/File"}]}, "3.0.3"),
        ({"$ref": "#/components/schemas/File"}, "3.1.0"),
    ],
)
def test_files_are_base64(schema, version):
    """A field of bytes is base64 in the arguments, however the document declares it."""
    operation = form_of({"photo": schema}, version=version, schemas={"File": FILE})

    assert parts_of(operation, {"photo": "iVA="}) == [
        ("photo", b"\x89P", "application/octet-stream", "photo")
    ]
    text = str(operation.input_schema)
    assert "'contentEncoding': 'base64'" in text
    assert "binary" not in text
    body = operation.input_schema["properties"]["body"]
    assert body["description"].startswith("Files are base64, or data URLs")


def test_files_may_have_a_type_and_a_name():
    """A data URL can have both; folders in the name are removed."""
    operation = form_of({"photo": FILE})

    found = parts_of(operation, {"photo": "data:image/png;name=..%2Fa%20b.png;base64,iVA="})

    assert found == [("photo", b"\x89P", "image/png", "a b.png")]
    assert parts_of(operation, {"photo": "data:;x=y;base64,"}) == [
        ("photo", b"", "application/octet-stream", "photo")
    ]


@pytest.mark.parametrize("value", ["?", "iV", "data:image/png,iVA=", "ü", 3])
def test_files_must_be_base64(value):
    """Other values are an error with the name of the field."""
    with pytest.raises(ValueError, match="photo must be base64"):
        parts_of(form_of({"photo": FILE}), {"photo": value})


def test_fields_of_other_types():
    """Strings are plain, objects JSON, lists parts of the same name; null files are left out."""
    properties = {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "points": {"type": "array", "items": {"type": "object"}},
        "pages": {"type": "array", "items": FILE},
        "photo": {"oneOf": [FILE, {"type": "null"}]},
    }
    body = {
        "text": "ü",
        "count": 3,
        "tags": ["a", "b"],
        "points": [{"x": 1}],
        "pages": ["YQ==", "Yg=="],
        "photo": None,
        "other": True,
    }

    assert parts_of(form_of(properties), body) == [
        ("text", "ü".encode(), None, None),
        ("count", b"3", None, None),
        ("tags", b"a", None, None),
        ("tags", b"b", None, None),
        ("points", b'{"x":1}', "application/json", None),
        ("pages", b"a", "application/octet-stream", "pages"),
        ("pages", b"b", "application/octet-stream", "pages"),
        ("other", b"true", None, None),
    ]


@pytest.mark.parametrize(
    ("schema", "content_type", "value", "expected"),
    [
        (FILE, "image/png", "YQ==", [(b"a", "image/png")]),
        (FILE, "image/png, image/jpeg", "YQ==", [(b"a", "application/octet-stream")]),
        (FILE, "image/*", "data:image/gif;base64,YQ==", [(b"a", "image/gif")]),
        ({"type": "array"}, "application/json", [1, 2], [(b"[1,2]", "application/json")]),
        ({"type": "string"}, "application/json", "a", [(b'"a"', "application/json")]),
        ({}, "text/csv; charset=utf-8", "a,b", [(b"a,b", "text/csv; charset=utf-8")]),
        ({}, "text/csv\r\nX-Evil: 1", "a", [(b"a", None)]),
        ({}, ["odd"], "a", [(b"a", None)]),
    ],
)
def test_encodings_give_types(schema, content_type, value, expected):
    """`encoding` sets the media type of a part, if that can be sent."""
    operation = form_of({"a": schema}, encoding={"a": {"contentType": content_type}})

    assert [part[1:3] for part in parts_of(operation, {"a": value})] == expected


def test_texts_that_stay_encoded():
    """A string with `contentEncoding` is sent unchanged, and its part has that encoding."""
    operation = form_of({"a": {"type": "string", "contentEncoding": "base64"}})

    (part,) = operation.request({"body": {"a": "YQ=="}}).parts

    assert (part.content, part.encoding, part.filename) == (b"YQ==", "base64", None)


def read_parts(seen):
    """Return the parts of a received request, parsed by another library."""
    head = f"content-type: {seen['headers']['content-type']}\r\n\r\n".encode()
    message = message_from_bytes(head + seen["body"].encode("latin-1"), policy=HTTP)
    return [
        (
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in message.iter_parts()
    ]


async def test_parts_arrive(serving, api):
    """The API gets the parts, even if the provider sets a content type for all requests."""
    properties = {
        "photo": FILE,
        "note": {"type": "string"},
        "seal": {"type": "string", "contentEncoding": "base64"},
    }
    source = posting({MULTIPART: {"schema": {"properties": properties}}})
    front = serving(source, headers={"Content-Type": "application/json", "x-key": "k"})
    data = bytes(range(256))
    async with connect(front) as client:
        photo = f"data:image/png;name=p.png;base64,{base64.b64encode(data).decode()}"
        body = {"photo": photo, "note": 'a"\r\n--b', "seal": "YQ==", 'x"\r\ny': "z"}
        result = await client.call_tool("send", {"body": body})

    assert not result.is_error
    (seen,) = api.seen
    assert read_parts(seen) == [
        ("photo", "p.png", "image/png", data),
        ("note", None, "text/plain", b'a"\r\n--b'),
        ("seal", None, "text/plain", b"a"),
        ("x%22%0D%0Ay", None, "text/plain", b"z"),
    ]
    assert seen["headers"]["x-key"] == "k"


async def test_wrong_files_are_told_to_the_model(serving, api):
    """A file that is not base64 is an error result that says so."""
    source = posting({MULTIPART: {"schema": {"properties": {"photo": FILE}}}})
    async with connect(serving(source)) as client:
        result = await client.call_tool("send", {"body": {"photo": "cat.png"}})

    assert (result.is_error, result.text) == (True, "photo must be base64")
    assert api.seen == []


@given(st.dictionaries(st.text(min_size=1), st.binary(), min_size=1))
def test_bytes_stay_whole(files):
    """Parts with any names and bytes are unchanged."""
    operation = form_of(dict.fromkeys(files, FILE))
    body = {name: base64.b64encode(data).decode() for name, data in files.items()}

    assert {part.name: part.content for part in operation.request({"body": body}).parts} == files


@pytest.mark.parametrize(
    ("encoding", "value", "expected"),
    [
        (None, {"b": 1}, "a=%7B%22b%22%3A1%7D"),
        (None, [1, 2], "a=1&a=2"),
        (None, None, "a="),
        ({"contentType": "application/json"}, [1, 2], "a=%5B1%2C2%5D"),
        ({"style": "form", "explode": True}, [1, {"b": 2}], "a=1&a=%7B%22b%22%3A2%7D"),
        ({"style": "form"}, {"b": 1}, "b=1"),
        ({"explode": False}, [1, 2], "a=1,2"),
        ({"style": "pipeDelimited", "explode": False}, [1, 2], "a=1|2"),
    ],
)
def test_encodings_of_forms(encoding, value, expected):
    """`encoding` sets the style of a field; by default objects are JSON."""
    encodings = {} if encoding is None else {"a": encoding}
    operation = form_of({"a": {}}, FORM, encodings)

    assert operation.request({"body": {"a": value}}).body.decode() == expected


def test_forms_with_brackets():
    """In a `deepObject` keys of objects and lists are in brackets, at every level."""
    operation = form_of({"a": {}}, FORM, {"a": {"style": "deepObject"}})
    value = {"b": 1, "c": [2, 3], "d": [{"e": "f g"}], "h": {"i": None}}

    body = operation.request({"body": {"a": value}}).body.decode()

    shown = body.replace("%5B", "[").replace("%5D", "]")
    assert shown == "a[b]=1&a[c][]=2&a[c][]=3&a[d][0][e]=f%20g&a[h][i]="


def test_brackets_are_bounded():
    """An object with too many levels is refused."""
    operation = form_of({"a": {}}, FORM, {"a": {"style": "deepObject"}})
    value = 1
    for _ in range(33):
        value = [[value]]

    with pytest.raises(ValueError, match="more than 32 levels"):
        operation.request({"body": {"a": value}})


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([MULTIPART, FORM, "application/json"], "application/json"),
        ([MULTIPART, FORM], FORM),
        ([f"{MULTIPART}; boundary=x", "text/plain"], ""),
        (["text/plain", "application/octet-stream"], "text/plain"),
        (["application/zip", "application/octet-stream"], "application/octet-stream"),
        (["application/xml"], "application/xml"),
        (["application/zip"], "application/zip"),
        (["text/*"], "text/plain"),
        (["image/*"], "application/octet-stream"),
        (["*/*"], "application/json"),
    ],
)
def test_one_media_type_is_chosen(kinds, expected):
    """JSON is preferred to forms, forms to texts, and texts to bytes."""
    operation = operation_of({kind: {"schema": {}} for kind in kinds})
    body = {"a": "YQ=="} if expected in ("", FORM) else "YQ=="

    headers = dict(operation.request({"body": body}).headers)

    assert headers.get("content-type", "") == expected


def test_files_choose_the_form_that_takes_them():
    """A form with files is `multipart/form-data` if that is declared."""
    media = {"schema": {"properties": {"photo": FILE}}}

    operation = operation_of({FORM: media, MULTIPART: media})

    assert parts_of(operation, {"photo": "YQ=="})[0][1] == b"a"


def test_bytes_of_any_type():
    """Bytes may be a data URL, whose type is sent if the document leaves it open."""
    operation = operation_of({"image/*": {"schema": FILE}})
    request = operation.request({"body": "data:image/gif;base64,YQ=="})
    assert (request.body, dict(request.headers)["content-type"]) == (b"a", "image/gif")

    operation = operation_of(
        {"*/*": {"schema": {"$ref": "#/components/schemas/File"}}}, schemas={"File": FILE}
    )
    request = operation.request({"body": "YQ=="})
    assert (request.body, dict(request.headers)["content-type"]) == (
        b"a",
        "application/octet-stream",
    )
    assert operation.input_schema["properties"]["body"] == {
        "type": "string",
        "contentEncoding": "base64",
    }


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [
        (3, "the encoding of a must be an object"),
        ({"style": "matrix"}, "the parameter a in query has the style 'matrix'"),
    ],
)
def test_wrong_encodings(encoding, reason, caplog):
    """An operation with a malformed encoding is left out."""
    content = {FORM: {"schema": {"properties": {"a": {}}}, "encoding": {"a": encoding}}}

    assert operations_of(posting(content), "https://api.test") == []
    assert caplog.messages == [f"left out POST /things: {reason}"]


def test_forms_beside_json_are_not_read():
    """A mistake in a form does not matter if JSON is sent."""
    form = {"schema": {"properties": {"a": {}}}, "encoding": {"a": 3}}

    operation = operation_of({MULTIPART: form, "application/json": {"schema": {}}})

    assert operation.request({"body": [1]}).body == b"[1]"


def test_odd_forms():
    """A form without a schema accepts any field; a form must be an object."""
    operation = operation_of({MULTIPART: {"schema": {"properties": 3}, "encoding": 3}})

    assert parts_of(operation, {"a": 1}) == [("a", b"1", None, None)]
    with pytest.raises(ValueError, match="must be an object"):
        parts_of(operation, [1])


def test_schemas_in_circles():
    """A form whose schema refers to itself has the fields of all its parts."""
    ref = {"$ref": "#/components/schemas/Form"}
    form = {"allOf": [ref, {"properties": {"photo": FILE}}], "properties": {"form": ref}}

    operation = operation_of({MULTIPART: {"schema": ref}}, schemas={"Form": form})

    assert parts_of(operation, {"photo": "YQ==", "form": {}}) == [
        ("photo", b"a", "application/octet-stream", "photo"),
        ("form", b"{}", "application/json", None),
    ]
