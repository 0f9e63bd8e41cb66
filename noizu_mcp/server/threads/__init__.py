"""The threads of sync handlers: shared fairly, and bounded where they outlive their calls."""
