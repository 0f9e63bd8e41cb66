"""From a value that a schema refuses to lines that a model can act on."""
