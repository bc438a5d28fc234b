"""Every element, attribute and text of a model is used, drawing or reported (issue 4).

Counts by itself, and asks the reader only what it read.
"""
