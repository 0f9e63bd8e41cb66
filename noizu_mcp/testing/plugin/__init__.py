"""The part of the pytest plugin that is loaded with the first test that uses it.

The hooks and fixtures are in `noizu_mcp._pytest_plugin`.
"""

from ..._util import publish as _publish
from ._connections import ConnectArguments as ConnectArguments
from ._connections import open_client as open_client
from ._connections import prepare as prepare
from ._connections import reason_to_skip as reason_to_skip
from ._variants import VIRTUAL_CLOCKS as VIRTUAL_CLOCKS
from ._variants import Variant as Variant
from ._variants import choose_variants as choose_variants

_publish(globals())
