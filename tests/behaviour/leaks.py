"""Leftovers of a connection; checked in the test and in the child process alike."""

from typing import Any

import trio


def _threads(server: Any) -> int:
    return server.threads.borrowed_tokens + server.task_threads.borrowed_tokens


async def leaks(connection: Any) -> list[str]:
    """List what remains of a connection whose `run` has ended."""
    server, peer, feed = connection.running.server, connection.peer, connection.feed
    with trio.move_on_after(60):
        while _threads(server):  # noqa: ASYNC110 - nothing tells of it
            await trio.sleep(0.001)  # abandoned threads end by themselves, soon
    handles = vars(connection.running).get("handles")
    counts = {
        "locks of handles": 0 if handles is None else len(handles._locks._queues),
        "requests in flight": len(connection.requests),
        "pending requests": len(connection.pending),
        "inbound requests": peer.ledger.inbound,
        "outbound requests": peer.ledger.outbound,
        "listen requests": len(feed._listening) + len(feed.subscriptions._listening),
        "subscriptions": feed.subscriptions._used,
        "listeners of the bus": len(server.bus._listeners),
        "threads": _threads(server),
        "slots": sum(limiter.borrowed_tokens for limiter in server.registry._slots.values()),
        "running tasks": len(connection.running.tasks._running),
        "tasks with followers": len(connection.running.tasks._followers),
        "queued messages": len(connection.channel._queue),
    }
    return [f"{count} {name}" for name, count in counts.items() if count]


def http_leaks(server: Any, endpoint: Any) -> list[str]:
    """List what remains of an endpoint whose application has ended."""
    counts = {
        "sessions": len(endpoint.sessions),
        "requests": endpoint.open,
        "streams": len(endpoint.app.streams),
        "tasks with followers": len(endpoint.app.running.tasks._followers),
        "listeners of the bus": len(server.bus._listeners),
        "slots": sum(limiter.borrowed_tokens for limiter in server.registry._slots.values()),
    }
    return [f"{count} {name}" for name, count in counts.items() if count]
