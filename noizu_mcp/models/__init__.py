"""Tools and results in the formats of the APIs of models."""

from .._util import publish as _publish
from ._compose import SchemaLoss as SchemaLoss
from ._model_tools import ModelCall as ModelCall
from ._model_tools import ModelTools as ModelTools
from ._model_tools import tools_for as tools_for
from ._providers import PROVIDERS as PROVIDERS
from ._providers import ProviderName as ProviderName
from ._results import result_for as result_for

_publish(globals())
