"""The JSON Schema that a declaration stands for, as a model reads it."""
