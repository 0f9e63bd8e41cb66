"""Handles while a server is served: their records, and the calls that use them."""
