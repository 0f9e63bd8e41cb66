"""Streamable HTTP, the client's side: many requests that look like one stream of messages."""
