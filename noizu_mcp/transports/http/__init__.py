"""Streamable HTTP, and the host that serves it."""
