"""Tasks: calls that outlive their requests (the extension `io.modelcontextprotocol/tasks`)."""
