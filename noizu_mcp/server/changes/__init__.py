"""Changes: from one call on the server to the notices that each peer asked for."""
