"""Drawings for models that have none, laid out by a library in a process of its own. docs/decisions/0090 says why so.

`drawing.py` asks, within a limit of time; `layout.py` is what the other process does: pure, from XML to XML.
"""
