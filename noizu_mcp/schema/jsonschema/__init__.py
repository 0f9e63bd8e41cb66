"""JSON Schema itself: keywords, references, dialects, bounds, and violations in words."""
