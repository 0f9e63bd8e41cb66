"""Updates of a resource with scopes are sent to readers that hold them at that time."""

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from noizu_mcp import ClientHandler, Resource, connect, resource
from noizu_mcp.auth import Principal

SECRET, PUBLIC = "docs://secret", "docs://public"
UPDATED = "notifications/resources/updated"


class Public(Resource, uri=PUBLIC, subscribable=True):
    """No secret, at first."""

    def read(self):
        return "hello"


class Watcher:
    """A session whose requests have different tokens."""

    def __init__(self, http, server, headers):
        self.http = http
        self.server = server
        self.headers = headers

    async def subscribe(self, uri, token):
        body = {"jsonrpc": "2.0", "id": uri, "method": "resources/subscribe"}
        body["params"] = {"uri": uri}
        answer = await self.http.send("POST", token=token, body=body, headers=self.headers)
        assert answer.status == 200

    async def read(self, token, last=None):
        """Open the standing stream."""
        headers = self.headers if last is None else {**self.headers, "last-event-id": last}
        stream = self.http.open("GET", token=token, headers=headers)
        await stream.until(lambda each: each.status == 200)
        return stream

    async def touch(self, *uris):
        for uri in uris:
            self.server.notify_resource_updated(uri)
        await trio.sleep(1)  # longer than changes are merged


def heard(stream):
    return [each["params"]["uri"] for each in stream.events if each["method"] == UPDATED]


def ids(stream):
    lines = stream.body.decode().splitlines()
    return [line[4:] for line in lines if line.startswith("id: ")]


@pytest.fixture
async def watcher(autojump_clock, serve_app, bearer, docs):
    async with serve_app(docs, auth=bearer()) as http:
        headers = await http.initialize("ada-writes")
        watcher = Watcher(http, docs, headers)
        for uri in (SECRET, PUBLIC):
            await watcher.subscribe(uri, "ada-writes")
        yield watcher


async def test_a_reader_with_fewer_scopes_does_not_hear(watcher):
    """It gets the other updates; a reader with the scopes gets both."""
    narrow = await watcher.read("ada-reads")
    await watcher.touch(SECRET, PUBLIC)
    assert heard(narrow) == [PUBLIC]
    wide = await watcher.read("ada-writes")
    await watcher.touch(SECRET)
    assert heard(wide)[-1] == SECRET
    assert heard(narrow) == [PUBLIC]


async def test_what_was_kept_is_not_for_every_reader(watcher):
    """Neither unread nor resent updates go to a reader without the scopes."""
    await watcher.touch(SECRET, PUBLIC)
    narrow = await watcher.read("ada-reads")
    await trio.testing.wait_all_tasks_blocked()
    assert heard(narrow) == [PUBLIC]
    first = ids(narrow)[0].partition("-")[0] + "-0"
    for token, expected in (("ada-reads", [PUBLIC]), ("ada-writes", [SECRET, PUBLIC])):
        again = await watcher.read(token, first)
        await trio.testing.wait_all_tasks_blocked()
        assert heard(again) == expected


async def test_a_reader_who_gets_a_better_token_comes_back_with_it(
    autojump_clock, serve_app, bearer, docs
):
    """A subscription that needs a better token than its stream's ends the stream normally."""
    async with serve_app(docs, auth=bearer()) as http:
        watcher = Watcher(http, docs, await http.initialize("ada-reads"))
        narrow = await watcher.read("ada-reads")
        await watcher.subscribe(PUBLIC, "ada-reads")
        await trio.testing.wait_all_tasks_blocked()
        assert not narrow.complete
        await watcher.subscribe(SECRET, "ada-writes")
        with trio.fail_after(60):
            await narrow.until(lambda each: each.complete)
        await watcher.touch(SECRET)
        wide = await watcher.read("ada-writes", ids(narrow)[-1])
        await trio.testing.wait_all_tasks_blocked()
        assert heard(wide) == [SECRET]


async def test_a_reader_who_holds_enough_stays(autojump_clock, serve_app, bearer, docs):
    """Subscriptions that its token allows do not end the stream, whether or not it is read."""
    async with serve_app(docs, auth=bearer()) as http:
        watcher = Watcher(http, docs, await http.initialize("ada-writes"))
        await watcher.subscribe(SECRET, "ada-writes")
        wide = await watcher.read("ada-writes")
        await watcher.subscribe("docs://secret", "ada-writes")
        await watcher.subscribe(PUBLIC, "ada-writes")
        await watcher.touch(SECRET)
        assert not wide.complete
        assert heard(wide) == [SECRET]


class Ear(ClientHandler):
    """Keeps the updates that come."""

    def __init__(self):
        self.seen = []

    async def handle_notification(self, method, params):
        self.seen.append(params["uri"])


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_scopes_count_at_the_time_of_the_change(autojump_clock, docs, version):
    """On a pipe and in a listen request, too, the scopes at the time of the change count."""
    seen = []
    for scopes in (["docs:read"], ["docs:read", "docs:late"]):
        ear = Ear()
        who = Principal(subject="ada", scopes=scopes)
        docs.resources.replace(Public)
        async with (
            connect(docs, version=version, principal=who, handler=ear) as client,
            watching(client, version),
        ):
            for needed in (None, "docs:late"):
                docs.resources.replace(resource(Public, requires=needed))
                docs.notify_resource_updated(PUBLIC)
                await trio.sleep(1)
        seen.append(ear.seen)
    assert seen == [[PUBLIC], [PUBLIC, PUBLIC]]


@asynccontextmanager
async def watching(client, version):
    if version == "2026-07-28":
        async with client.listen(uris=[PUBLIC]):
            yield
    else:
        await client.subscribe(PUBLIC)
        yield
