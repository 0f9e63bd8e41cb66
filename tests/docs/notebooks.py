"""Runs the code cells of a notebook in a kernel of its own, as Jupyter does."""

import json
import os
from pathlib import Path
from typing import Any


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    """Return the code cells of a notebook, in order."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def shown(output: dict[str, Any]) -> str:
    """Return the text of an output, of the kernel or stored in a notebook."""
    if output.get("name") == "stderr":
        return ""
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    return ("".join(text) if isinstance(text, list) else str(text)).strip()


def outputs_of(notebook: Path, folder: Path) -> list[str]:
    """Run a notebook, and return the output text of each code cell.

    Args:
        notebook: The file.
        folder: The working directory of the kernel.

    Returns:
        A text for each code cell.

    Raises:
        AssertionError: A cell raised.
    """
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    quiet = {"FASTMCP_LOG_LEVEL": "CRITICAL"}  # it writes records into the output of a cell
    manager.start_kernel(cwd=str(folder), env={**os.environ, **quiet})
    client = manager.blocking_client()
    client.start_channels()
    texts = []
    try:
        client.wait_for_ready(timeout=60)
        for cell in code_cells(notebook):
            parts: list[str] = []
            reply = client.execute_interactive(
                "".join(cell["source"]),
                timeout=60,
                output_hook=lambda message, parts=parts: parts.append(shown(message["content"])),
            )
            assert reply["content"]["status"] == "ok", "\n".join(reply["content"]["traceback"])
            texts.append("\n".join(part for part in parts if part))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return texts
