"""start."""
