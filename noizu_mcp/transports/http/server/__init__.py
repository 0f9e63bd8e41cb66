"""Streamable HTTP, the server's side: an ASGI application."""
