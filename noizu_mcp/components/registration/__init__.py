"""Registrations: what a server is given, and what it serves."""
