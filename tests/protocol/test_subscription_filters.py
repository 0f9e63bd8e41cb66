"""The change notices that a connection gets."""

import json

import pytest

from noizu_mcp import McpError
from noizu_mcp.jsonrpc import INVALID_PARAMS, Notification, encode
from noizu_mcp.protocol import SubscriptionNotice, Subscriptions

ALL = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["b:", "a:", "b:"],
}
TAG = "io.modelcontextprotocol/subscriptionId"


def anybody(_):
    return True


def listen(interests, id_=1, wanted=EVERYTHING, capabilities=ALL):
    listening = interests.read(id_, {"notifications": wanted}, capabilities)
    interests.listen(listening)
    return listening


@pytest.mark.parametrize(
    ("wanted", "capabilities", "agreed"),
    [
        (EVERYTHING, ALL, {**EVERYTHING, "resourceSubscriptions": ["a:", "b:"]}),
        (EVERYTHING, {}, {}),
        ({}, ALL, {}),
        ({"toolsListChanged": False, "promptsListChanged": None}, ALL, {}),
        (
            {"toolsListChanged": True, "resourceSubscriptions": None},
            ALL,
            {"toolsListChanged": True},
        ),
        ({"resourceSubscriptions": []}, ALL, {}),
        ({"taskIds": ["x"], "unknown": True}, ALL, {}),
        (EVERYTHING, {"tools": {"listChanged": True}}, {"toolsListChanged": True}),
        (EVERYTHING, {"tools": {"listChanged": False}, "prompts": {}, "resources": None}, {}),
        (
            EVERYTHING,
            {"resources": {"subscribe": True}},
            {"resourceSubscriptions": ["a:", "b:"]},
        ),
        (EVERYTHING, {"resources": {"listChanged": True}}, {"resourcesListChanged": True}),
    ],
)
def test_agreed(wanted, capabilities, agreed):
    """Offered kinds are accepted; others are left out, not refused."""
    assert listen(Subscriptions(10), 1, wanted, capabilities).agreed() == agreed


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"resourceSubscriptions": "a:"}},
        {"notifications": {"resourceSubscriptions": [1]}},
        {"notifications": {"resourceSubscriptions": {}}},
        {"notifications": {"resourceSubscriptions": False}},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"promptsListChanged": 1}},
        {"notifications": {"resourcesListChanged": {}}},
    ],
)
def test_no_filter(params):
    """A malformed filter is refused, and uses no room."""
    interests = Subscriptions(1)
    with pytest.raises(McpError) as caught:
        interests.read(1, params, ALL)
    assert caught.value.code == INVALID_PARAMS
    listen(interests, wanted={})


@pytest.mark.parametrize("id_", [1, "1", 0, "", 'a"b'])
@pytest.mark.parametrize("params", [None, {}, {"uri": "a:"}, {"x": {"y": [1]}, "z": "\u00e9"}])
def test_notices(id_, params):
    """Each has its subscription id with its JSON type; notices of a session have none."""
    notice = SubscriptionNotice("notifications/x", params)
    for _ in range(2):
        tagged, plain = (json.loads(notice.encode(each)) for each in (id_, None))
        assert tagged["params"].pop("_meta") == {TAG: id_}
        assert type(json.loads(notice.encode(id_))["params"]["_meta"][TAG]) is type(id_)
        assert tagged == {"jsonrpc": "2.0", "method": "notifications/x", "params": params or {}}
        expected = Notification("notifications/x", params)
        assert plain == json.loads(encode(expected))


def test_changed():
    """A list change reaches its subscribers: sessions after the handshake, and listen requests."""
    interests = Subscriptions(10)
    assert interests.changed("tools") == []
    listen(interests, 1, {"toolsListChanged": True})
    listen(interests, 2, {"promptsListChanged": True})
    interests.pushed = True
    assert interests.changed("tools") == [None, 1]
    assert interests.changed("prompts") == [None, 2]
    interests.drop(1)
    assert interests.changed("tools") == [None]


def test_updated():
    """A resource update reaches the watchers of this resource."""
    interests = Subscriptions(10)
    interests.watch("a:")
    listen(interests, 1, {"resourceSubscriptions": ["a:", "c:"]})
    assert interests.updated("a:", anybody) == [None, 1]
    assert interests.updated("b:", anybody) == []
    interests.unwatch("a:")
    interests.unwatch("a:")
    assert interests.updated("a:", anybody) == [1]


def test_each_listener_is_asked_for():
    """`may_be_notified` is called with the id of each listen request, and None for the session."""
    interests = Subscriptions(10)
    interests.watch("a:")
    for id_ in (1, 2):
        wanted = {"resourceSubscriptions": ["a:"], "taskIds": ["t"]}
        interests.listen(interests.read(id_, {"notifications": wanted}, TASKS))
    updated = [interests.updated("a:", {each}.__contains__) for each in (None, 2)]
    assert updated == [[None], [2]]
    assert interests.task_changed("t", {2}.__contains__) == [2]


def test_limit():
    """Listen requests and watched resources share one limit, and release their share."""
    interests = Subscriptions(5)
    listen(interests, 1)  # one, and two resources; the repeated one counts once
    interests.watch("x:")
    interests.watch("x:")
    interests.watch("y:")
    for attempt in (lambda: interests.watch("z:"), lambda: listen(interests, 2, {})):
        with pytest.raises(McpError, match="More than 5 subscriptions on this connection"):
            attempt()
    interests.watch("x:")
    interests.unwatch("x:")
    interests.unwatch("nobody:")
    interests.watch("z:")
    interests.drop(1)
    interests.drop(1)
    listen(interests, 2)
    with pytest.raises(McpError):
        listen(interests, 3, {})


def test_too_much_at_once():
    """A filter that can never fit is refused when it is read, before any hook runs."""
    interests = Subscriptions(3)
    with pytest.raises(McpError, match="More than 3 subscriptions on this connection"):
        interests.read(1, {"notifications": {"resourceSubscriptions": ["a:", "b:", "c:"]}}, ALL)
    listen(interests, 1, {"resourceSubscriptions": ["a:", "b:", "a:"]})


@pytest.mark.parametrize(
    ("id_", "more"),
    [
        (
            1,
            {
                "notifications": {
                    "resourceSubscriptions": ["a:" + "x" * 90_000, "b:" + "x" * 180_000]
                }
            },
        ),
        (1, {"_meta": {"x": "x" * 263_000}}),
        (1, {"unknown": [[]] * 1100}),
        ("x" * 263_000, {}),
    ],
    ids=["filter", "meta", "values", "id"],
)
def test_what_is_kept_is_bounded(id_, more):
    """The memory of an open listen request is counted; a filter without room is refused."""
    interests = Subscriptions(10)
    with pytest.raises(
        McpError, match=r"^subscriptions/listen may have 262144 bytes of JSON and 2010 values "
    ) as caught:
        interests.read(id_, {"notifications": {}, **more}, ALL)
    assert caught.value.code == INVALID_PARAMS
    uris = [f"test:{n}{'x' * 250}" for n in range(999)]
    interests = Subscriptions(1000)
    assert listen(interests, 1, {"resourceSubscriptions": uris}).size == 1000


def test_what_ended():
    """Closing a subscription returns its resources, once."""
    interests = Subscriptions(10)
    listen(interests, 1, {"resourceSubscriptions": ["a:", "b:"]})
    interests.watch("a:")
    assert (interests.watches("a:"), interests.watches("b:")) == (True, False)
    assert interests.drop(1).uris == {"a:", "b:"}
    assert interests.drop(1) is None
    assert interests.close() == {"a:"}
    assert interests.close() == frozenset()
    assert interests.updated("a:", anybody) == []


TASKS = {**ALL, "extensions": {"io.modelcontextprotocol/tasks": {}}}


def test_tasks():
    """Each listen request gets changes of its tasks, if the server has tasks."""
    interests = Subscriptions(10)
    one = listen(interests, 1, {"taskIds": ["b", "a", "a"]}, TASKS)
    listen(interests, "two", {"taskIds": ["b"], "toolsListChanged": True}, TASKS)
    assert one.agreed() == {"taskIds": ["a", "b"]}
    assert [interests.follows(task) for task in ("a", "b", "c")] == [True, True, False]
    assert interests.task_changed("b", anybody) == [1, "two"]
    assert interests.task_changed("a", anybody) == [1]
    assert interests.task_changed("c", anybody) == []
    interests.drop(1)
    assert not interests.follows("a")


def test_tasks_count():
    """They count like watched resources."""
    interests = Subscriptions(4)
    listen(interests, 1, {"taskIds": ["a", "b"], "resourceSubscriptions": ["x:"]}, TASKS)
    with pytest.raises(McpError, match="More than 4"):
        listen(interests, 2, {"taskIds": ["a"]}, TASKS)


@pytest.mark.parametrize("ids", ["a", [1], {}])
def test_wrong_ids_of_tasks(ids):
    """They are refused if the server has tasks."""
    with pytest.raises(McpError, match="taskIds must be a list of strings"):
        listen(Subscriptions(4), 1, {"taskIds": ids}, TASKS)
    assert listen(Subscriptions(4), 1, {"taskIds": ids}, ALL).agreed() == {}
