"""Acquire, run, report: durable work outside of any transaction."""
