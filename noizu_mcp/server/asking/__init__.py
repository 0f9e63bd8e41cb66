"""Questions to the client in the middle of a handler, and the state that travels with them."""
