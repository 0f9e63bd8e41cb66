"""Python declarations and JSON Schema: forms, engines and reports."""

from .._util import publish
from . import fields as fields
from ._annotation import output_annotation as output_annotation
from ._check import check_schema as check_schema
from ._check import read_schema as read_schema
from ._docstring import docstring_parameters as docstring_parameters
from ._docstring import docstring_summary as docstring_summary
from ._dump import dump_value as dump_value
from ._engine import CompiledSchema as CompiledSchema
from ._engine import compile_schema as compile_schema
from ._fault import Fault as Fault
from ._flat import flat_for as flat_for
from ._flat import flat_shape as flat_shape
from ._headers import header_faults as header_faults
from ._headers import header_paths as header_paths
from ._marker import Marker as Marker
from ._marker import argument as argument
from ._marker import field as field
from ._report import describe as describe
from ._schema_class import Schema as Schema
from ._schema_class import to_problems as to_problems
from ._shape import Shape as Shape
from ._shape import read_fields as read_fields
from ._shape import read_parameters as read_parameters
from ._shape import read_raw as read_raw
from ._shape import read_shape as read_shape
from ._violation import Violation as Violation

__all__ = [
    "CompiledSchema",
    "Fault",
    "Marker",
    "Schema",
    "Shape",
    "Violation",
    "argument",
    "check_schema",
    "compile_schema",
    "describe",
    "docstring_parameters",
    "docstring_summary",
    "dump_value",
    "field",
    "fields",
    "flat_for",
    "flat_shape",
    "header_faults",
    "header_paths",
    "output_annotation",
    "read_fields",
    "read_parameters",
    "read_raw",
    "read_schema",
    "read_shape",
    "to_problems",
]

publish(globals())
