"""Python declarations and JSON Schema: forms, engines and reports."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._errors import SchemaUnsupported as SchemaUnsupported
from .._util import late as _late
from .._util import publish as _publish
from ._check import check_schema as check_schema
from ._check import read_schema as read_schema
from ._declared_schema import Shape as Shape
from ._declared_schema import read_fields as read_fields
from ._declared_schema import read_parameters as read_parameters
from ._declared_schema import read_raw as read_raw
from ._declared_schema import read_shape as read_shape
from ._schema_class import Schema as Schema
from ._schema_class import to_problems as to_problems
from .convert._dump import dump_value as dump_value
from .declare._annotations import output_annotation as output_annotation
from .declare._classes import has_fields as has_fields
from .declare._docstring import docstring_parameters as docstring_parameters
from .declare._docstring import docstring_summary as docstring_summary
from .declare._field import Marker as Marker
from .declare._field import argument as argument
from .declare._field import field as field
from .declare._handles import HANDLE as HANDLE
from .declare._handles import is_handle as is_handle
from .declare._handles import take_handle as take_handle
from .declare._resolve import NO_TYPES as NO_TYPES
from .declare._resolve import Types as Types
from .declare._resolve import type_arguments as type_arguments
from .declare._resolve import with_types as with_types
from .engines._compile import CompiledSchema as CompiledSchema
from .engines._compile import compile_schema as compile_schema
from .engines._engine import choose_engine as choose_engine
from .jsonschema._document import Document as Document
from .jsonschema._document import read_document as read_document
from .jsonschema._keywords import or_null as or_null
from .jsonschema._keywords import ordered as ordered
from .jsonschema._keywords import subschemas as subschemas
from .jsonschema._values import find_not_json as find_not_json
from .jsonschema._violation import Fault as Fault
from .jsonschema._violation import Violation as Violation
from .publish._headers import header_faults as header_faults
from .publish._headers import header_paths as header_paths
from .report._messages import describe as describe

# The forms of elicitation load with the first question to a user, the reader of text with the first
# value that its schema refuses, the schemas of peers with the client, handles with the first one.
_LATE = {
    ".fields": "fields",
    "._handle_form": "HandleForm define_handle read_handle",
    "._peer_schema": "PeerSchema",
    ".convert._coerce": "coerce_text",
    "._elicitation_form": "flat_shape older_form",
}

if _TYPE_CHECKING:
    from . import fields as fields
    from ._elicitation_form import flat_shape as flat_shape
    from ._elicitation_form import older_form as older_form
    from ._handle_form import HandleForm as HandleForm
    from ._handle_form import define_handle as define_handle
    from ._handle_form import read_handle as read_handle
    from ._peer_schema import PeerSchema as PeerSchema
    from .convert._coerce import coerce_text as coerce_text
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
