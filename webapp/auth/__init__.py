"""Signing in: people, server-side sessions, and the slow-down on guessing."""
