"""What users subclass, and what a server makes of it. May import: root, types, schema."""

from .._util import publish
from ._arguments import prepare as prepare
from ._asking import ELICIT_TIMEOUT as ELICIT_TIMEOUT
from ._asking import SAMPLE_TIMEOUT as SAMPLE_TIMEOUT
from ._context import Context as Context
from ._context import retry as retry
from ._declare import ComponentMeta as ComponentMeta
from ._declare import Declaration as Declaration
from ._declare import is_abstract as is_abstract
from ._declare import kind_of as kind_of
from ._mcp import mcp as mcp
from ._registration import Registration as Registration
from ._registration import check_registrations as check_registrations
from ._registration import expand as expand
from ._registration import tool as tool
from ._returns import FAILED as FAILED
from ._returns import error_result as error_result
from ._returns import to_result as to_result
from ._spec import ToolPlan as ToolPlan
from ._spec import ToolSpec as ToolSpec
from ._tool import Tool as Tool
from ._toolkit import Toolkit as Toolkit

__all__ = [
    "ELICIT_TIMEOUT",
    "FAILED",
    "SAMPLE_TIMEOUT",
    "ComponentMeta",
    "Context",
    "Declaration",
    "Registration",
    "Tool",
    "ToolPlan",
    "ToolSpec",
    "Toolkit",
    "check_registrations",
    "error_result",
    "expand",
    "is_abstract",
    "kind_of",
    "mcp",
    "prepare",
    "retry",
    "to_result",
    "tool",
]

publish(globals())
