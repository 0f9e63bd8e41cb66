"""One end of a connection, without a server or a client behind it."""

from noizu_mcp import Limits
from noizu_mcp.engine import Dispatcher, InboundRequest, MessageLoop
from noizu_mcp.protocol import ServerPeer


class Served(Dispatcher):
    """Passes each request to a function of the test, and records everything else."""

    def __init__(self, stream, handle=None, limits=None):
        self.peer = ServerPeer(100)
        super().__init__(self.peer)
        self.stream = stream
        self.log = []
        self.loop = MessageLoop(stream, self, limits or Limits())
        self._handle = handle

    def spawn(self, work):
        self.loop.spawn(work)

    def observe_sent(self, method, size):
        raise AssertionError

    def begin(self, event, channel, batch=None):
        inbound = InboundRequest(self, *event, channel, batch=batch)
        if self._handle is None:
            inbound.send_result({})
            return inbound, None
        job = self._handle(inbound)
        if not inbound.answered:
            self.requests[inbound.id] = inbound
        return inbound, job

    def receive_notice(self, notification):
        self.log.append(notification.method)
