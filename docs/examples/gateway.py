"""A gateway: two servers behind one, with a tool of its own.

    noizu-mcp list --all docs/examples/gateway.py
    noizu-mcp call docs/examples/gateway.py weather_get_weather city=Oslo

The first server runs in this process, the second as a command of its own.
"""

import sys
from pathlib import Path

from noizu_mcp import Context, Remote, Server, Stdio

HERE = Path(__file__).parent


async def servers(ctx: Context) -> list[str]:
    """Name the servers behind this one."""
    return [provider.name for provider in ctx.server.providers]


class Gateway(Server, name="gateway", version="1.0.0"):
    tools = [servers]
    providers = [
        Remote(HERE / "weather.py", prefix="weather"),
        Remote(
            Stdio(sys.executable, "-m", "noizu_mcp", "run", str(HERE / "prompts.py")),
            prefix="prompts",
        ),
    ]


if __name__ == "__main__":
    Gateway().run()
