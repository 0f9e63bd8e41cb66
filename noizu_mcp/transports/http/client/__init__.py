"""The client side of Streamable HTTP: HTTP requests as one message stream."""
