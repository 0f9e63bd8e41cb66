"""Credentials of a client: strategies for `connect(url, auth=…)`.

May import: the files at the root of `auth`, which know nothing of clients.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..._util import late as _late
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

_LATE = {
    "._machines": (
        "ClientCredentials EnterpriseManaged MachineOptions PrivateKeyJWT WorkloadIdentity"
    ),
    "._stores": "CredentialStore FileStore KeyringStore MemoryStore",
    "._oauth": "OAuth",
}

if _TYPE_CHECKING:
    from ._machines import ClientCredentials as ClientCredentials
    from ._machines import EnterpriseManaged as EnterpriseManaged
    from ._machines import MachineOptions as MachineOptions
    from ._machines import PrivateKeyJWT as PrivateKeyJWT
    from ._machines import WorkloadIdentity as WorkloadIdentity
    from ._oauth import OAuth as OAuth
    from ._stores import CredentialStore as CredentialStore
    from ._stores import FileStore as FileStore
    from ._stores import KeyringStore as KeyringStore
    from ._stores import MemoryStore as MemoryStore
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
