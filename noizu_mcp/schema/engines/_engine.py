"""The engines, and the choice of one of them.

An engine is a module with the members of `Engine`. The native one serves wherever it loads, unless
another one is named. It is loaded with the first schema that needs it; whether it loads is known
only then.
"""

from collections.abc import Callable
from functools import cache
from typing import Final, Protocol

from ..._errors import SchemaUnsupported
from ..._log import logger
from ..._schema_engine import EngineName, named_engine
from ..jsonschema._document import Document
from ..jsonschema._values import CompilePart, Verdict

_NATIVE: Final = "jsonschema_rs"


class Engine(Protocol):
    """A library that judges values.

    Attributes:
        MAX_WORK: Checks of a part of a value against a subschema that take about a second.
    """

    MAX_WORK: int

    def compile_document(self, document: Document, *, trusted: bool) -> tuple[Verdict, CompilePart]:
        """Compile a schema. Nothing is ever fetched.

        Args:
            document: The schema.
            trusted: False for a schema of a peer: its patterns must be matched in linear time, and
                it never becomes code.

        Returns:
            The verdict of the schema, which may raise ValueError for a value that the engine cannot
            read; and a function that returns the verdict of another schema of the same dialect, or
            raises ValueError where it cannot.

        Raises:
            SchemaUnsupported: The engine cannot serve the schema; the keyword is named.
            SchemaError: The schema is not valid, or has a reference that leads nowhere.
        """

    def match_pattern(self, pattern: str) -> Callable[[str], bool]:
        """Return a function that tells if a pattern of ECMA-262 is found in a text.

        Raises:
            ValueError: The pattern is not valid, or not served.
        """


def choose_engine(name: str | None = None) -> EngineName | None:
    """Return the name of the engine to compile with, None for the native one where it loads.

    Args:
        name: An engine; None for the engine that the environment names.

    Raises:
        ValueError: There is no such engine.
        SchemaUnsupported: The native engine was named, and cannot be loaded.
    """
    chosen = named_engine(name)
    if chosen is not None:
        load_engine(chosen)
    return chosen


def load_engine(name: EngineName | None) -> Engine:
    """Import an engine.

    Args:
        name: A result of `choose_engine`.

    Raises:
        SchemaUnsupported: The native engine was named, and cannot be loaded.
    """
    if name != "python":
        native, error = _load_native()
        if native is not None:
            return native
        if name == "native":
            raise SchemaUnsupported(
                f"the native schema engine cannot be loaded ({error}); install it:"
                ' pip install jsonschema-rs, or choose "python"',
                "engine",
            )
        _note_fallback()
    from . import _python

    return _python


@cache
def _load_native() -> tuple[Engine | None, ImportError | None]:
    """Return the native engine, or None and the reason why it cannot be loaded."""
    try:
        from . import _native
    except ImportError as error:
        return None, error
    return _native, None


@cache
def _note_fallback() -> None:
    """Log, once, that the native engine is installed and another one serves."""
    _native, error = _load_native()
    if error is not None and not (isinstance(error, ModuleNotFoundError) and error.name == _NATIVE):
        logger.warning(
            "jsonschema-rs is installed and cannot be loaded, so the Python schema engine is"
            " used: %s",
            error,
        )
