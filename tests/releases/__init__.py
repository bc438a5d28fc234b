"""The previous release (tests/previous-release) and this one at work on one database, as during every rolling deployment."""
