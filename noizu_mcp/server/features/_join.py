"""What a node shares with the other nodes of its server. Loaded where there are other nodes."""

from functools import partial
from typing import cast

from .._running import Joined, RunningServer
from ..asking._claims import StateClaims
from ..changes._shared import SharedChanges
from ..nodes._node import Node
from ..tasks._shared_tasks import SharedTasks
from ._tasks import run_again


def join(running: RunningServer) -> Joined:
    """Share changes, states and tasks with the other nodes.

    Args:
        running: The server at this node.
    """
    node, server = cast("Node", running.node), running.server
    options = server.options
    return Joined(
        SharedChanges(node, server.bus, running.merger, running.portal.run_soon),
        StateClaims(node, running.parked, server.sealer, options.state_ttl),
        # Also without a tool that has tasks: one may be added while the server runs.
        SharedTasks(node, running.tasks, options.limits, partial(run_again, running)),
    )
