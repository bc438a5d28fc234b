"""Rows and values as JSON texts, which is how they travel to a writing statement."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson


def document(rows: Any) -> str:
    """Rows (dataclasses, mappings, sequences) or one value as JSON."""
    return orjson.dumps(rows, default=_plain).decode()


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return dict(value)
        case Decimal():
            return float(value)
        case set() | frozenset():
            return sorted(value)
    raise TypeError(f"expected a JSON value, found {type(value).__name__}")
