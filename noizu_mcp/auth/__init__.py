"""Authorization of a resource server: verified tokens, challenges, metadata (RFC 6750, 9728).

May import: types, jsonrpc. PyJWT and httpx2 load with the first verifier that needs them.
"""

from .._errors import InsufficientScope as InsufficientScope
from .._errors import InvalidToken as InvalidToken
from .._errors import VerifierUnavailable as VerifierUnavailable
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

_publish(globals())
