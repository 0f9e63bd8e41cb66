"""Streamable HTTP: the ASGI application, and serving it on hypercorn."""
