"""The contract of a server: a file with everything that it lists, and later changes."""

from ..._util import publish as _publish
from ._catalogue import KINDS as KINDS
from ._catalogue import ListKind as ListKind
from ._catalogue import fetch as fetch
from ._catalogue import read as read
from ._catalogue import save as save
from ._changes import Change as Change
from ._changes import compare as compare
from ._check import ContractError as ContractError
from ._check import check as check
from ._check import write as write

_publish(globals())
