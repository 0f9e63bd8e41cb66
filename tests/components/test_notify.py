"""`ctx.notify`: what a handler tells all clients goes through its server."""

from noizu_mcp.components._context import Notify


class Recorder:
    """A server that notes what it is asked to tell."""

    def __init__(self):
        self.told = []

    def notify_changed(self, kind):
        self.told.append(kind)

    def notify_resource_updated(self, uri):
        self.told.append(uri)


def test_each_list_and_each_resource_has_its_notice():
    """Handlers need no server of their own to say what changed."""
    server = Recorder()
    notify = Notify(server)
    notify.tools()
    notify.prompts()
    notify.resources()
    notify.resource_updated("file:///x")

    assert server.told == ["tools", "prompts", "resources", "file:///x"]
