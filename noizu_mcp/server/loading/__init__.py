"""Servers named by a text: found in a module or a file, and made."""
