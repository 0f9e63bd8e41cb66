"""The trio engine: one peer on one stream, either end."""

from ._abc import MessageStream as MessageStream
from ._exchange import Collector as Collector
from ._exchange import Delivery as Delivery
from ._exchange import Exchange as Exchange
from ._link import Handler as Handler
from ._link import Job as Job
from ._link import Link as Link
from ._link import Peer as Peer
from ._outbox import Outbox as Outbox
from ._waiters import OnProgress as OnProgress
