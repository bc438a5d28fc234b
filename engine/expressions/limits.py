"""How large an expression, its work and its values may be. Models come from people who may mean harm, or err."""

from __future__ import annotations

SOURCE_LENGTH = 10_000  # characters of one text, embedded expressions and all
NODES = 1_000  # of one syntax tree
NESTING = 60  # brackets, conditionals and prefixes within each other, while parsing (about four frames each)
DEPTH = 200  # of the syntax tree: one frame each while evaluating
STEPS = 50_000  # one per item compared, listed or searched, and one per 64 characters of text made
CALLS = 50  # functions of a FEEL expression within each other
CALL_STEPS = 4  # of one call of such a function, besides those of what it does
TEXT_LENGTH = 1_000_000  # characters of a string that an expression makes
VALUE_DEPTH = 100  # of a list or object that is compared or printed
VALUES = 1_000_000  # of a list or context with all that lies in it
DIGITS = 34  # of a number, as in decimal128
EXPONENT = 308  # of a number: what a double can carry
