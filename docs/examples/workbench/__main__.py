"""Serve a workbench over HTTP, to those who have a key."""

import os
import sys

from prometheus_client import Gauge

from noizu_mcp.auth import APIKeyVerifier, BearerAuth, Principal
from noizu_mcp.telemetry import Metrics

from .server import Workbench


def main() -> None:
    try:
        server = Workbench()
    except (OSError, ValueError) as error:
        sys.exit(f"settings.toml cannot be used: {error}")
    keys = server.parts.settings.keys
    if not keys:
        sys.exit("settings.toml has no [keys]: no caller would be accepted, so nothing is served")
    callers = {digest: Principal(subject=name, issuer="workbench") for name, digest in keys.items()}
    port = int(os.environ.get("PORT", "8000"))
    auth = BearerAuth(
        APIKeyVerifier(callers), resource=f"http://127.0.0.1:{port}/mcp", authorization_servers=()
    )
    metrics = Metrics(server)
    # Counted when it is read.
    tools = Gauge("workbench_tools", "Skills and enabled workflows.", registry=metrics.registry)
    tools.set_function(server.count_tools)
    server.run_http(port=port, auth=auth, metrics=metrics)


if __name__ == "__main__":
    main()
