"""Documents of small APIs."""


def document(paths, version="3.1.0", **members):
    """A document with some paths."""
    info = {"title": "Test", "version": "1"}
    return {"openapi": version, "info": info, "paths": paths, **members}


def reading(path="/things", **operation):
    """A document with one operation, `GET` of a path, named `read`."""
    node = {"operationId": "read", "responses": {"200": {"description": "ok"}}, **operation}
    return document({path: {"get": node}})
