"""Methods that answer requests: their signatures, arguments and results."""
