"""Raw connections to servers: every byte is examined, and any message can be sent."""

from ..._util import publish as _publish
from ._conversation import SESSION as SESSION
from ._conversation import VERSION as VERSION
from ._conversation import Conversation as Conversation
from ._exchange import Exchange as Exchange
from ._exchange import Link as Link
from ._exchange import Notes as Notes
from ._exchange import Receiver as Receiver
from ._exchange import fault_of as fault_of
from ._pipe import EXIT_TIMEOUT as EXIT_TIMEOUT
from ._pipe import PipeLink as PipeLink
from ._pipe import open_pipe as open_pipe
from ._pipe import start_pipe as start_pipe
from ._stream import MemoryLink as MemoryLink
from ._stream import StreamLink as StreamLink
from ._web import WebLink as WebLink

_publish(globals())
