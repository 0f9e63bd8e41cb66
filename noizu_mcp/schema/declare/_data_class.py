"""The class of arguments that were declared as data: attributes with the declared names."""

from collections.abc import Iterator
from keyword import iskeyword
from typing import Any

import attrs


@attrs.frozen(slots=False, eq=False, repr=False, init=False)
class Record:
    """Arguments of the data form: `args.path`, or `args["path"]` for a name that is no identifier.

    Every declared name is there; one that was absent and has no default is None. Declared names
    come before the methods here: with a field `get`, `args.get` is its value.
    """

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a declared name, or `default` if the name is not declared."""
        return self.__dict__.get(name, default)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self.__dict__ == other.__dict__

    # No hash, for a value may be a list; mypy takes this for a mistake (python/mypy#4266).
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"


def record_class(name: str, fields: list[str]) -> type[Record]:
    """Return an attrs class with these names as attributes, as far as they are identifiers."""
    # attrs writes them into generated code; what is no name lives in the instance only.
    named = [field for field in fields if field.isidentifier() and not iskeyword(field)]
    these = {field: attrs.field(init=False) for field in named if not field.startswith("__")}
    cls = type(name, (Record,), {"__module__": __name__})
    return attrs.define(
        cls, these=these, slots=False, frozen=True, eq=False, repr=False, init=False
    )
