"""Authorization: verified tokens of a server, credentials of a client (RFC 6750, 9728, OAuth 2.1).

May import: types, jsonrpc. PyJWT and httpx2 are loaded with the first verifier that needs them, the
strategies of clients on first use.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._errors import InsufficientScope as InsufficientScope
from .._errors import InvalidToken as InvalidToken
from .._errors import VerifierUnavailable as VerifierUnavailable
from .._util import late as _late
from .._util import publish as _publish
from ..types import Principal as Principal
from ..types import RequireScopes as RequireScopes
from ._api_keys import APIKeyVerifier as APIKeyVerifier
from ._api_keys import StaticVerifier as StaticVerifier
from ._api_keys import api_key_digest as api_key_digest
from ._bearer import BearerAuth as BearerAuth
from ._bearer import Challenge as Challenge
from ._challenge import AuthChallenge as AuthChallenge
from ._challenge import format_challenge as format_challenge
from ._challenge import parse_challenges as parse_challenges
from ._fetch import Fetcher as Fetcher
from ._fetch import FetchError as FetchError
from ._fetch import FetchRequest as FetchRequest
from ._fetch import FetchResponse as FetchResponse
from ._fetch import HTTPFetcher as HTTPFetcher
from ._introspection import IntrospectionVerifier as IntrospectionVerifier
from ._jwt import CompoundJWTVerifier as CompoundJWTVerifier
from ._jwt import JWTVerifier as JWTVerifier
from ._verifier import AnyVerifier as AnyVerifier
from ._verifier import AuthRequest as AuthRequest
from ._verifier import TokenVerifier as TokenVerifier

_LATE = {
    ".client": (
        "AuthStrategy Bearer ClientCredentials ClientRequest CredentialStore Credentials "
        "EnterpriseManaged FileStore KeyringStore MachineOptions MemoryStore OAuth "
        "PrivateKeyJWT ProtectedServer Refusal WorkloadIdentity"
    ),
}

if _TYPE_CHECKING:
    from .client import AuthStrategy as AuthStrategy
    from .client import Bearer as Bearer
    from .client import ClientCredentials as ClientCredentials
    from .client import ClientRequest as ClientRequest
    from .client import Credentials as Credentials
    from .client import CredentialStore as CredentialStore
    from .client import EnterpriseManaged as EnterpriseManaged
    from .client import FileStore as FileStore
    from .client import KeyringStore as KeyringStore
    from .client import MachineOptions as MachineOptions
    from .client import MemoryStore as MemoryStore
    from .client import OAuth as OAuth
    from .client import PrivateKeyJWT as PrivateKeyJWT
    from .client import ProtectedServer as ProtectedServer
    from .client import Refusal as Refusal
    from .client import WorkloadIdentity as WorkloadIdentity
else:
    __getattr__, __dir__ = _late(globals(), _LATE)

_publish(globals(), _LATE)
