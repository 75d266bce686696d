"""The native forest engine: a compiled grower and what surrounds it."""
