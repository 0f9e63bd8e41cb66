"""Methods that answer requests: their signatures, what they are passed, what they return."""
