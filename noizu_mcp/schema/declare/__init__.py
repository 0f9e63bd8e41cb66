"""Python declarations of a schema: fields, classes, types, plain data."""
