"""Runs a folder of conformance cases against Baton: `make conformance CASES=DIR` (see docs/conformance.md)."""
