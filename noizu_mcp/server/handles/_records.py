"""The records of handles: what their objects know of the store."""

import hashlib
import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..._errors import ToolError
from ..._util import json_text
from ...components import Handle, HandleClass, form_of
from ...jsonrpc import render
from ...schema import HANDLE, describe
from ._locks import Lock

if TYPE_CHECKING:
    from .._contracts import AsyncioSide

#: Random bytes of an id: without authentication, anyone who knows the id can use the handle.
_ENTROPY: Final = 24
#: Characters of an id. Anything else is not looked up.
_ID_SIZE: Final = 32


def new_id() -> str:
    """Make an id."""
    return urlsafe_b64encode(os.urandom(_ENTROPY)).decode()


def key_of(server: str, cls: type, owner: str | None, id_: str) -> str | None:
    """Return the key of a handle in the store; None if the text cannot be an id.

    The class and the owner are a part of it: the id of another class, or of another caller, leads
    to no record, and its time is not extended.
    """
    if len(id_) != _ID_SIZE or not id_.isascii():
        return None
    return "h:" + digest(json_text([server, class_of(cls).kind, owner, id_]))


def digest(text: str) -> str:
    """Return 128 bits of the digest of a text that the store must not know."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def class_of(cls: type) -> HandleClass:
    """Return what the statement of a class of handles declares."""
    found: HandleClass = getattr(cls, HANDLE)
    return found


def pack(handle: Handle) -> bytes:
    """Write the fields of a handle as JSON.

    Raises:
        TypeError: A field has a value of another type than it declares.
        ToolError: They are larger than the class allows.
    """
    cls = type(handle)
    form = form_of(cls)
    fields = form.dump(handle)
    violations = form.shape.read(fields)[1]
    if violations:
        found = "; ".join(describe(violations))
        raise TypeError(f"{cls.__name__} has values that do not fit its fields: {found}")
    data = render(fields)
    most = class_of(cls).max_size
    if len(data) > most:
        text = f"The {cls.__name__} has {len(data)} bytes, and may have {most}; nothing is stored"
        raise ToolError(text)
    return data


def unpack(cls: type, data: bytes) -> Any:
    """Build a handle of its fields as JSON; None if they do not fit the class any longer."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return form_of(cls).shape.try_build(fields)[1]


@attrs.define(eq=False)
class StoredState:
    """A handle in the store, as a call and the calls nested in it know it.

    Attributes:
        id: The id.
        key: The key of its record.
        owner: The key of its principal; None without authentication.
        data: The fields as they are stored; empty for a new handle.
        version: The version of the record; 0 for a new handle.
        expires_at: When the record expires, by the last use that is known here.
        lock: The lock of a call that may change it; None without one.
        is_deleted: True once it was deleted here.
    """

    id: str
    key: str
    owner: str | None
    data: bytes = b""
    version: int = 0
    expires_at: float = 0.0
    lock: Lock | None = None
    is_deleted: bool = False


#: Deletes a handle of a class; see `HandleStore`.
Delete = Callable[[type, StoredState], Awaitable[None]]


class HandleRecord:
    """The record of one object of a handle; a `StoredHandle`.

    Args:
        delete: Deletes a handle from the store.
        cls: The class of the object.
        state: The handle in the store.
        is_read_only: True in a call that stores nothing.

    Attributes:
        state: See Args.
        is_settled: See `StoredHandle`.
        is_over: True once the call that loaded it has ended.
        side: The asyncio side of the handler; None on trio.
    """

    def __init__(
        self, delete: Delete, cls: type, state: StoredState, *, is_read_only: bool = False
    ) -> None:
        self._delete = delete
        self._cls = cls
        self.state = state
        self.is_read_only = is_read_only
        self.is_settled = self.is_over = False
        self.side: AsyncioSide | None = None

    @property
    def id(self) -> str:
        """The id."""
        return self.state.id

    @property
    def expires_at(self) -> float:
        """When it expires; see `Handle`."""
        return self.state.expires_at

    async def delete(self) -> None:
        """Delete the record; see `Handle`."""
        self.check("delete")
        delete = partial(self._delete, self._cls, self.state)
        await (delete() if self.side is None else self.side.run_trio(delete))

    def check(self, what: str) -> None:
        """Check that a handler may change the record.

        Raises:
            TypeError: Its tool is read-only, or its call has ended.
        """
        if self.is_over:
            raise TypeError(f"the call of this handle has ended; {what} it in a call that takes it")
        if self.is_read_only:
            raise TypeError(f"a tool with read_only_hint cannot {what} a handle")
