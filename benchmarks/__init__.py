"""Measures this package beside its peers: `python -m benchmarks`; README.md has the method."""
