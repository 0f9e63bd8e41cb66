"""`Handle`: objects that a server keeps between calls, under a random id that clients carry."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ClassVar, Final, NamedTuple, Protocol, dataclass_transform

from .._class_body import BodyMeta
from .._errors import DefinitionError, UnsavedHandle
from .._util import UNSET, Unset, is_number, is_whole
from .._value import JSONObject
from ..schema import (
    HANDLE,
    Fault,
    HandleForm,
    argument,
    define_handle,
    docstring_summary,
    field,
    read_handle,
    to_problems,
)

_TTL: Final = 3600.0
_MAX_SIZE: Final = 65536


class HandleClass(NamedTuple):
    """What the statement of a class of handles declares, beside its fields.

    Attributes:
        kind: Names the class, for all processes of a server.
        ttl: Seconds that a handle is kept after its last use.
        max_size: Maximum bytes of its fields as JSON.
        about: The first paragraph of the docstring; None without one.
    """

    kind: str
    ttl: float
    max_size: int
    about: str | None


class StoredHandle(Protocol):
    """The record of a handle, as its object uses it.

    Attributes:
        id: The id.
        expires_at: When it expires, in seconds since the epoch, by the last use that is known here.
    """

    @property
    def id(self) -> str: ...
    @property
    def expires_at(self) -> float: ...
    @property
    def is_settled(self) -> bool:
        """True while a call will store the changes of the object when it ends."""

    async def delete(self) -> None:
        """Delete the record."""


#: Takes the handles of a result that their call has to store, and gives each a record.
COLLECT: Final[ContextVar[Callable[["Handle"], StoredHandle] | None]] = ContextVar(
    "collect", default=None
)


@dataclass_transform(kw_only_default=True, field_specifiers=(field, argument))
class Handle(metaclass=BodyMeta):
    """Base of classes whose instances a server keeps between calls, under an id that clients carry.

    A subclass declares fields by annotation, as a `Schema` does; its instances can be changed. A
    tool that returns one stores it: the result has its `id`, and its fields. A parameter of a tool
    that is annotated with the class takes such an id, and the handler gets the object. What the
    handler changes is stored when it returns; a call that fails stores nothing. Calls that take the
    same handle run one after the other. Tools with `read_only_hint` run beside each other, and
    store nothing.

    An id belongs to the verified caller who got it, if callers are verified. An id that is unknown,
    expired, deleted or of another caller is answered with one error, which names the tools that
    return such a handle.

    The class statement takes two keywords:

    - `ttl`: Seconds that a handle is kept after its last use; 3600 by default.
    - `max_size`: Maximum bytes of its fields as JSON; 65536 by default.

    Raises:
        DefinitionError: From the class statement of a subclass; it lists every problem.
    """

    __mcp_handle__: ClassVar[HandleClass]
    # Of an instance, once it has an id.
    __mcp_record__: ClassVar[Any] = None

    def __init_subclass__(
        cls,
        *,
        ttl: float | Unset = UNSET,
        max_size: int | Unset = UNSET,
        **keywords: object,
    ) -> None:
        super().__init_subclass__()
        base: HandleClass | None = getattr(cls, HANDLE, None)
        faults: list[Fault] = []
        if isinstance(ttl, Unset):
            ttl = _TTL if base is None else base.ttl
        elif not (is_number(ttl) and ttl > 0):
            faults.append(Fault(("ttl",), f"must be a number of seconds above 0, not {ttl!r}", cls))
        if isinstance(max_size, Unset):
            max_size = _MAX_SIZE if base is None else base.max_size
        elif not is_whole(max_size, 1):
            text = f"must be a number of bytes above 0, not {max_size!r}"
            faults.append(Fault(("max_size",), text, cls))
        about = docstring_summary(vars(cls).get("__doc__"))
        kind = f"{cls.__module__}.{cls.__qualname__}"
        cls.__mcp_handle__ = HandleClass(kind, ttl, max_size, about)
        define_handle(cls, keywords)
        _, found, is_unresolved = read_handle(cls)
        # A name that is defined later is looked up by the first tool that uses the class.
        if faults or (found and not is_unresolved):
            raise DefinitionError(to_problems([*faults, *found], cls.__name__))

    @property
    def id(self) -> str | None:
        """The id, which is secret; None until the handle is stored."""
        record: StoredHandle | None = self.__mcp_record__
        return None if record is None else record.id

    @property
    def expires_at(self) -> float | None:
        """When it expires unless it is used, in seconds of Unix time; None until it is stored."""
        record: StoredHandle | None = self.__mcp_record__
        return None if record is None else record.expires_at

    async def delete(self) -> None:
        """Delete the handle at once, also if the handler fails later.

        Does nothing for a handle that is not stored, or was deleted before.

        Raises:
            ToolError: It cannot be deleted now.
            TypeError: The tool has `read_only_hint`.
        """
        record: StoredHandle | None = self.__mcp_record__
        if record is not None:
            await record.delete()

    def __mcp_json__(self) -> JSONObject:
        record: StoredHandle | None = self.__mcp_record__
        if record is None or not record.is_settled:
            collect = COLLECT.get()
            if collect is None:
                name = type(self).__name__
                raise UnsavedHandle(
                    f"a {name} is stored before it is written: return it from a tool that is not"
                    " inline; elsewhere await ctx.save(…), and return its id"
                )
            record = collect(self)
        return {"id": record.id, **form_of(type(self)).dump(self)}


def form_of(cls: type) -> HandleForm:
    """Return the form of a class of handles.

    Raises:
        DefinitionError: It names types that were never defined.
    """
    form, faults, _ = read_handle(cls)
    if form is None:
        raise DefinitionError(to_problems(faults, cls.__name__))
    return form
