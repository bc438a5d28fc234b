"""How much an attempt may say while it runs. Here, because handlers' processes know it and see no database."""

from __future__ import annotations

LEVELS = ("debug", "info", "warning", "error")
MOST_LINES = 200  # of one attempt; further ones are counted
LONGEST_LINE = 2_000  # characters
LONGEST_DOING = 200
