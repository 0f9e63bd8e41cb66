"""The client side of Streamable HTTP: many HTTP requests that look like one message stream."""
