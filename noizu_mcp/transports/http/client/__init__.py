"""The client side of Streamable HTTP: HTTP requests as one message stream."""

from ...._util import publish as _publish
from ._event_reader import EventParser as EventParser
from ._event_reader import EventTooLarge as EventTooLarge

_publish(globals())
