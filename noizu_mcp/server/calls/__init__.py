"""Calls of the author's code: validation, limits of time and number, scopes, results."""
