"""Providers of a server: their lists for each caller, their health, and mounted servers."""
