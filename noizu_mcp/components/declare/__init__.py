"""Class statements: options, marks, methods and schemas, read and checked as a whole."""
