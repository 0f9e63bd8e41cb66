"""Credentials of a client: strategies for `connect(url, auth=…)`.

May import: the files at the root of `auth`, which know nothing of clients.
"""

from ..._util import publish as _publish
from ._request_auth import RequestAuth as RequestAuth
from ._request_auth import explain_refusal as explain_refusal
from ._request_auth import read_challenges as read_challenges
from ._strategy import AuthStrategy as AuthStrategy
from ._strategy import Bearer as Bearer
from ._strategy import ClientRequest as ClientRequest
from ._strategy import Credentials as Credentials
from ._strategy import ProtectedServer as ProtectedServer
from ._strategy import Refusal as Refusal

_publish(globals())
