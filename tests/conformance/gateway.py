"""A gateway to the everything server, without prefixes: the conformance suite uses its names.

The server behind it is served in memory, on the revision in the variable NOIZU_MCP_BEHIND.
"""

import os
from pathlib import Path

from noizu_mcp import Remote, Server

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "docs" / "examples" / "everything.py"


class Gateway(Server, name="everything-gateway", version="1.0.0", task_poll_interval=0.1):
    """Everything, once removed."""

    providers = [
        # The suite leaves many questions unanswered, each of which keeps its connection.
        Remote(str(SERVER), version=os.environ.get("NOIZU_MCP_BEHIND"), connections=32)
    ]
