"""Events for listeners: one where a request begins, one where it ends, one for a notice."""
