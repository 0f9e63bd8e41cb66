"""Registrations: the components of a server, checked and bound to instances."""
