"""Registrations of a server, its options, and the checks of its class."""
