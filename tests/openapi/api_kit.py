"""Documents of small APIs."""

from noizu_mcp.openapi._document import ApiDocument
from noizu_mcp.openapi._operations import list_operations, read_operations


def document(paths, version="3.1.0", **members):
    """Make a document with some paths."""
    info = {"title": "Test", "version": "1"}
    return {"openapi": version, "info": info, "paths": paths, **members}


def reading(path="/things", **operation):
    """Make a document with one operation, `GET` of a path, named `read`."""
    node = {"operationId": "read", "responses": {"200": {"description": "ok"}}, **operation}
    return document({path: {"get": node}})


def operations_of(root, base_url=None):
    """Return the operations of a document."""
    found = ApiDocument(root)
    return list(read_operations(found, list_operations(found), base_url))
