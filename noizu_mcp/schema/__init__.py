"""Python declarations and JSON Schema: forms, engines and reports."""

from ._check import check_schema as check_schema
from ._check import read_schema as read_schema
from ._engine import CompiledSchema as CompiledSchema
from ._engine import compile_schema as compile_schema
from ._fault import Fault as Fault
from ._report import describe as describe
from ._violation import Violation as Violation

__all__ = [
    "CompiledSchema",
    "Fault",
    "Violation",
    "check_schema",
    "compile_schema",
    "describe",
    "read_schema",
]
