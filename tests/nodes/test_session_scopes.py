"""Resources that require scopes, and readers without them, on several nodes."""

import trio

from noizu_mcp import Resource, Server, Toolkit, mcp
from noizu_mcp.auth import BearerAuth, StaticVerifier
from noizu_mcp.types import Principal

from ..kit.messages import call, message
from .fleet import KEYS, fleet, settled


class Secret(Resource, uri="shop://secret", requires="read", subscribable=True):
    """A resource that requires a scope."""

    def read(self) -> str:
        return "secret"


class Kit(Toolkit):
    @mcp
    async def changed(self, ctx) -> str:
        """Change the resource, and the tools."""
        ctx.notify.resource_updated("shop://secret")
        ctx.notify.tools()
        return "changed"


class Shop(Server, name="shop", version="1", state_keys=KEYS):
    tools = [Kit]
    resources = [Secret]


async def test_a_reader_without_the_scope_is_not_notified(autojump_clock):
    """It returned with another token; the list change reaches it."""
    tokens = {
        "full": Principal(subject="ann", scopes=["read"]),
        "less": Principal(subject="ann", scopes=[]),
    }
    auth = BearerAuth(
        StaticVerifier(tokens), resource="http://localhost/mcp", authorization_servers=[]
    )
    full, less = {"authorization": "Bearer full"}, {"authorization": "Bearer less"}
    async with fleet(Shop, auth=auth) as nodes:
        first, second = await nodes.session(headers=full)
        watched = message("resources/subscribe", {"uri": "shop://secret"}, 1)
        assert (await first.post(watched, full)).json["result"] == {}
        reader = second.get(None, **less)
        await settled()
        await first.post(call("changed"), full)
        with trio.fail_after(60):
            await reader.until(lambda it: len(it.messages) > 0)
        await trio.sleep(1)

    assert [each["method"] for each in reader.messages] == ["notifications/tools/list_changed"]
