"""Violations of a value explained: lines that a model can act on."""
