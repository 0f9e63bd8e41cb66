"""JSON Schema itself: keywords, documents and their faults, values, violations."""
