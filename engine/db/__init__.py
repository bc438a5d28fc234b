"""Rows: models, connections, locks, acquisition, loading and applying. The only package that knows SQL of changes."""
