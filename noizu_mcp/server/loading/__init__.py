"""Servers that are named by a text: imported from a module or a file, and made."""
