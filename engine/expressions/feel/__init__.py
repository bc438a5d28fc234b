"""FEEL, the expression language of DMN 1.3 (clause 10.3): a second front end to the shared syntax tree, with rules of its own.

docs/expressions.md states the language as it is read here.
"""
