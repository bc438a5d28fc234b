"""Decisions (DMN 1.3): files -> frozen decision graphs, and their evaluation. Pure: no database, no clock but the one handed in."""
