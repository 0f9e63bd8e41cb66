"""Handles while a server is served: where they are kept, and the calls that use them."""
