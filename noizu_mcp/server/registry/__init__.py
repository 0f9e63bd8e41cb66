"""Registrations: what a server offers, its options, and the checks of its class."""
