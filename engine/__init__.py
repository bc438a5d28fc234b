"""The shared model layer and engine of Baton. Knows no Flask and no HTTP."""
